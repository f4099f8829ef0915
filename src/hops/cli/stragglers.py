"""`hops stragglers`: which device or link of a recorded run is slow, since when, and what it costs."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.options import JsonOption

RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE", help="A run folder, a trace file, or a spec, which is simulated.", show_default=False
    ),
]


def stragglers(
    run: RunArgument,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", metavar="SPEC", help="What the stages should take; else they are taken as equal work."),
    ] = None,
    least: Annotated[
        float, typer.Option("--least", metavar="FACTOR", help="How many times slower is worth a word.")
    ] = 1.03,
    warmup: Annotated[
        int | None,
        typer.Option("--warmup", metavar="N", min=0, help="Leading iterations left out; default: found in the trace."),
    ] = None,
    format_name: Annotated[
        str, typer.Option("--format", metavar="NAME", help="megatron, kineto, csv or hops; default: guessed.")
    ] = "",
    *,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Drop faulty lines and count them, instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Find devices and links that got slow, or are slower than others of equal work, with evidence and cost.

    Exit code 0 whether or not there are any.
    """
    from dataclasses import asdict

    from hops.api import build, load
    from hops.cli.console import show, show_json
    from hops.cli.recorded import opened
    from hops.goodput.stragglers import find_stragglers
    from hops.report.stragglers import render_stragglers

    recorded = opened(run, format_name=format_name, lenient=lenient, warmup=warmup)
    expected = None if spec is None else build(load(spec)).profile
    found = find_stragglers(
        recorded.trace, warmup_iterations=recorded.facts.warmup_iterations, expected=expected, least=least
    )
    if as_json:
        show_json({"run": recorded.name, "stragglers": [asdict(each) for each in found]})
    else:
        show(render_stragglers(recorded.title, found))
