"""`hops whatif`: what one slow device, slow link or link that is down would cost, per schedule."""

from typing import Annotated

import typer

from hops.cli.options import JsonOption, SetOption, SpecArgument


def whatif(
    spec: SpecArgument,
    slow: Annotated[
        list[str] | None,
        typer.Option("--slow", metavar="DEVICE=FACTOR", help="Everything on a device (or host) takes longer."),
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
) -> None:
    """Say what a change costs: the run as it is, and with the change, under each schedule."""
    from dataclasses import asdict

    from hops.api import load
    from hops.cli.console import show, show_json
    from hops.errors import UsageError
    from hops.goodput.whatif import parse_changes, what_if
    from hops.report.whatif import render_what_if

    changes = parse_changes(slow or (), slow_link or (), down or ())
    loaded = load(spec, overrides or ())
    names = [loaded.pipeline.schedule.name] if schedules is None else [each.strip() for each in schedules.split(",")]
    if len(set(names)) != len(names) or "" in names:
        raise UsageError(f"--schedules: got {schedules!r}, expected different names separated by commas")
    found, refused = what_if(loaded, changes, names)
    if as_json:
        rows = {name: {**asdict(each), "longer": each.longer} for name, each in found.items()}
        show_json({"changes": asdict(changes), "schedules": rows, "refused": refused})
    else:
        show(render_what_if(changes, found), *(f"{name} cannot run: {why}" for name, why in refused.items()))
