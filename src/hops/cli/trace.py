"""`hops trace`: look at a run that was recorded (or simulated), set two against each other, change the format."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hops.cli.console import JsonOption, QuietOption

if TYPE_CHECKING:
    from hops.cli.recorded import Recorded
    from hops.report.audit import Audited

app = typer.Typer(help="Read, audit, compare and convert traces of runs.", no_args_is_help=True)

SOURCES = "A run folder, a trace file, or a spec or run.yaml, which is simulated."
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help=SOURCES, show_default=False)]
LenientOption = Annotated[
    bool, typer.Option("--lenient", help="Drop faulty lines and count them, instead of stopping at the first.")
]
AlignOption = Annotated[
    bool,
    typer.Option("--align-clocks", help="Estimate how far hosts' clocks are apart from the order of actions."),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help="megatron, kineto, hops_tracing, primus, csv or hops; default: guessed."
    ),
]
WarmupOption = Annotated[
    int | None,
    typer.Option("--warmup", metavar="N", min=0, help="Leading iterations left out; default: found in the trace."),
]


@app.command("show")
def show_trace(
    run: RunArgument,
    picture: Annotated[
        Path | None, typer.Option("--picture", "-p", metavar="FILE", help="Draw its timeline into a PNG, SVG or PDF.")
    ] = None,
    program: Annotated[
        Path | None,
        typer.Option("--program", metavar="FILE", help="Say whether the run kept to the program in this file."),
    ] = None,
    warmup: WarmupOption = None,
    format_name: FormatOption = "",
    *,
    lenient: LenientOption = False,
    align_clocks: AlignOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Audit a run: stage times, gaps, stalls, bubble, and whether it ran the schedule it is labelled with."""
    from hops.cli.console import show, show_json
    from hops.cli.recorded import audited, opened
    from hops.report.audit import findings, render_audit
    from hops.viz.timeline import draw_timeline

    recorded = opened(run, format_name=format_name, lenient=lenient, align_clocks=align_clocks, warmup=warmup)
    found = audited(recorded, program)
    if picture is not None:
        draw_timeline(recorded.renamed(found.detected), recorded.facts, picture)
    if as_json:
        detected = found.detected
        show_json(
            {
                "name": found.name,
                "schedule": {
                    "labelled": found.label or None,
                    "detected": list(detected.names),
                    "mislabelled": detected.contradicts(found.label),
                    "iterations": detected.iterations,
                    "iterations_in_other_orders": list(detected.others),
                },
                "program": _program(found),
                "findings": list(findings(found)),
                "dropped_events": dict(found.dropped),
                "audit": found.audit.to_dict(),
                "summary": found.summary.to_dict(),
            }
        )
        return
    if quiet:
        return
    show(render_audit(found))
    if picture is not None:
        show(f"wrote {picture}")


def _program(found: "Audited") -> dict[str, object] | None:
    against = found.against
    if against is None:
        return None
    first = None if against.first is None else asdict(against.first)
    return {
        "file": against.name,
        "iterations": against.iterations,
        "iterations_in_other_orders": list(against.others),
        "first_departure": first,
    }


@app.command("diff")
def diff_traces(
    first: Annotated[Path, typer.Argument(metavar="A", help=SOURCES, show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="B", help="Likewise.", show_default=False)],
    picture: Annotated[
        Path | None,
        typer.Option("--picture", "-p", metavar="FILE", help="Draw both timelines and the difference."),
    ] = None,
    warmup: WarmupOption = None,
    format_name: FormatOption = "",
    *,
    lenient: LenientOption = False,
    align_clocks: AlignOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say where the iteration times of two runs differ, by cause, rank, op and link; the terms sum to the difference.

    Measured against simulated: `hops trace diff RUN spec.yaml`.
    """
    from hops.cli.console import show, show_json
    from hops.cli.recorded import audited, opened
    from hops.metrics.difference import break_down, difference
    from hops.report.comparison import render_difference
    from hops.viz.difference import draw_diff

    runs = [
        opened(path, format_name=format_name, lenient=lenient, align_clocks=align_clocks, warmup=warmup)
        for path in (first, second)
    ]
    finds = [audited(each) for each in runs]
    found = difference(*(break_down(each.audit) for each in finds))
    if picture is not None:
        named = [(each.title, each.trace, each.facts) for each in runs]
        draw_diff(named[0], named[1], picture)
    if as_json:
        show_json({"first": str(first), "second": str(second), **found.to_dict()})
        return
    if quiet:
        return
    show(render_difference(found, runs[0].title, runs[1].title))
    if picture is not None:
        show(f"wrote {picture}")


@app.command("convert")
def convert_trace(
    run: RunArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="*.csv, *.csv.gz, *.parquet: raw events; *.json, *.json.gz: for Perfetto.",
        ),
    ],
    format_name: FormatOption = "",
    *,
    lenient: LenientOption = False,
    align_clocks: AlignOption = False,
) -> None:
    """Write a run as raw events or as a Chrome trace for Perfetto; the name's ending says which."""
    from hops.cli.console import show
    from hops.cli.recorded import opened
    from hops.report.overview import write_chrome
    from hops.trace.files import write_events

    recorded = opened(run, format_name=format_name, lenient=lenient, align_clocks=align_clocks, warmup=0)
    if output.name.lower().endswith((".json", ".json.gz")):
        write_chrome(recorded.trace, output, recorded.facts)
    else:
        write_events(recorded.trace, output)
    _say_dropped(recorded)
    show(f"wrote {output}: {len(recorded.trace)} rows of {recorded.trace.num_iterations} iterations")


def _say_dropped(recorded: "Recorded") -> None:
    for reason, events in recorded.dropped.items():
        typer.echo(f"dropped {events}: {reason}", err=True)
    for note in recorded.notes:
        typer.echo(note, err=True)
