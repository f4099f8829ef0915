"""`hops run`: simulate a spec, print what came out, write what the spec asks for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.options import JsonOption, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from hops.api import SimulatedRun
    from hops.config.spec import Output
    from hops.metrics import Summary

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Also write summary, events, trace, pictures and faults into this folder.",
    ),
]


def run(
    spec: SpecArgument,
    overrides: SetOption = None,
    output: OutputOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate a spec and print its summary.

    Writes the files that the spec's `output` section names, and with `--output` all of them into one folder.
    """
    from hops.api import load, simulate, summarize
    from hops.cli.console import progress, show, show_json
    from hops.metrics import losses
    from hops.report import render_summary
    from hops.report.faults import render_losses

    loaded = load(spec, overrides or ())
    iterations = loaded.simulation.iterations
    with progress("simulating", iterations, visible=not quiet and not as_json) as on_iteration:
        simulated = simulate(loaded, on_iteration=on_iteration)
    summary = summarize(simulated)
    written = write(simulated, summary, loaded.output)
    if output is not None:
        written += write(simulated, summary, everything(output))
    if as_json:
        show_json(summary.to_dict())
    elif not quiet:
        broken = [render_losses(losses(simulated.trace), simulated.plan)] if simulated.plan else []
        far = [f"! {sentence}" for sentence in simulated.setup.warnings]
        show(render_summary(summary), *far, *broken, *(f"wrote {path}" for path in written))


def everything(folder: Path) -> "Output":
    """All outputs, under their usual names in one folder."""
    from hops.config.spec import Output

    return Output(
        summary=str(folder / "summary.json"),
        events=str(folder / "events.csv"),
        trace=str(folder / "trace.json"),
        timeline=str(folder / "timeline.png"),
        dashboard=str(folder / "dashboard.png"),
        faults=str(folder / "faults.json"),
    )


def write(simulated: "SimulatedRun", summary: "Summary", output: "Output") -> list[str]:
    """Write what an output section names, making folders; returns the paths."""
    from hops.cli.together import together
    from hops.faults import save_plan
    from hops.report import write_chrome, write_summary
    from hops.trace import write_events
    from hops.viz import draw_dashboard, draw_timeline, prepare

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
        together(lambda: write_all(named[:-1]), lambda: write_all(named[-1:]))
    else:
        write_all(named)
    return [str(path) for path, _ in named]
