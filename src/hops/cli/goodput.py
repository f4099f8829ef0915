"""`hops goodput`: what weeks of training on hardware that breaks deliver."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.console import AllCoresOption, JsonOption, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import RenderableType

    from hops.fleet.result import GoodputSummary
    from hops.fleet.study import Study
    from hops.fleet.trajectory import Trajectory


def goodput(
    spec: SpecArgument,
    overrides: SetOption = None,
    days: Annotated[float, typer.Option("--days", metavar="DAYS", help="How long every seed trains.")] = 30.0,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="COUNT", help="How many seeds, each with its own faults.")
    ] = 20,
    policies: Annotated[
        str | None,
        typer.Option("--policies", metavar="A,B,C", help="Compare these recovery policies; default: the spec's one."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", metavar="FILE", help="Draw goodput over time (PNG, SVG or PDF).")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a page with all policies side by side."),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="COUNT", help="Iterations simulated per condition, if anything varies.")
    ] = 64,
    *,
    sweep: Annotated[
        bool, typer.Option("--sweep-checkpoint-interval", help="Find the best checkpoint interval instead.")
    ] = False,
    jobs: AllCoresOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train for days on hardware that breaks, as the spec's `failure` section says, and recover.

    Iterations without a fault are drawn from their simulated distribution; those that faults touch are simulated.
    """
    from hops.build.setup import build
    from hops.errors import UsageError
    from hops.fleet.study import prepare
    from hops.planner.replanned import replanned
    from hops.processes import cores
    from hops.spec.load import load
    from hops.viz.canvas import picture_format
    from hops.viz.html.page import check_path

    if page is not None:
        check_path(page)
        if sweep:
            raise UsageError("got both --sweep-checkpoint-interval and --report, expected one of them; remove one")
    if sweep and policies is not None:
        raise UsageError("got both --sweep-checkpoint-interval and --policies, expected one of them; remove one")
    if picture is not None:
        picture_format(picture)
    names = None if policies is None else _names(policies)
    loaded = load(spec, overrides or ())
    study = prepare(build(loaded), loaded.failure.recovery, days=days, seeds=seeds, samples=samples, replan=replanned)
    how = _How(picture=picture, page=page, as_json=as_json, quiet=quiet, jobs=jobs or cores())
    if sweep:
        _sweep(study, how)
    elif names is None:
        _study(study, how)
    else:
        _compare([(name, study.under(name)) for name in names], how)


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """What becomes of a result."""

    picture: Path | None
    page: Path | None
    as_json: bool
    quiet: bool
    jobs: int

    @property
    def on_screen(self) -> bool:
        return not self.quiet and not self.as_json

    def give(self, plain: "Callable[[], Any]", screen: "Callable[[], RenderableType]") -> None:
        """Print JSON, a screen or nothing."""
        from hops.cli.console import show, show_json

        if self.as_json:
            show_json(plain())
        elif self.on_screen:
            show(screen(), *(f"wrote {path}" for path in (self.picture, self.page) if path is not None))

    def write_page(self, summaries: "Mapping[str, GoodputSummary]") -> None:
        """Write the page, if one is wanted."""
        from hops.viz.html.page import write_report
        from hops.viz.html.results import goodput_page

        if self.page is not None:
            write_report(goodput_page(summaries), self.page)


def _study(study: "Study", how: _How) -> None:
    from hops.fleet.result import summarize_study
    from hops.report.goodput import render_goodput
    from hops.viz.goodput import draw_goodput

    trajectories = _trajectories(study, how)
    summary = summarize_study(study, trajectories)
    if how.picture is not None:
        draw_goodput(summary, trajectories, how.picture)
    how.write_page({summary.policy: summary})
    how.give(summary.to_dict, lambda: render_goodput(summary))


def _compare(studies: "Sequence[tuple[str, Study]]", how: _How) -> None:
    """Several policies, side by side."""
    from hops.fleet.result import summarize_study
    from hops.report.goodput import render_policies
    from hops.viz.goodput import draw_policies

    trajectories = {name: _trajectories(study, how) for name, study in studies}
    summaries = {name: summarize_study(study, trajectories[name]) for name, study in studies}
    if how.picture is not None:
        draw_policies(summaries, trajectories, how.picture)
    how.write_page(summaries)
    how.give(
        lambda: {name: summary.to_dict() for name, summary in summaries.items()}, lambda: render_policies(summaries)
    )


def _sweep(study: "Study", how: _How) -> None:
    from dataclasses import asdict

    from hops.cli.console import progress
    from hops.fleet.checkpoint_sweep import POINTS, sweep_intervals
    from hops.report.goodput import render_sweep
    from hops.viz.goodput import draw_sweep

    with progress("sweeping", POINTS, visible=how.on_screen) as on_point:
        found = sweep_intervals(study, on_point=on_point)
    if how.picture is not None:
        draw_sweep(found, how.picture)
    how.give(lambda: asdict(found), lambda: render_sweep(found))


def _trajectories(study: "Study", how: _How) -> "tuple[Trajectory, ...]":
    from hops.cli.console import progress

    with progress(study.policy.name, len(study.seeds), visible=how.on_screen) as on_end:
        return study.trajectories(on_end, jobs=how.jobs)


def _names(policies: str) -> list[str]:
    from hops.errors import UsageError
    from hops.fleet.recovery.base import RECOVERIES

    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise UsageError(f"--policies: got {policies!r}, expected different names separated by commas")
    for name in names:
        RECOVERIES.get(name)
    return names


if TYPE_CHECKING:
    from hops.faults.plan import FaultPlan

app = typer.Typer(help="Draw fault plans and look at them.", no_args_is_help=True)
AllOption = Annotated[bool, typer.Option("--all", help="Show every fault, and not the first twenty.")]


@app.command()
def draw(
    spec: SpecArgument,
    overrides: SetOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the plan (JSON), for failure.plan.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Draw with this seed; default: the spec's.")] = None,
    *,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw what a spec's `failure` section says breaks until its horizon, whether or not it is enabled."""
    from hops.build.faults import draw_faults
    from hops.faults.plan import save_plan
    from hops.spec.load import load

    loaded = load(spec, overrides or ())
    plan = draw_faults(loaded, seed=seed)
    if output is not None:
        save_plan(plan, output)
    _show(plan, every=every, as_json=as_json)
    if output is not None and not as_json:
        typer.echo(f"wrote {output}")


@app.command()
def show(
    path: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan that a run or `hops faults draw` saved.")],
    *,
    every: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what breaks in a saved plan."""
    from hops.faults.plan import load_plan

    _show(load_plan(path), every=every, as_json=as_json)


def _show(plan: "FaultPlan", *, every: bool, as_json: bool) -> None:
    import json

    from hops.cli.console import show, show_json
    from hops.faults.plan import plan_to_json
    from hops.report.goodput import FIRST, render_plan

    if as_json:
        content: Any = json.loads(plan_to_json(plan))
        show_json(content)
        return
    show(render_plan(plan, first=len(plan) if every else FIRST))
