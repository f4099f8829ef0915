"""`hops goodput`: what weeks of training on hardware that breaks deliver."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.options import JsonOption, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from hops.goodput import GoodputSummary, LifeStory


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
    from hops.cli.console import progress, show, show_json
    from hops.errors import UsageError
    from hops.goodput import prepare, summarize_lives, sweep_intervals
    from hops.report.goodput import render_goodput, render_policies, render_sweep
    from hops.viz.goodput import draw_goodput, draw_sweep

    loaded = load(spec, overrides or ())
    study = prepare(build(loaded), loaded.failure.recovery, days=days, seeds=seeds, samples=samples)
    visible = not quiet and not as_json
    if sweep:
        if policies is not None:
            raise UsageError("got both --sweep-checkpoint-interval and --policies, expected one of them; remove one")
        with progress("sweeping", 15, visible=visible) as on_point:
            found = sweep_intervals(study, on_point=on_point)
        if picture is not None:
            draw_sweep(found, picture)
        if as_json:
            from dataclasses import asdict

            show_json(asdict(found))
        elif visible:
            show(render_sweep(found), *_wrote(picture))
        return
    names = [study.policy] if policies is None else _names(policies)
    lives: dict[str, tuple[LifeStory, ...]] = {}
    summaries: dict[str, GoodputSummary] = {}
    for name in names:
        chosen = study.under(name)
        with progress(name, seeds, visible=visible) as on_life:
            lives[name] = chosen.lives(on_life)
        summaries[name] = summarize_lives(chosen, lives[name])
    if picture is not None:
        draw_goodput(summaries[names[0]], lives[names[0]], picture)
    if as_json:
        plain = {name: summary.to_dict() for name, summary in summaries.items()}
        show_json(plain[names[0]] if policies is None else plain)
    elif visible:
        screen = render_goodput(summaries[names[0]]) if policies is None else render_policies(summaries)
        show(screen, *_wrote(picture))


def _names(policies: str) -> list[str]:
    from hops.errors import UsageError

    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names or len(set(names)) != len(names):
        raise UsageError(f"--policies: got {policies!r}, expected different names separated by commas")
    return names


def _wrote(picture: Path | None) -> list[str]:
    return [] if picture is None else [f"wrote {picture}"]
