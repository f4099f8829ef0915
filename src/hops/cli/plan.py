"""`hops plan`: the best placement, partition and schedule for a spec that leaves them open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import JsonOption, Lines, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from hops.planner.result import Plan, PlanReport
    from hops.viz.plan import PlanPoint

EXIT_INTERRUPTED = 130


def plan(
    spec: SpecArgument,
    objective: Annotated[
        str,
        typer.Option("--objective", metavar="NAME", help="throughput, iteration_time, cost_per_token or pareto."),
    ] = "throughput",
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="How much to try, such as 10s; a number of evaluations.")
    ] = "3s",
    top: Annotated[int, typer.Option("--top", min=1, max=100, help="Plans to show and write.")] = 5,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, metavar="N", help="Samples per iteration: microbatches x microbatch_size."),
    ] = None,
    overrides: SetOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Write a spec and its exports per plan, plans.json, pictures and a report into this folder.",
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Choose what a spec leaves open, simulate the best plans and rank them against a bound.

    Open are `partition`, `placement` and `schedule` where the spec does not state them (or says `auto`), and keys that
    give a list of choices. The budget becomes a number of evaluations, so the same budget gives the same plans.
    Ctrl-C ends the search: the best so far is simulated, shown and written, and the exit code is 130.
    Exit code 1 if nothing fits, with the proof.
    """
    from hops.cli.console import show, show_json
    from hops.errors import UnitError, UsageError
    from hops.planner.planner import plan as find_plans
    from hops.planner.problem import Objective
    from hops.report.plan import render_plans
    from hops.spec.open import load_open
    from hops.units import TIME

    goal = Objective.named(objective)
    try:
        seconds = TIME.parse(budget)
    except UnitError as error:
        raise UsageError(f"--budget: {error}") from None
    opened = load_open(spec, overrides or (), batch=batch)
    with stages(visible=not quiet and not as_json) as progress:
        report = find_plans(opened, objective=goal, budget_s=seconds, top=top, progress=progress)
    written = [] if output is None else write(report, output)
    if as_json:
        show_json(report.to_dict())
    elif not quiet:
        show(render_plans(report), *(f"wrote {path}" for path in written))
    if report.effort.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


@contextmanager
def stages(*, visible: bool) -> Iterator["Callable[[str, int, int], None] | None"]:
    """A function to tell what is being done, how many are done, of how many; draws a bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not visible:
        yield None
        return
    if not console.is_terminal:
        yield Lines()
        return
    with Progress(console=console, transient=True) as bar:
        tasks: dict[str, object] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield tell


def write(report: "PlanReport", folder: Path) -> list[Path]:
    """A spec per plan, all figures as JSON, Pareto plot, the best plan's timeline and a report; returns the paths."""
    import json

    from hops.files import atomic_write
    from hops.spec.text import dump
    from hops.viz.html.page import write_report
    from hops.viz.html.results import plan_page
    from hops.viz.plan import draw_pareto
    from hops.viz.timeline import draw_timeline

    paths = []
    for number, each in enumerate(report.plans, start=1):
        path = folder / f"plan-{number}.yaml"
        with atomic_write(path) as out:
            out.write(
                f"# Plan {number} by {report.objective}: {1e3 * each.seconds:.3f} ms an iteration in `hops run`.\n"
            )
            out.write(dump(each.spec))
        paths += [path, *_exported(each, folder / f"plan-{number}")]
    with atomic_write(folder / "plans.json") as out:
        out.write(json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n")
    best = report.plans[0]
    draw_timeline(best.run.trace, best.run.facts, folder / "timeline.png")
    labelled = [(str(number), each) for number, each in enumerate(report.plans, start=1)]
    points = [_point(label, each) for label, each in (*labelled, *(("", each) for each in report.others))]
    draw_pareto(points, folder / "pareto.png", unit="tokens")
    write_report(plan_page(report), folder / "report.html")
    return [*paths, *(folder / name for name in ("plans.json", "timeline.png", "pareto.png", "report.html"))]


def _exported(plan: "Plan", folder: Path) -> list[Path]:
    """What `hops export` writes for every runtime that can run the plan: a folder each, and why the others cannot."""
    from hops.errors import UsageError
    from hops.exporters import EXPORTERS, launchable
    from hops.exporters.base import Exported, write

    paths, refused = [], []
    try:
        ready = launchable(plan.spec, folder.name)
    except UsageError as error:
        return write(Exported(files={"not-exported.txt": f"{error}\n"}), folder)
    for name in EXPORTERS.names():
        try:
            exported = EXPORTERS.get(name)().export(ready)
        except UsageError as error:
            refused.append(f"{name}: {error}")
            continue
        notes = {"notes.txt": "".join(f"{note}\n" for note in exported.notes)} if exported.notes else {}
        write(Exported(files={**exported.files, **notes}), folder / name)
        paths.append(folder / name)
    if refused:
        write(Exported(files={"not-exported.txt": "\n".join(refused) + "\n"}), folder)
    return paths


def _point(label: str, plan: "Plan") -> "PlanPoint":
    from hops.viz.plan import PlanPoint

    rates = plan.summary.throughput
    rate = rates.tokens_per_s or rates.samples_per_s or 0.0
    return PlanPoint(label=label, rate=rate, cost=plan.cost_per_million, fullness=plan.fullness)
