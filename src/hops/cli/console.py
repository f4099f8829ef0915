"""What commands print: results to stdout, progress to stderr, and only when it takes long enough to wonder."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.group import JSON_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

PATIENCE_S = 1.0
LINE_EVERY_S = 10.0  # where no bar can be drawn


def show(*renderables: "RenderableType") -> None:
    """Print rich renderables (or plain text) to stdout.

    Text is taken as it is: `[x]` in the name of a device is no style. Lines of plain text are not wrapped, so that a
    path stays in one piece.
    """
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for renderable in renderables:
        console.print(renderable, soft_wrap=isinstance(renderable, str), crop=False)


def show_json(value: Any) -> None:
    """Print one JSON document to stdout, or write it to the file that follows `--json`."""
    emit_json(json.dumps(value, indent=2, allow_nan=False) + "\n")


def emit_json(text: str) -> None:
    """What `--json` gives, as text: to stdout, or to the file that follows `--json`."""
    file = JSON_FILE.get()
    if file is None:
        sys.stdout.write(text)
        return
    from hops.files import atomic_write

    with atomic_write(file) as out:
        out.write(text)
    sys.stderr.write(f"wrote {file}\n")


class Lines:
    """Progress where no bar can be drawn: a line to stderr, every ten seconds at most."""

    def __init__(self) -> None:
        self.started = self.said = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say that `done` of `total` are done of what is being done."""
        now = time.monotonic()
        if now - self.said > LINE_EVERY_S:
            self.said = now
            sys.stderr.write(f"{what}: {done} of {total} after {now - self.started:.0f} s\n")
            sys.stderr.flush()


@contextmanager
def progress(title: str, total: int, *, visible: bool = True) -> Iterator["Callable[[int], None]"]:
    """A function to call with the number of what is done (from 0); draws a bar once that takes over a second.

    Where errors go to a file, as in a batch job, `Lines` are written instead.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    bar = Progress(console=console, transient=True)
    task = bar.add_task(title, total=total)
    started, lines = time.monotonic(), Lines()
    drawn = False

    def done(number: int) -> None:
        nonlocal drawn
        if visible and not console.is_terminal:
            lines(title, number + 1, total)
        if visible and console.is_terminal and not drawn and time.monotonic() - started > PATIENCE_S:
            bar.start()
            drawn = True
        bar.update(task, completed=number + 1)

    try:
        yield done
    finally:
        if drawn:
            bar.stop()


SpecArgument = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The spec file (see `hops init`).", show_default=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the spec, such as pipeline.microbatches=16."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON only; --json FILE: write it there.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AllCoresOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes; default: one per core. Results are the same."),
]
