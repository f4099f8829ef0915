"""`hops schedule search`: the best program for given stage times, with a certificate of how good it is."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.options import JsonOption

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
) -> None:
    """Search the program with the shortest makespan, and say how far from a proven bound it is.

    The budget becomes a number of iterations at a fixed rate, so that the same call gives the same programs. With
    --json, one object a line for each pipeline, in the file's order. Exit code 1 if one microbatch does not fit.
    """
    import json

    from hops.cli.console import show
    from hops.schedule.search import iterations_for, read_profiles, search_report, warm_up
    from hops.schedule.search import search as search_program

    seconds = parse_budget(budget)
    named = read_profiles(profile)
    warm_up()
    reports = []
    for each in named:
        started = time.perf_counter()
        iterations = iterations_for(seconds, each.profile)
        result = search_program(each.profile, iterations=iterations, seed=seed)
        report = search_report(each.name, result, (time.perf_counter() - started) * 1e3)
        if as_json:
            typer.echo(json.dumps(report, allow_nan=False))
        reports.append(report)
    if not as_json:
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
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("pipeline", no_wrap=True)
    for heading in ("makespan\nms", "bound\nms", "gap\n%", "best built-in\nms", "gain\n%", "search\nms"):
        table.add_column(heading, justify="right")
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
