"""`hops schedule`: look at a schedule's program, check a program of your own."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.console import JsonOption, QuietOption

if TYPE_CHECKING:
    from rich.table import Table

BudgetOption = Annotated[
    str, typer.Option("--budget", "-b", metavar="TIME", help="How long to search, such as 300ms or 1 s.")
]


def search(
    profile: Annotated[
        Path, typer.Argument(metavar="PROFILE", help="Stage times: a .json file, or a .jsonl file with one a line.")
    ],
    budget: BudgetOption = "300ms",
    seed: Annotated[int, typer.Option(min=0, help="Of the random choices.")] = 0,
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search the program with the shortest makespan, and say how far from a proven bound it is.

    The budget becomes a number of iterations at a fixed rate, so that the same call gives the same programs. With
    --json, one object a line for each pipeline, in the file's order. Exit code 1 if one microbatch does not fit.
    """
    import json

    from hops.cli.console import emit_json, show
    from hops.schedules.builtins import search_from_builtins
    from hops.search.search import iterations_for, search_report, warm_up
    from hops.timing.examples import read_profiles

    seconds = parse_budget(budget)
    named = read_profiles(profile)
    warm_up()
    reports = []
    for each in named:
        started = time.perf_counter()
        iterations = iterations_for(seconds, each.profile)
        result = search_from_builtins(each.profile, iterations=iterations, seed=seed)
        report = search_report(each.name, result, (time.perf_counter() - started) * 1e3)
        reports.append(report)
    if as_json:
        emit_json("".join(json.dumps(report, allow_nan=False) + "\n" for report in reports))
    elif not quiet:
        show(_table(reports))


def parse_budget(text: str) -> float:
    """Seconds of a budget. Raises UsageError."""
    from hops.errors import UnitError, UsageError
    from hops.units import parse_time

    try:
        return parse_time(text)
    except UnitError as error:
        raise UsageError(f"--budget: {error}") from None


def _table(reports: list[dict[str, Any]]) -> "Table":
    from rich.box import SIMPLE_HEAD

    from hops.report.tables import FittedTable

    table = FittedTable(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("pipeline", no_wrap=True)
    for heading in ("makespan\nms", "bound\nms", "gap\n%", "best built-in\nms", "gain\n%", "search\nms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        built_in = min((each for each in report["builtins_ms"].values() if each is not None), default=None)
        table.add_row(
            report["name"],
            f"{report['makespan_ms']:.3f}",
            f"{report['bound_ms']:.3f}",
            f"{report['gap_pct']:.2f}",
            "none fits" if built_in is None else f"{built_in:.3f}",
            "-" if built_in is None else f"{100 * (built_in / report['makespan_ms'] - 1):.2f}",
            f"{report['search_ms']:.0f}",
        )
    gaps = [report["gap_pct"] for report in reports]
    table.caption = f"mean gap {sum(gaps) / len(gaps):.2f} %, worst {max(gaps):.2f} %"
    return table


if TYPE_CHECKING:
    from hops.program.program import Program

app = typer.Typer(help="Show, check and search schedules as programs.", no_args_is_help=True)
app.command("search")(search)
Ranks = Annotated[int, typer.Option("--ranks", "-p", min=1, max=4096, help="Ranks of the pipeline.")]
Microbatches = Annotated[
    int, typer.Option("--microbatches", "-m", min=1, max=65536, help="Microbatches per iteration.")
]

_WIDTH = 100  # of the grid where the output is no terminal
_LEGEND = "F forward, B backward, I and W its halves (inputs, weights); .: idle"
_LEGEND_OF_CHUNKS = "\nlower case: a rank's second chunk (upper case again on its third, and so on)"


@app.command("show")
def show_schedule(
    name: Annotated[
        str, typer.Argument(metavar="SCHEDULE", help="A name from `hops list schedules`, or a program file.")
    ],
    ranks: Ranks = 4,
    microbatches: Microbatches = 8,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the schedule, such as chunks=4."),
    ] = None,
    *,
    as_program: Annotated[bool, typer.Option("--program", help="Print the program file instead of a grid.")] = False,
) -> None:
    """Print a schedule as a grid over time (F, I and W take 1 ms, messages no time), one row per rank."""
    from shutil import get_terminal_size

    from hops.report.schedule import grid
    from hops.timing.longest_path import evaluate
    from hops.timing.stage_costs import StageCosts

    program = named_program(name, ranks, microbatches, parameters or [])
    if as_program:
        typer.echo(str(program))
        return
    evaluation = evaluate(program, StageCosts.uniform(program.shape, f=1e-3, i=1e-3, w=1e-3))
    typer.echo(grid(program, evaluation, width=get_terminal_size((_WIDTH, 0)).columns))
    typer.echo(_LEGEND + (_LEGEND_OF_CHUNKS if program.shape.num_stages > program.shape.num_ranks else ""))


@app.command()
def check(
    path: Annotated[Path, typer.Argument(metavar="PROGRAM", help="A program file.")],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a program: complete, on the right ranks, in a possible order, without deadlock."""
    from hops.cli.console import show_json
    from hops.program.lowering import lower
    from hops.program.postings import postings
    from hops.program.reading import load_program
    from hops.timing.longest_path import evaluate
    from hops.timing.stage_costs import StageCosts

    program = load_program(path)
    early = postings(program, lower(program)).early
    out_of_turn, most = int((early > 1).sum()), int(early.max(initial=0))
    found = evaluate(program, StageCosts.uniform(program.shape))
    if as_json:
        show_json(
            {
                "ranks": program.shape.num_ranks,
                "stages": program.shape.num_stages,
                "microbatches": program.shape.num_microbatches,
                "actions": program.num_actions,
                "peak_in_flight": found.peak_in_flight,
                "receives_posted_out_of_turn": out_of_turn,
            }
        )
        return
    if quiet:
        return
    typer.echo(
        f"{path}: {program.num_actions} actions on {program.shape.num_ranks} ranks can run; most microbatches in "
        f"flight per rank: {' '.join(map(str, found.peak_in_flight))}"
    )
    if out_of_turn:
        typer.echo(
            f"with p2p: posted, {out_of_turn} of {len(early)} receives are posted more than one action early (up to "
            f"{most}), as their peer sends in another order than they are taken"
        )


def named_program(name: str, ranks: int, microbatches: int, parameters: Sequence[str]) -> "Program":
    """The program of a named schedule with uniform times, or of a file."""
    from hops.errors import UsageError
    from hops.program.reading import load_program
    from hops.schedules.base import StaticScheduler
    from hops.spec.schedule import ScheduleChoice
    from hops.timing.stage_costs import StageCosts

    if Path(name).is_file():
        return load_program(Path(name))
    choice = ScheduleChoice.model_validate({"name": name, **dict(map(_parameter, parameters))})
    problems = [": ".join([*map(str, each.path), each.what]) for each in choice.complaints()]
    if problems:
        raise UsageError("\n".join(problems))
    scheduler = choice.make()
    if not isinstance(scheduler, StaticScheduler):
        raise UsageError(f"{name} is a policy: it decides during the run and has no program; see it with hops run")
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


def _parameter(text: str) -> tuple[str, object]:
    from hops.errors import UsageError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"--set: got {text!r}, expected KEY=VALUE, such as chunks=4")
    try:
        return key, int(value)
    except ValueError:
        return key, {"true": True, "false": False}.get(value, value)
