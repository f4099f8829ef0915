"""`hops import`: a real launch, a published model or a measured run becomes a spec."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hops.importers.megatron.settings import Sorted

app = typer.Typer(help="Turn another tool's launch or model, or a measured run, into a spec.", no_args_is_help=True)


@app.command()
def megatron(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="A launch script, a model_config.yaml, a run folder with run.yaml, or a run.yaml.",
        ),
    ] = None,
    flags: Annotated[
        str, typer.Option("--flags", metavar="TEXT", help="The flags themselves, as one quoted text, instead of RUN.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The spec to write; default: standard output.")
    ] = None,
    devices: Annotated[
        str,
        typer.Option("--devices", metavar="A,B,...", help="The device of each rank, in rank order, or one for all."),
    ] = "",
    hosts: Annotated[
        str,
        typer.Option("--hosts", metavar="NxMxTYPE", help="Hosts x devices each x type, such as 2x8xh100,1x4xl4."),
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A variable or argument (1=...) that the script's caller sets."
        ),
    ] = None,
    vocab: Annotated[
        int, typer.Option("--vocab", metavar="N", min=0, help="Words of the vocabulary, where a tokenizer decides it.")
    ] = 0,
    command: Annotated[
        int, typer.Option("--command", metavar="N", min=0, help="Which command, in a script with several that train.")
    ] = 0,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="FLAG", help="Leave out a flag that HOPS cannot follow, or several with commas."
        ),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations that the spec simulates.")] = 5,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="Fitted costs: a profile beside the spec, or `megatron-aws`.")
    ] = "",
    *,
    compare: Annotated[
        bool, typer.Option(help="Where RUN holds a trace, print the simulated beside the measured iteration time.")
    ] = True,
) -> None:
    """Turn a Megatron-LM launch into a spec; the script is read, never run.

    Every flag is applied, or known to change nothing here, and listed; a launch with any other is refused.
    """
    from hops.errors import UsageError
    from hops.files import atomic_write
    from hops.importers.megatron.launch import launch_from_flags, read_launch
    from hops.importers.megatron.source import Asked
    from hops.importers.megatron.spec import spec_text
    from hops.importers.megatron.trace import has_trace
    from hops.spec.load import loads

    if (source is None) == (not flags):
        raise UsageError("give either RUN or --flags, such as: hops import megatron launch.sh --devices h100,l4")
    listed = [name.strip() for name in devices.split(",") if name.strip()]
    asked = Asked(devices=listed, hosts=hosts, vocab=vocab, given=_assigned(settings or ()), command=command,
                  without=_names(without or ()))  # fmt: skip
    launch = launch_from_flags(flags, listed, asked=asked) if source is None else read_launch(source, asked=asked)
    text = spec_text(launch, iterations=iterations, profile=profile)
    folder = Path() if output is None else output.parent
    loads(text, name=str(output or "imported spec"), folder=folder)  # what HOPS cannot run is said now
    if output is None:
        typer.echo(text, nl=False)
        _list(launch.arguments, to_error=True)
        return
    with atomic_write(output) as out:
        out.write(text)
    _list(launch.arguments, to_error=False)
    typer.echo(f"wrote {output}; next: hops run {output}")
    if compare and source is not None and has_trace(source):
        _compare(source, output)


@app.command()
def trace(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="A recorded run, whatever `hops trace` reads; of several, the first one's program and messages.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The spec to write.")],
    format_name: Annotated[str, typer.Option("--format", metavar="NAME", help="Of the run; default: guessed.")] = "",
    warmup: Annotated[
        int | None,
        typer.Option("--warmup", metavar="N", min=0, help="Leading iterations left out; default: found in the trace."),
    ] = None,
    *,
    lenient: Annotated[bool, typer.Option("--lenient", help="Drop faulty lines and count them.")] = False,
    align_clocks: Annotated[bool, typer.Option("--align-clocks", help="Set hosts' clocks back first.")] = False,
    compare: Annotated[bool, typer.Option(help="Print the simulated beside the measured times.")] = True,
) -> None:
    """Turn a measured run into a spec: program as it ran, times of ops and stages, messages, host, iteration end.

    Nothing in it says why: change what you like, and see what it would bring (`hops run`, `hops whatif`).
    """
    from hops.cli.recorded import opened
    from hops.files import atomic_write
    from hops.importers.measured_spec import measured_spec
    from hops.metrics.iterations import Iterations
    from hops.spec.load import load

    recorded = [
        opened(run, format_name=format_name, lenient=lenient, align_clocks=align_clocks, warmup=warmup) for run in runs
    ]
    program = output.with_suffix(".program.txt")
    found = measured_spec(
        [Iterations.of(each.trace, each.facts) for each in recorded],
        name=recorded[0].name,
        program_file=program.name,
    )
    for path, text in ((program, f"{found.program}\n"), (output, found.text)):
        with atomic_write(path) as out:
            out.write(text)
    load(output)
    for note in (*(note for each in recorded for note in each.notes), *found.notes):
        typer.echo(f"note: {note}")
    typer.echo(f"wrote {output} and {program.name}; next: hops run {output}")
    if compare:
        _compare(runs[0], output)


@app.command()
def hf(
    source: Annotated[Path, typer.Argument(metavar="CONFIG", help="The config.json of a Hugging Face model.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The spec to write; default: standard output.")
    ] = None,
    hosts: Annotated[
        str, typer.Option("--hosts", metavar="NxMxTYPE", help="Hosts x devices each x type; a stage on each device.")
    ] = "1x8xh100",
    microbatches: Annotated[int, typer.Option(min=1, help="Microbatches of an iteration.")] = 32,
    sequence_length: Annotated[
        int, typer.Option("--sequence-length", metavar="N", min=0, help="Tokens of a sample; default: at most 4096.")
    ] = 0,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="KEY", help="Leave out a key that HOPS does not know, or several by commas."),
    ] = None,
) -> None:
    """Turn a Hugging Face model into a spec, with its shape written out.

    Every key is applied, or known to change nothing here, and listed; a file with any other is refused.
    """
    from hops.files import atomic_write
    from hops.importers.hugging_face import model_spec_text
    from hops.importers.megatron.hosts import stated_hosts
    from hops.importers.megatron.settings import Sorted
    from hops.model.hugging_face import read_hugging_face
    from hops.spec.load import loads

    left_out = tuple(_names(without or ()))
    model = read_hugging_face(source, without=left_out)
    text = model_spec_text(
        model,
        stated_hosts(hosts),
        name=source.name,
        microbatches=microbatches,
        sequence_length=sequence_length or None,
    )
    folder = Path() if output is None else output.parent
    loads(text, name=str(output or "imported spec"), folder=folder)  # what HOPS cannot run is said now
    if output is None:
        typer.echo(text, nl=False)
    else:
        with atomic_write(output) as out:
            out.write(text)
    keys = Sorted(applied=model.applied, nothing=model.nothing, left_out=left_out)
    _list(keys, to_error=output is None)
    if output is not None:
        typer.echo(f"wrote {output}; next: hops run {output}")


def _names(texts: Sequence[str]) -> list[str]:
    """Flags of every --without, each of which may hold several with commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _assigned(texts: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE of every --set."""
    from hops.errors import UsageError

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not (name.isidentifier() or name.isdigit()):
            raise UsageError(f"--set {text}: expected NAME=VALUE, such as --set WORLD_SIZE=16")
        found[name] = value
    return found


def _list(arguments: "Sorted", *, to_error: bool) -> None:
    """Print what was done about the flags: to standard error where the spec goes to standard output."""
    for title, every in (
        ("applied", arguments.applied),
        ("change nothing that HOPS models", arguments.nothing),
        ("left out, as asked", arguments.left_out),
        ("note", arguments.notes),
    ):
        if every:
            typer.echo(f"{title}:", err=to_error)
            for each in every:
                typer.echo(f"  {each}", err=to_error)


def _compare(source: Path, spec: Path) -> None:
    """Print what was measured beside what the imported spec predicts."""
    from hops.cli.console import show
    from hops.cli.recorded import audited, opened
    from hops.report.comparison import render_beside

    measured, simulated = (audited(opened(path)).audit for path in (source, spec))
    show("", render_beside(measured, simulated))
    typer.echo(f"where they differ: hops trace diff {source} {spec}")
