"""Where the time of an iteration goes: bars that sum to it, in milliseconds of a mean rank."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from hops.axes import Axis
from hops.cost.analytic import AnalyticCosts
from hops.cost.base import CostModel, WrappedCosts
from hops.metrics.bubble import bubbles
from hops.metrics.critical_path import critical_paths
from hops.metrics.iterations import Iterations, is_action
from hops.program.action import ACTION_OPS, Op

NS_PER_MS = 1e6
USEFUL, RECOMPUTE, OPTIMIZER = "useful work", "recomputation", "optimizer step"
CAUSES = {
    "warm_up_cool_down": "pipeline: warm-up and cool-down",
    "imbalance": "pipeline: uneven work",
    "messages": "pipeline: waiting for messages",
    "fault": "faults",
    "step": "end of the iteration: reductions, waiting, host",
}

Shares = Mapping[tuple[int, Op], Mapping[str, float]]
"""By stage and op, which part of its time is not useful work, by name of the bar; what is not named is useful."""


class Bar(NamedTuple):
    """One bar: mean over ranks and iterations."""

    name: str
    ms: float


class PathShare(NamedTuple):
    """One kind of piece of the critical path, and its time in a mean iteration."""

    what: str
    ms: float


class Explained(NamedTuple):
    """An iteration, cut in two ways; the bars sum to `iteration_ms`, and so do the steps.

    Attributes:
        iteration_ms: mean iteration.
        bars: what a mean rank does and waits for.
        path: the critical path: what would have to be shorter for the iteration to be shorter; the longest first.
    """

    iteration_ms: float
    bars: tuple[Bar, ...]
    path: tuple[PathShare, ...]


def explain(run: Iterations, shares: Shares) -> Explained:
    """Both cuts of the iterations that count."""
    count, ranks = run.num_iterations, run.num_ranks
    idle = bubbles(run).iteration
    per_rank = NS_PER_MS * count * ranks
    spent: defaultdict[str, float] = defaultdict(float)
    for (stage, op), busy in _busy(run).items():
        lost = shares.get((stage, op), {})
        for name, part in lost.items():
            spent[name] += part * busy
        spent[USEFUL] += busy * (1 - sum(lost.values()))
    spent[OPTIMIZER] = float(idle.busy_ns.sum()) - sum(spent.values())
    for cause, name in CAUSES.items():
        spent[name] = float(sum(idle.by_cause[each].sum() for each in idle.by_cause if each.value == cause))
    paths = critical_paths(run)
    path = [
        PathShare(str(term), float(total) / NS_PER_MS / count)
        for term, total in zip(paths.terms, paths.spent_ns.sum(axis=0), strict=True)
    ]
    return Explained(
        iteration_ms=idle.window_ns / NS_PER_MS / count,
        bars=tuple(Bar(name, value / per_rank) for name, value in spent.items() if abs(value) >= 1),
        path=tuple(sorted((step for step in path if step.ms > 0), key=lambda step: -step.ms)),
    )


def _busy(run: Iterations) -> dict[tuple[int, Op], float]:
    """Nanoseconds of all actions of a stage and op."""
    rows = run.compute_rows()
    action = is_action(run.trace)[rows.row]
    found: defaultdict[tuple[int, Op], float] = defaultdict(float)
    stages, ops = run.trace.stage[rows.row[action]], run.trace.op[rows.row[action]]
    for stage, op, busy in zip(stages.tolist(), ops.tolist(), rows.busy[action].tolist(), strict=True):
        found[stage, Op(op)] += busy
    return found


def shares_of(costs: CostModel) -> Shares:
    """What of each op is recomputation or a collective, as the cost model has it; {} where times are stated."""
    while isinstance(costs, WrappedCosts):
        costs = costs.inner
    if not isinstance(costs, AnalyticCosts):
        return {}
    return {
        (stage, op): found
        for stage in range(costs.num_stages)
        for op in ACTION_OPS
        if (found := _of_op(costs, stage, op))
    }


def _of_op(costs: AnalyticCosts, stage: int, op: Op) -> dict[str, float]:
    """W has neither; what recomputation adds to B is I's alone."""
    seconds = costs.seconds(stage, op)
    if op is Op.W or not seconds > 0:
        return {}
    scale = costs.split_overhead if op is Op.I else 1.0
    terms = costs.terms(stage, Op.F if op is Op.F else Op.B)
    named = {RECOMPUTE: terms["recompute"]} if "recompute" in terms else {}
    named |= {f"{axis.value} collectives": terms[axis.value] for axis in Axis if axis.value in terms}
    return {name: scale * value / seconds for name, value in named.items() if value > 0}
