"""`hops stragglers`: which device or link of a recorded run is slow, since when, and what it costs."""

from pathlib import Path
from typing import Annotated

import typer

from hops.cli.console import JsonOption, QuietOption, SetOption, SpecArgument

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
        str,
        typer.Option(
            "--format", metavar="NAME", help="megatron, kineto, hops_tracing, primus, csv or hops; default: guessed."
        ),
    ] = "",
    *,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Drop faulty lines and count them, instead of stopping at the first.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find devices and links that got slow, or are slower than others of equal work, with evidence and cost.

    Exit code 0 whether or not there are any.
    """
    from dataclasses import asdict

    from hops.build.setup import build
    from hops.cli.console import show, show_json
    from hops.cli.recorded import opened
    from hops.diagnose.stragglers import find_stragglers
    from hops.report.diagnosis import render_stragglers
    from hops.spec.load import load

    recorded = opened(run, format_name=format_name, lenient=lenient, warmup=warmup)
    expected = None if spec is None else build(load(spec)).expected
    found = find_stragglers(
        recorded.trace, warmup_iterations=recorded.facts.warmup_iterations, expected=expected, least=least
    )
    if as_json:
        show_json({"run": recorded.name, **asdict(found)})
    elif not quiet:
        show(render_stragglers(recorded.title, found))


def whatif(
    spec: SpecArgument,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            "--slow", metavar="DEVICE=FACTOR", help="Everything on a device (or host) takes longer: node0/0=1.1."
        ),
    ] = None,
    slow_link: Annotated[
        list[str] | None,
        typer.Option("--slow-link", metavar="LINK=PART", help="Only a part of a link's (or NIC's) bandwidth is left."),
    ] = None,
    down: Annotated[
        list[str] | None,
        typer.Option(
            "--down", metavar="LINK[=TIME]", help="A link (or NIC) carries nothing from the start on; default 1 s."
        ),
    ] = None,
    schedules: Annotated[
        str | None,
        typer.Option("--schedules", "-s", metavar="A,B,C", help="Schedules to compare; default: the spec's own."),
    ] = None,
    overrides: SetOption = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say what a change costs: the run as it is, and with the change, under each schedule."""
    from dataclasses import asdict

    from hops.cli.console import show, show_json
    from hops.diagnose.what_if import parse_changes, what_if
    from hops.errors import UsageError
    from hops.report.diagnosis import render_what_if
    from hops.spec.load import load

    changes = parse_changes(slow or (), slow_link or (), down or ())
    loaded = load(spec, overrides or ())
    names = [loaded.pipeline.schedule.name] if schedules is None else [each.strip() for each in schedules.split(",")]
    if len(set(names)) != len(names) or "" in names:
        raise UsageError(f"--schedules: got {schedules!r}, expected different names separated by commas")
    found, refused = what_if(loaded, changes, names)
    if as_json:
        rows = {name: {**asdict(each), "longer": each.longer} for name, each in found.items()}
        show_json({"changes": asdict(changes), "schedules": rows, "refused": refused})
    elif not quiet:
        show(render_what_if(changes, found), *(f"{name} cannot run: {why}" for name, why in refused.items()))
