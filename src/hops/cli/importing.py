"""`hops import`: a real launch becomes a spec."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Turn another tool's launch into a spec.", no_args_is_help=True)


@app.command()
def megatron(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run folder with run.yaml, a run.yaml, or a launch script."),
    ] = None,
    flags: Annotated[
        str, typer.Option("--flags", metavar="TEXT", help="The flags themselves, as one quoted text, instead of RUN.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The spec to write; default: standard output.")
    ] = None,
    devices: Annotated[
        str, typer.Option("--devices", metavar="A,B,...", help="With flags: the device of each rank, in rank order.")
    ] = "",
    iterations: Annotated[int, typer.Option(min=1, help="Iterations that the spec simulates.")] = 5,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Fitted costs: a profile beside the spec, or `megatron-aws`.")
    ] = "",
    *,
    compare: Annotated[
        bool, typer.Option(help="Where RUN holds a trace, print the simulated beside the measured iteration time.")
    ] = True,
) -> None:
    """Turn a Megatron-LM launch into a spec."""
    from hops.errors import UsageError
    from hops.files import atomic_write
    from hops.importers.megatron.launch import launch_from_flags, read_launch
    from hops.importers.megatron.spec import spec_text
    from hops.importers.megatron.trace import has_trace
    from hops.spec.load import loads

    if (source is None) == (not flags):
        raise UsageError("give either RUN or --flags, such as: hops import megatron launch.sh --devices h100,l4")
    listed = [name.strip() for name in devices.split(",") if name.strip()]
    launch = launch_from_flags(flags, listed) if source is None else read_launch(source, listed)
    text = spec_text(launch, iterations=iterations, profile=profile)
    folder = Path() if output is None else output.parent
    loads(text, name=str(output or "imported spec"), folder=folder)  # what HOPS cannot run is said now
    if output is None:
        typer.echo(text, nl=False)
        return
    with atomic_write(output) as out:
        out.write(text)
    typer.echo(f"wrote {output}; next: hops run {output}")
    if compare and source is not None and has_trace(source):
        _compare(source, output)


def _compare(source: Path, spec: Path) -> None:
    """Print what was measured beside what the imported spec predicts."""
    from hops.cli.console import show
    from hops.cli.recorded import audited, opened
    from hops.report.comparison import render_beside

    measured, simulated = (audited(opened(path)).audit for path in (source, spec))
    show("", render_beside(measured, simulated))
    typer.echo(f"where they differ: hops trace diff {source} {spec}")
