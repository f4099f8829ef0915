"""`hops rehearse`: run a spec's program in a real runtime on this machine, and lay it beside the prediction."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import JsonOption, QuietOption, SetOption, SpecArgument

if TYPE_CHECKING:
    from hops.rehearse.rehearsal import Rehearsal


def rehearse(
    spec: SpecArgument,
    iterations: Annotated[
        int, typer.Option("--iterations", "-n", min=1, max=1000, help="Clean iterations that are wanted.")
    ] = 5,
    overrides: SetOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Keep traces, schedule and logs in this folder."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", "-p", metavar="FILE", help="Draw what happened against what was simulated."),
    ] = None,
    limit: Annotated[
        str, typer.Option("--limit", metavar="TIME", help="End everything after this time; default: as it needs.")
    ] = "",
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where the processes meet; default: a free one.")
    ] = None,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the program in PyTorch's pipeline runtime: a process per rank, each action taking its simulated time.

    Needs torch (pip install 'hops-sim[torch]'), no GPU. Exit code 1 if a rank fails or hangs: the message says
    which, and what each waited for.
    """
    from importlib.metadata import version

    from hops.cli.console import show, show_json
    from hops.rehearse.rehearsal import RehearsalEffort
    from hops.rehearse.rehearsal import rehearse as run
    from hops.report.rehearsal import render_rehearsal
    from hops.spec.load import load

    loaded = load(spec, overrides or ())
    found = run(
        loaded, effort=RehearsalEffort(iterations=iterations), limit_s=_seconds(limit), port=port, folder=output
    )
    if picture is not None:
        _draw(found, spec.name, picture)
    if as_json:
        show_json(found.to_dict())
        return
    if quiet:
        return
    show(render_rehearsal(spec.name, found, runtime=f"PyTorch {version('torch')}"))
    if output is not None:
        show(f"traces are in {output}; next: hops trace diff {output} {spec}")
    if picture is not None:
        show(f"wrote {picture}")


def _seconds(limit: str) -> float | None:
    from hops.errors import UnitError, UsageError
    from hops.units import parse_time

    try:
        return parse_time(limit) if limit else None
    except UnitError as error:
        raise UsageError(f"--limit: {error}") from None


def _draw(found: "Rehearsal", name: str, path: Path) -> None:
    from hops.metrics.summary import RunFacts
    from hops.viz.difference import draw_diff

    measured = ("rehearsed", found.trace, RunFacts())
    draw_diff((f"{name} (simulated)", found.simulated.trace, found.simulated.facts), measured, path)
