"""`hops report` and `hops view`: runs side by side in one HTML file, to look at in a browser."""

import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import QuietOption, SetOption
from hops.errors import DoesNotFitError, UsageError

if TYPE_CHECKING:
    from hops.viz.html.page import Report
    from hops.viz.html.run import ShownRun

InputsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPEC|RUN...",
        help="Specs, which are simulated; run folders, traces and events files, which are read. The first is compared "
        "with the others.",
        show_default=False,
    ),
]
SchedulesOption = Annotated[
    str | None,
    typer.Option("--schedules", "-s", metavar="A,B,C", help="Also under these schedules: what would they change?"),
]
WarmupOption = Annotated[
    int | None, typer.Option("--warmup", min=0, metavar="N", help="Iterations to leave out; default: as found or set.")
]


def report(
    inputs: InputsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A name that ends in .html.")] = Path(
        "report.html"
    ),
    schedules: SchedulesOption = None,
    overrides: SetOption = None,
    warmup: WarmupOption = None,
    *,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Write one HTML file with everything about runs: timelines, why ranks waited, bubbles, memory, tables.

    It opens in any browser, without a server or a network. Several runs stand under each other on one time axis, with
    their differences: `hops report spec.yaml --schedules zb_h1,zb_v`, or `hops report RUN spec.yaml`.
    """
    from hops.cli.console import show
    from hops.viz.html.page import check_path, write_report

    check_path(output)
    write_report(gather(inputs, schedules=schedules, overrides=overrides or (), warmup=warmup), output)
    if opens:
        open_page(output)
    if not quiet:
        show(f"wrote {output}")


def view(
    inputs: InputsArgument,
    schedules: SchedulesOption = None,
    overrides: SetOption = None,
    warmup: WarmupOption = None,
) -> None:
    """Look at runs in the browser: `hops report` into a temporary file, opened. A report that is there is opened."""
    from hops.viz.html.page import write_report

    if len(inputs) == 1 and inputs[0].suffix.lower() == ".html":
        if not inputs[0].is_file():
            raise UsageError(f"cannot open {inputs[0]}: no such file; write it with `hops report`")
        open_page(inputs[0])
        return
    found = gather(inputs, schedules=schedules, overrides=overrides or (), warmup=warmup)
    path = Path(tempfile.mkdtemp(prefix="hops-")) / "report.html"
    write_report(found, path)
    open_page(path)


def open_page(path: Path) -> None:
    """Open a page in the browser; say where it is where there is none."""
    from hops.cli.console import show

    opened = has_screen() and webbrowser.open(path.resolve().as_uri())
    show(f"opened {path}" if opened else f"no browser here; open this file in one: {path.resolve()}")


def has_screen() -> bool:
    """Whether a browser's window can open here: without a screen, one for text would take over the terminal."""
    return sys.platform in {"darwin", "win32"} or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def gather(
    inputs: Sequence[Path], *, schedules: str | None = None, overrides: Sequence[str] = (), warmup: int | None = None
) -> "Report":
    """Read or simulate everything. Raises UsageError for schedules or changes where no spec is to be simulated."""
    from hops.viz.html.page import report_of_runs

    others = _named(schedules)
    specs = [path for path in inputs if is_spec(path)]
    if (others or overrides) and not specs:
        option = "--schedules" if others else "--set"
        raise UsageError(
            f"{option}: got no spec to apply it to, only runs that have been; name a spec, or leave it out"
        )
    if others and len(specs) > 1:
        raise UsageError(f"--schedules: got {len(specs)} specs, expected one; leave out the others")
    runs, notes = [], []
    for path in inputs:
        name = path.name if len({each.name for each in inputs}) == len(inputs) else str(path)
        if is_spec(path):
            found, refused = _simulated(path, others, overrides, warmup, name if len(inputs) > 1 else "")
            runs += found
            notes += refused
        else:
            runs.append(_recorded(path, warmup, name))
    return report_of_runs(", ".join(str(path.name or path) for path in inputs), runs, notes)


def is_spec(path: Path) -> bool:
    """Whether the file describes a run, so that it has to be simulated."""
    return path.suffix in {".yaml", ".yml"} and not path.is_dir()


def _named(schedules: str | None) -> list[str]:
    names = [name.strip() for name in (schedules or "").split(",") if name.strip()]
    if schedules is not None and (not names or len(set(names)) != len(names)):
        raise UsageError(f"--schedules: got {schedules!r}, expected different names separated by commas")
    return names


def _simulated(
    path: Path, schedules: Sequence[str], overrides: Sequence[str], warmup: int | None, prefix: str
) -> "tuple[list[ShownRun], list[str]]":
    """The spec's own schedule first, then the others; and a sentence for each that cannot run."""
    from hops.build.compare import compare
    from hops.build.run import simulate
    from hops.cli.recorded import opened
    from hops.importers.megatron.run_folder import is_launch
    from hops.spec.load import load
    from hops.viz.html.run import ShownRun

    if is_launch(path):
        if schedules or overrides:
            raise UsageError(
                f"{path}: got a launch, expected a spec for --schedules and --set; `hops import` makes one"
            )
        return [_shown(prefix or path.name, opened(path, warmup=warmup))], []
    spec = load(path, overrides)
    own = simulate(spec)
    others = [name for name in schedules if name != spec.pipeline.schedule.name]
    notes: list[str] = []
    named = {own.trace.meta.schedule: own}
    if others:
        try:
            compared = compare(spec, others)
            named |= compared.runs
            notes = [f"{name} cannot run: {why}" for name, why in compared.refused.items()]
        except DoesNotFitError as error:  # no other can, but its own
            notes = str(error).splitlines()
    facts = {name: _facts(run.facts, warmup) for name, run in named.items()}
    runs = [
        ShownRun.of(
            f"{prefix}: {name}" if prefix and len(named) > 1 else prefix or name,
            run.trace,
            facts[name],
            tuple(run.setup.warnings),
            run.plan.faults,
        )
        for name, run in named.items()
    ]
    return runs, notes


if TYPE_CHECKING:
    from hops.cli.recorded import Recorded
    from hops.metrics.summary import RunFacts


def _facts(facts: "RunFacts", warmup: int | None) -> "RunFacts":
    from dataclasses import replace

    return facts if warmup is None else replace(facts, warmup_iterations=warmup)


def _recorded(path: Path, warmup: int | None, name: str) -> "ShownRun":
    from hops.cli.recorded import opened

    return _shown(name, opened(path, warmup=warmup))


def _shown(name: str, recorded: "Recorded") -> "ShownRun":
    from hops.viz.html.run import ShownRun

    dropped = tuple(f"Dropped {events} events: {reason}." for reason, events in recorded.dropped.items())
    return ShownRun.of(name, recorded.trace, recorded.facts, (*dropped, *recorded.notes))
