"""Plans in a terminal: a ranked table, what limits each, and how far from the bound the best one is."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.planner.result import Plan, PlanReport
from hops.report.tables import count, milliseconds, number, plain_table

_NAMES = {
    "throughput": "throughput",
    "iteration_time": "iteration time",
    "cost_per_token": "cost per token",
    "pareto": "throughput, memory and cost: no plan here beats another in all three",
}


def render_plans(report: PlanReport) -> RenderableType:
    """What `hops plan` prints. Fits 80 columns; long placements are folded into runs of one kind of device."""
    best = report.plans[0]
    parts: list[RenderableType] = [_headline(report, best), Text(), _table(report.plans), Text()]
    for place, plan in enumerate(report.plans, start=1):
        parts += [_layout(place, plan)]
    parts += [Text(), Text(_effort(report), style="dim")]
    return Group(*parts)


def _headline(report: PlanReport, best: Plan) -> Text:
    return Text.assemble(
        ("best plan", "bold"),
        f" by {_NAMES[report.objective]}: {milliseconds(1e3 * best.seconds)} an iteration, ",
        f"{100 * best.gap:.2f} % above what no plan can beat",
        "" if not report.effort.exhaustive else "; proved best: nothing left could be better",
    )


def _table(plans: Sequence[Plan]) -> Table:
    per_token = plans[0].spec.pipeline.sequence_length is not None
    table = plain_table("", "iteration\nms", "tokens/s" if per_token else "samples/s", "gap\n%")
    for title in ("USD per\nM tokens" if per_token else "USD per\nM samples", "mem.\n%", "GPUs"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("schedule", no_wrap=True)
    for place, plan in enumerate(plans, start=1):
        rates = plan.summary.throughput
        table.add_row(
            Text(str(place), style="bold"),
            number(1e3 * plan.seconds),
            number(rates.tokens_per_s if rates.tokens_per_s is not None else rates.samples_per_s or 0.0),
            f"{100 * plan.gap:.2f}",
            number(plan.cost_per_million),
            "-" if plan.fullness is None else f"{100 * plan.fullness:.0f}",
            str(len(plan.spec.hardware.ranks())),
            _schedule(plan),
        )
    return table


def _schedule(plan: Plan) -> str:
    """Name of the schedule, with its chunks where there are several."""
    schedule = plan.spec.pipeline.schedule
    chunks = len(plan.summary.stages) // len(plan.summary.ranks)
    return schedule.name + (f" x{chunks}" if chunks > 1 else "")


def _settings(plan: Plan) -> str:
    pipeline = plan.spec.pipeline
    recompute = "no recompute" if pipeline.recompute == "none" else f"{pipeline.recompute} recompute"
    size = count(pipeline.microbatches, "microbatch", "microbatches")
    return f"{_schedule(plan)}, {size} of {pipeline.microbatch_size}, {recompute}"


def _layout(place: int, plan: Plan) -> Table:
    """Devices with their layers, in order, and what limits the plan."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(str(place), layout_text(plan))
    grid.add_row("", Text(f"{_settings(plan)}; {plan.limit}", style="dim"))
    return grid


def layout_text(plan: Plan) -> str:
    """`2 x l4: 3 3 -> h100-sxm: 12`: runs of one kind of device with the layers of each, in the order of the model."""
    partition = plan.spec.pipeline.partition
    ranks = len(plan.summary.ranks)
    kinds = [rank.device.split(" ", 1)[0] for rank in plan.summary.ranks]
    if not isinstance(partition, tuple):
        return " -> ".join(_run(kind, len(list(run)), str(partition)) for kind, run in groupby(kinds))
    if len(partition) > ranks:
        runs = " -> ".join(_run(kind, len(list(run)), "") for kind, run in groupby(kinds))
        return f"{runs} with layers {' '.join(map(str, partition))} by stage"
    paired = zip(kinds, partition, strict=True)
    return " -> ".join(
        _run(kind, len(layers), _layers(layers))
        for kind, layers in (
            (kind, [each for _, each in run]) for kind, run in groupby(paired, key=lambda pair: pair[0])
        )
    )


def _run(kind: str, size: int, layers: str) -> str:
    name = kind if size == 1 else f"{size} x {kind}"
    return f"{name}: {layers}" if layers else name


def _layers(layers: Sequence[int]) -> str:
    """`3 3 5`; many are folded: `12 x 1, 5`."""
    if len(layers) <= 4:
        return " ".join(map(str, layers))
    runs = [(value, len(list(run))) for value, run in groupby(layers)]
    return ", ".join(str(value) if size == 1 else f"{size} x {value}" for value, size in runs)


def _effort(report: PlanReport) -> str:
    effort = report.effort
    said = (
        f"{count(effort.layouts, 'layout')} valued, {count(effort.rehearsed, 'program')} rehearsed, "
        f"{count(effort.simulated, 'plan')} simulated; bound {milliseconds(report.bound_ms)}"
    )
    return f"{said}; interrupted, best so far" if effort.interrupted else said
