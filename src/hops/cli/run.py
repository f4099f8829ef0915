"""`hops run`: simulate a spec, print what came out, write what the spec asks for."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.compare import DeadlineOption, PrecisionOption, SamplesOption, run_samples
from hops.cli.console import AllCoresOption, JsonOption, QuietOption, SetOption, SpecArgument
from hops.errors import HopsError, UsageError

if TYPE_CHECKING:
    from hops.build.run import SimulatedRun
    from hops.metrics.summary import Summary
    from hops.spec.spec import OutputSection

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER|FILE.html",
        help="Also write summary, events, trace, pictures, faults and report into this folder; or the report alone.",
    ),
]


def run(
    spec: SpecArgument,
    overrides: SetOption = None,
    output: OutputOption = None,
    samples: SamplesOption = None,
    deadline: DeadlineOption = None,
    precision: PrecisionOption = None,
    jobs: AllCoresOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate a spec and print its summary; with `--samples`, what many seeds give and how surely.

    Writes the files that the spec's `output` section names, and with `--output` all of them into one folder, with a
    report to look at in a browser.
    """
    from hops.build.exchanged import exposed_by_axis, exposed_text
    from hops.build.run import simulate, summarize
    from hops.cli.console import progress, show, show_json
    from hops.metrics.losses import losses
    from hops.report.goodput import render_losses
    from hops.report.overview import render_summary
    from hops.spec.load import load

    loaded = load(spec, overrides or ())
    if samples is not None:
        if output is not None:
            raise UsageError("--output is of one run, and --samples has many; write them by `hops sweep`")
        run_samples(loaded, samples, deadline, precision, jobs, as_json=as_json, quiet=quiet)
        return
    if deadline is not None or precision is not None:
        raise UsageError("--deadline and --precision are of many samples: add --samples COUNT")
    _check_outputs(loaded.output, None if output is None else everything(output))
    iterations = loaded.simulation.iterations
    with progress("simulating", iterations, visible=not quiet and not as_json) as on_iteration:
        simulated = simulate(loaded, on_iteration=on_iteration)
    summary = summarize(simulated)
    written = write(simulated, summary, loaded.output)
    if output is not None:
        alone = output.suffix.lower() == ".html"
        written += [] if alone else write(simulated, summary, everything(output))
        written += write_page(simulated, spec.name, output if alone else output / "report.html")
    if as_json:
        show_json(summary.to_dict())
    elif not quiet:
        broken = [render_losses(losses(simulated.trace), simulated.plan)] if simulated.plan else []
        far = [f"! {sentence}" for sentence in simulated.setup.warnings]
        shares = exposed_by_axis(simulated.setup)
        waits = [f"collectives exposed per rank and iteration: {exposed_text(shares)}"] if shares else []
        show(render_summary(summary), *waits, *far, *broken, *(f"wrote {path}" for path in written))


def _check_outputs(*sections: "OutputSection | None") -> None:
    """Raise UsageError for an output that could not be written, before the run."""
    from hops.files import check_writable

    names = [name for section in sections if section is not None for name in section.model_dump().values()]
    check_writable(Path(name) for name in names if name is not None)


def everything(folder: Path) -> "OutputSection":
    """All outputs, under their usual names in one folder."""
    from hops.spec.spec import OutputSection

    return OutputSection(
        summary=str(folder / "summary.json"),
        events=str(folder / "events.csv"),
        trace=str(folder / "trace.json.gz"),
        timeline=str(folder / "timeline.png"),
        dashboard=str(folder / "dashboard.png"),
        faults=str(folder / "faults.json"),
    )


def write(simulated: "SimulatedRun", summary: "Summary", output: "OutputSection") -> list[str]:
    """Write what an output section names, making folders; returns the paths."""
    from hops.faults.plan import save_plan
    from hops.report.overview import write_chrome, write_summary
    from hops.trace.files import write_events
    from hops.viz.canvas import prepare
    from hops.viz.dashboard import draw_dashboard
    from hops.viz.timeline import draw_timeline

    trace, facts = simulated.trace, simulated.facts
    jobs: tuple[tuple[str | None, Callable[[Path], None]], ...] = (
        (output.summary, lambda path: write_summary(summary, path)),
        (output.events, lambda path: write_events(trace, path)),
        (output.trace, lambda path: write_chrome(trace, path, facts)),
        (output.timeline, lambda path: draw_timeline(trace, facts, path)),
        (output.faults if simulated.setup.spec.failure.enabled else None, lambda path: save_plan(simulated.plan, path)),
        (output.dashboard, lambda path: draw_dashboard(trace, summary, facts, path)),
    )
    named = [(Path(name), write_one) for name, write_one in jobs if name is not None]

    def write_all(part: Sequence[tuple[Path, Callable[[Path], None]]]) -> None:
        for path, write_one in part:
            write_one(path)

    if output.timeline and output.dashboard:  # the last takes as long as all others
        prepare()
        in_parallel(lambda: write_all(named[:-1]), lambda: write_all(named[-1:]))
    else:
        write_all(named)
    return [str(path) for path, _ in named]


def write_page(simulated: "SimulatedRun", title: str, path: Path) -> list[str]:
    """Write the report of one run; returns its path."""
    from hops.viz.html.page import report_of_runs, write_report
    from hops.viz.html.run import ShownRun

    name = simulated.trace.meta.schedule
    shown = ShownRun.of(name, simulated.trace, simulated.facts, tuple(simulated.setup.warnings), simulated.plan.faults)
    write_report(report_of_runs(title, [shown]), path)
    return [str(path)]


# macOS's frameworks do not survive a fork, Windows has none
CAN_FORK = hasattr(os, "fork") and sys.platform != "darwin"


def in_parallel(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Run `first` here and `second` in a forked process; one after the other where the system cannot fork.

    A HopsError of either is raised, that of `first` before that of `second`; both have ended then.
    """
    if not CAN_FORK:
        first()
        second()
        return
    reader, writer = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():  # Python 3.12 warns of threads, and NumPy's idle ones know how to fork
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _finish(second, writer)
    os.close(writer)
    try:
        first()
    finally:
        with os.fdopen(reader, encoding="utf-8") as pipe:
            message = pipe.read()
        _, status = os.waitpid(child, 0)
    if status:
        raise UsageError(message or "a process that draws pictures was killed; draw one picture at a time")


def _finish(job: Callable[[], None], writer: int) -> None:
    """Do the job and end this process; what went wrong goes into the pipe."""
    code = 1
    try:
        job()
        code = 0
    except HopsError as error:
        os.write(writer, str(error).encode())
    finally:
        if code and sys.exc_info()[0] is not None:
            sys.excepthook(*sys.exc_info())
        os._exit(code)  # without what the parent does at its end
