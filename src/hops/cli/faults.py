"""`hops faults`: draw a fault plan, look at one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.options import JsonOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from hops.faults import FaultPlan

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
    from hops.api import load
    from hops.api.faults import draw_faults
    from hops.faults import save_plan

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
    from hops.faults import load_plan

    _show(load_plan(path), every=every, as_json=as_json)


def _show(plan: "FaultPlan", *, every: bool, as_json: bool) -> None:
    import json

    from hops.cli.console import show, show_json
    from hops.faults import plan_to_json
    from hops.report.faults import FIRST, render_plan

    if as_json:
        content: Any = json.loads(plan_to_json(plan))
        show_json(content)
        return
    show(render_plan(plan, first=len(plan) if every else FIRST))
