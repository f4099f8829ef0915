"""`hops bench`: tables that compare HOPS with what others have published."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hops.cli.console import JsonOption, QuietOption
from hops.cli.schedule import BudgetOption

if TYPE_CHECKING:
    from rich.table import Table

    from hops.diagnose.versus import Versus
    from hops.rehearse.experiment import Case

app = typer.Typer(help="Compare with published benchmarks.", no_args_is_help=True)
COST_MODELS = {"as given": False, "B := I + W": True}


@app.callback()
def _bench() -> None:
    """Compare with published benchmarks."""


@app.command()
def hetero16(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Pipelines in the same form; default: the 16 themselves.")
    ] = None,
    budget: BudgetOption = "300ms",
    jitter: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Normal noise on every action, as a fraction.")
    ] = 0.05,
    memory: Annotated[str, typer.Option(help="Activations each stage may hold: none (no limit), p, or 1f1b.")] = "none",
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """The 16 pipelines of the original HOPS: 1F1B, zero bubble, its rule and hops_hetero, under two cost models.

    As given, a split backward costs more than a fused one; with B := I + W splitting is free. Each is timed as planned
    and with jitter (seeds 42 to 44, the same noise for all schedules).
    """
    from dataclasses import asdict

    from hops.cli.console import show, show_json
    from hops.cli.schedule import parse_budget
    from hops.diagnose.versus import HETERO16, read_hetero16, versus, versus_report
    from hops.search.search import warm_up

    seconds = parse_budget(budget)
    warm_up()
    found = {
        name: [
            versus(named, jitter=jitter, budget_s=seconds)
            for named in read_hetero16(file or HETERO16, fused_is_sum=fused_is_sum, memory=memory)
        ]
        for name, fused_is_sum in COST_MODELS.items()
    }
    reports = {name: [versus_report(rows, rival) for rival in rivals_of(rows)] for name, rows in found.items()}
    if as_json:
        show_json(
            {
                name: {"pipelines": [asdict(row) for row in rows], "against": reports[name]}
                for name, rows in found.items()
            }
        )
        return
    if quiet:
        return
    for name, rows in found.items():
        show(_pipelines(name, rows))
    show(_gains(reports))


def rivals_of(rows: "Sequence[Versus]") -> list[str]:
    """The schedules beside the searched one."""
    return [name for name in rows[0].planned_ms if name != "hops_hetero"]


def _pipelines(costs: str, rows: "Sequence[Versus]") -> "Table":
    from rich.box import SIMPLE_HEAD

    from hops.report.tables import FittedTable

    table = FittedTable(box=SIMPLE_HEAD, pad_edge=False, title=f"ms per iteration, costs {costs}", title_justify="left")
    table.add_column("pipeline", no_wrap=True)
    names = list(rows[0].planned_ms)
    for heading in [*names, "bound", "gap %"]:
        table.add_column(heading.replace("_", "_\n", 1), justify="right", no_wrap=True)
    for row in rows:
        times = [_ms(row.planned_ms[name]) for name in names]
        searched = row.planned_ms["hops_hetero"]
        gap = "-" if searched is None else f"{100 * (searched / row.bound_ms - 1):.2f}"
        table.add_row(row.name, *times, _ms(row.bound_ms), gap)
    return table


def _gains(reports: dict[str, list[dict[str, Any]]]) -> "Table":
    from rich.box import SIMPLE_HEAD

    from hops.report.tables import FittedTable

    table = FittedTable(box=SIMPLE_HEAD, pad_edge=False, title="what hops_hetero gains", title_justify="left")
    for heading in ("costs", "against", "timed"):
        table.add_column(heading, no_wrap=True)
    for heading in ("wins", "ties", "lost", "mean\n%", "low\n%", "high\n%"):
        table.add_column(heading, justify="right", no_wrap=True)
    for costs, against in reports.items():
        for report in against:
            for kind in ("planned", "jittered"):
                part = report[kind]
                gains = (
                    (f"{part[f'{which}_gain_pct']:.2f}" for which in ("mean", "min", "max"))
                    if part["pipelines"]
                    else ()
                )
                counts = (str(part[key]) for key in ("wins", "ties", "regressions"))
                table.add_row(costs, report["rival"], kind, *counts, *gains)
    return table


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


CleanOption = Annotated[
    int, typer.Option("--iterations", "-n", min=1, max=100, help="Clean iterations that are wanted of each.")
]


@app.command("rehearse")
def rehearse_schedules(
    ranks: Annotated[int, typer.Option("--ranks", "-p", min=2, max=16, help="Ranks, a process each.")] = 4,
    p2p: Annotated[str, typer.Option("--p2p", metavar="NAME", help="overlapped or posted.")] = "overlapped",
    iterations: CleanOption = 1,
    *,
    as_json: JsonOption = False,
) -> None:
    """Every schedule in PyTorch's runtime on equal stages, messages of 0 and 3 ms: simulated against measured times."""
    from hops.rehearse.experiment import schedule_cases

    _experiment([list(schedule_cases(ranks, p2p=p2p))], iterations, as_json=as_json)


@app.command("rehearse-hetero")
def rehearse_hetero(
    layouts: Annotated[
        int, typer.Option("--layouts", min=0, max=16, help="How many of the original's 16 pipelines, too.")
    ] = 16,
    eight: Annotated[bool, typer.Option("--eight/--no-eight", help="Pipelines of 8 stages, too.")] = True,
    iterations: CleanOption = 1,
    *,
    as_json: JsonOption = False,
) -> None:
    """Pipelines with one slow stage, and the original's: which schedule wins where, simulated and run in PyTorch.

    A process per rank. Takes some minutes, and a machine that does little else: rows that were not clean are marked.
    """
    from itertools import islice

    from hops.diagnose.versus import hetero_times
    from hops.rehearse.experiment import layout_cases, slow_stage_cases

    given = dict(islice(hetero_times().items(), layouts))
    groups = [[*slow_stage_cases(4), *layout_cases(given)], *([list(slow_stage_cases(8))] if eight else [])]
    _experiment(groups, iterations, as_json=as_json)


def _experiment(groups: "list[list[Case]]", iterations: int, *, as_json: bool) -> None:
    from dataclasses import asdict

    from hops.cli.console import show, show_json
    from hops.rehearse.experiment import ranked, run_cases
    from hops.rehearse.rehearsal import RehearsalEffort
    from hops.report.rehearsal import render_experiment

    effort = RehearsalEffort(iterations=iterations, attempts=6 * iterations, budget_s=20.0 * iterations)
    rows = [row for cases in groups for row in run_cases(cases, effort)]
    if as_json:
        show_json({"rows": [asdict(row) for row in rows], "pairs": asdict(ranked(rows))})
        return
    show(render_experiment(rows, ranked(rows)))
