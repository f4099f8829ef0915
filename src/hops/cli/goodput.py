"""`hops goodput`: what weeks of training on hardware that breaks deliver."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.options import JsonOption, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from hops.goodput import LifeStory, Study


def goodput(
    spec: SpecArgument,
    overrides: SetOption = None,
    days: Annotated[float, typer.Option("--days", metavar="DAYS", help="How long every simulated life lasts.")] = 30.0,
    seeds: Annotated[int, typer.Option("--seeds", metavar="COUNT", help="How many lives.")] = 20,
    policies: Annotated[
        str | None,
        typer.Option("--policies", metavar="A,B,C", help="Compare these recovery policies; default: the spec's one."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", metavar="FILE", help="Draw goodput over time (PNG or SVG).")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="COUNT", help="Iterations simulated per condition, if anything varies.")
    ] = 64,
    *,
    sweep: Annotated[
        bool, typer.Option("--sweep-checkpoint-interval", help="Find the best checkpoint interval instead.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train for days on hardware that breaks, as the spec's `failure` section says, and recover.

    Iterations without a fault are drawn from their simulated distribution; those that faults touch are simulated.
    """
    from hops.api import build, load
    from hops.cli.replanning import planned
    from hops.errors import UsageError
    from hops.goodput import prepare
    from hops.viz.canvas import picture_format

    if sweep and policies is not None:
        raise UsageError("got both --sweep-checkpoint-interval and --policies, expected one of them; remove one")
    if picture is not None:
        picture_format(picture)
    names = None if policies is None else _names(policies)
    loaded = load(spec, overrides or ())
    study = prepare(build(loaded), loaded.failure.recovery, days=days, seeds=seeds, samples=samples, replan=planned)
    how = _How(picture=picture, as_json=as_json, quiet=quiet)
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
    as_json: bool
    quiet: bool

    @property
    def on_screen(self) -> bool:
        return not self.quiet and not self.as_json

    def give(self, plain: "Callable[[], Any]", screen: "Callable[[], RenderableType]") -> None:
        """Print JSON, a screen or nothing."""
        from hops.cli.console import show, show_json

        if self.as_json:
            show_json(plain())
        elif self.on_screen:
            show(screen(), *([] if self.picture is None else [f"wrote {self.picture}"]))


def _study(study: "Study", how: _How) -> None:
    from hops.goodput import summarize_lives
    from hops.report.goodput import render_goodput
    from hops.viz.goodput import draw_goodput

    lives = _lives(study, how)
    summary = summarize_lives(study, lives)
    if how.picture is not None:
        draw_goodput(summary, lives, how.picture)
    how.give(summary.to_dict, lambda: render_goodput(summary))


def _compare(studies: "Sequence[tuple[str, Study]]", how: _How) -> None:
    """Several policies; the picture is of the best."""
    from hops.goodput import summarize_lives
    from hops.report.goodput import render_policies
    from hops.viz.goodput import draw_goodput

    lives = {name: _lives(study, how) for name, study in studies}
    summaries = {name: summarize_lives(study, lives[name]) for name, study in studies}
    if how.picture is not None:
        best = max(summaries, key=lambda name: summaries[name].goodput)
        draw_goodput(summaries[best], lives[best], how.picture)
    how.give(
        lambda: {name: summary.to_dict() for name, summary in summaries.items()}, lambda: render_policies(summaries)
    )


def _sweep(study: "Study", how: _How) -> None:
    from dataclasses import asdict

    from hops.cli.console import progress
    from hops.goodput import sweep_intervals
    from hops.goodput.sweep import POINTS
    from hops.report.goodput import render_sweep
    from hops.viz.goodput import draw_sweep

    with progress("sweeping", POINTS, visible=how.on_screen) as on_point:
        found = sweep_intervals(study, on_point=on_point)
    if how.picture is not None:
        draw_sweep(found, how.picture)
    how.give(lambda: asdict(found), lambda: render_sweep(found))


def _lives(study: "Study", how: _How) -> "tuple[LifeStory, ...]":
    from hops.cli.console import progress

    with progress(study.policy, len(study.seeds), visible=how.on_screen) as on_life:
        return study.lives(on_life)


def _names(policies: str) -> list[str]:
    from hops.errors import UsageError
    from hops.goodput import RECOVERIES

    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise UsageError(f"--policies: got {policies!r}, expected different names separated by commas")
    for name in names:
        RECOVERIES.get(name)
    return names
