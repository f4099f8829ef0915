"""`hops sweep`: thousands of points, their table and pictures; goes on where it was interrupted."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import AllCoresOption, JsonOption, QuietOption, SetOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from hops.sweep.ray_backend import RayExecutor
    from hops.sweep.run import Progress
    from hops.sweep.table import SweepTable

SHOWN_EVERY_S = 0.5
BEST = 10  # rows on the screen


def sweep(
    path: Annotated[Path, typer.Argument(metavar="SWEEP", help="The sweep file (YAML).", show_default=False)],
    overrides: SetOption = None,
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="Keeps all outcomes (SQLite); default: SWEEP.sqlite."),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write the table: .csv, .parquet or .json."),
    ] = None,
    pictures: Annotated[
        list[str] | None,
        typer.Option(
            "--picture",
            "-p",
            metavar="KIND=FILE",
            help="Draw lines, heat, pareto or parallel, such as heat=map.png (PNG or SVG).",
        ),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option("--of", metavar="COLUMN", help="Columns that pictures and the best rows are of, in order."),
    ] = None,
    jobs: AllCoresOption = None,
    backend: Annotated[str, typer.Option("--backend", help="Who works: processes or ray.")] = "processes",
    address: Annotated[
        str | None, typer.Option("--address", metavar="HOST:PORT", help="The Ray cluster; default: one of its own.")
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a spec at many points: grids, lists, samples, seeds. All cores work; the table is the same for any number.

    Every outcome is kept in the store as it comes. The same command goes on after Ctrl-C, a crash or a full disk, and
    runs only what is new after a change.
    """
    from hops.cli.console import show, show_json
    from hops.errors import UsageError
    from hops.processes import cores
    from hops.report.sweep import render_sweep_table
    from hops.sweep.plan import load_sweep
    from hops.sweep.run import run_sweep
    from hops.sweep.store import Store
    from hops.viz.sweep import check_sweep_picture, draw_sweep_picture

    if backend not in ("processes", "ray"):
        raise UsageError(f"--backend: got {backend!r}, expected processes or ray")
    if address is not None and backend != "ray":
        raise UsageError("--address is of a Ray cluster: add --backend ray")
    drawn = [_picture(each) for each in pictures or ()]
    plan = load_sweep(path, overrides or ())
    for kind, file in drawn:
        check_sweep_picture(kind, file, plan.keys, plan.figures, of or ())
    for file in output or ():
        if file.suffix not in _WRITERS:
            raise UsageError(f"--output: got {file}, expected a name that ends in {', '.join(_WRITERS)}")
    place = path.with_suffix(".sqlite") if store is None else store
    visible = not quiet and not as_json
    with (
        Store(place) as kept,
        _executor(backend, address) as executor,
        _progress(str(place), visible=visible) as tell,
    ):
        workers = jobs or (cores() if executor is None else executor.workers)
        table = run_sweep(plan, kept, jobs=workers, executor=executor, on_progress=tell)
    for file in output or ():
        _WRITERS[file.suffix](table, file)
    for kind, file in drawn:
        draw_sweep_picture(table, kind, file, of or ())
    if as_json:
        show_json(table.records())
    elif not quiet:
        files = [*(output or ()), *(file for _, file in drawn)]
        show(render_sweep_table(table, of or (), most=BEST), *(f"wrote {file}" for file in files))


def _picture(text: str) -> tuple[str, Path]:
    from hops.errors import UsageError

    kind, equals, file = text.partition("=")
    if not equals or not file:
        raise UsageError(f"--picture: got {text!r}, expected KIND=FILE, such as heat=map.png")
    return kind, Path(file)


def _json(table: "SweepTable", path: Path) -> None:
    import json

    from hops.files import atomic_write

    with atomic_write(path) as stream:
        json.dump(table.records(), stream, indent=1)
        stream.write("\n")


_WRITERS: "dict[str, Callable[[SweepTable, Path], None]]" = {
    ".csv": lambda table, path: table.to_csv(path),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".json": _json,
}


@contextmanager
def _executor(backend: str, address: str | None) -> "Iterator[RayExecutor | None]":
    if backend == "processes":
        yield None
        return
    from hops.sweep.ray_backend import RayExecutor

    with RayExecutor(address) as executor:
        yield executor


@contextmanager
def _progress(store: str, *, visible: bool) -> "Iterator[Callable[[Progress], None]]":
    """Tells how far the sweep is: a line on a terminal; what is known when it ends early, anywhere."""
    last: list[Progress] = []
    shown = [time.monotonic()]
    terminal = visible and sys.stderr.isatty()

    def tell(now: "Progress") -> None:
        last[:] = [now]
        if terminal and time.monotonic() - shown[0] > SHOWN_EVERY_S:
            shown[0] = time.monotonic()
            sys.stderr.write(f"\r{progress_line(now):<78}")
            sys.stderr.flush()

    try:
        yield tell
    except BaseException:
        if visible and last:
            sys.stderr.write(f"{_clear(terminal)}{last[0].done:,} of {last[0].total:,} points are kept in {store}; ")
            sys.stderr.write("the same command goes on from there\n")
        raise
    sys.stderr.write(_clear(terminal))


def _clear(terminal: bool) -> str:
    return f"\r{'':<78}\r" if terminal else ""


def progress_line(now: "Progress") -> str:
    """`1,200 of 10,000 points, 3 without figures, 412/s, 21 s left`."""
    from hops.units import format_time

    parts = [f"{now.done:,} of {now.total:,} points"]
    if now.failed:
        parts.append(f"{now.failed:,} without figures")
    if now.left_s is not None:
        parts += [f"{now.per_s:,.0f}/s", f"{format_time(now.left_s)} left"]
    return ", ".join(parts)
