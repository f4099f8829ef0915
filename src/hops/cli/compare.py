"""`hops compare`: the same spec under several schedules, as a table and one picture."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.options import JsonOption, QuietOption, SetOption, SpecArgument


def compare(
    spec: SpecArgument,
    schedules: Annotated[
        str, typer.Option("--schedules", "-s", metavar="A,B,C", help="Schedules to compare; see `hops list schedules`.")
    ] = "gpipe,1f1b,zb_h1,zero_bubble",
    overrides: SetOption = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", metavar="FILE", help="Draw all timelines into a PNG or SVG.")
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Simulate a spec under several schedules, side by side.

    A schedule that cannot run here (memory, divisibility) is listed with the reason. Exit code 1 if none can.
    """
    from hops.api import load, simulate, summarize
    from hops.cli.console import show, show_json
    from hops.errors import DoesNotFitError, SpecError, UsageError
    from hops.report import render_comparison
    from hops.schedule import SCHEDULERS
    from hops.viz import draw_comparison

    names = [name.strip() for name in schedules.split(",") if name.strip()]
    if len(set(names)) != len(names) or not names:
        raise UsageError(f"--schedules: got {schedules!r}, expected different names separated by commas")
    for name in names:
        SCHEDULERS.get(name)  # a name that nobody knows is a slip of the pen, not a schedule that cannot run here
    runs, refused = {}, {}
    load(spec, overrides or ())  # what is wrong with the file itself is said once
    for name in names:
        try:
            runs[name] = simulate(load(spec, [*(overrides or ()), f"pipeline.schedule={name}"]))
        except (DoesNotFitError, SpecError, UsageError) as error:
            refused[name] = str(error).removeprefix(f"--set pipeline.schedule={name}: pipeline.schedule: ")
    if not runs:
        raise DoesNotFitError(
            "none of the schedules can run\n" + "\n".join(f"{name}: {why}" for name, why in refused.items())
        )
    summaries = {name: summarize(run) for name, run in runs.items()}
    if picture is not None:
        draw_comparison([(name, run.trace, summaries[name], run.facts) for name, run in runs.items()], picture)
    if as_json:
        show_json({"runs": {name: each.to_dict() for name, each in summaries.items()}, "refused": refused})
    elif not quiet:
        show(render_comparison(summaries), *(f"{name} cannot run: {why}" for name, why in refused.items()))
        if picture is not None:
            show(f"wrote {picture}")
