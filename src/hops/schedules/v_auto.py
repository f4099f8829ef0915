"""The automatic V schedule: the shortest of many building blocks within an activation budget (arXiv 2405.15362).

Between V-Min and ZB-V lies a schedule for every budget. As in sail-sg's `v_auto_schedule`, blocks differ in how fast
forwards and backwards move from rank to rank, down the V and up; here each gives actions their nominal order, as in
`v_half`, and memory decides what waits.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product

import numpy as np

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.limits import limited
from hops.schedules.zb_v import PERIOD, ZBV, VMin, block, half_block, min_block, uneven_block
from hops.schedules.zero_bubble import makespan_and_peak
from hops.timing.list_schedule import Rule, list_schedule, list_schedule_by_pattern, rules_of
from hops.timing.order_rows import OrderRows, blank_rows, fill_rows, program_of
from hops.timing.stage_costs import UNLIMITED, CostArrays, StageCosts, cost_arrays

PACES = (1, 2, 3)  # units of time from rank to rank, per direction
PAUSES = (0, 1, 2)  # before the first backward
SHORT = 3  # microbatches per rank after which blocks are compared
FINALISTS = 12  # of them, how many are tried in full
MOST_ACTIONS = 3_000_000  # of all orders that are compared, and again of those tried in full: above, fewer blocks are


@SCHEDULERS.register("v_auto")
class VAuto(StaticScheduler):
    """The V schedule for a budget: of about 250 building blocks the one with the shortest iteration within it.

    Args:
        max_activations: what a rank may hold, as a multiple of one microbatch's activations there (of both stages);
            1.5 is three stage activations. The default (None) is p, what ZB-V holds. The activation budget, if any,
            holds as well. Without sizes, W counts as keeping half of an activation.
    """

    def __init__(self, *, max_activations: float | None = None) -> None:
        known = isinstance(max_activations, int | float) and not isinstance(max_activations, bool)
        if max_activations is not None and not (known and max_activations >= 1):
            raise UsageError(f"max_activations must be a number of at least 1, but got {max_activations!r}")
        self.max_activations = max_activations

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        """Raises UsageError if a rank's memory does not take one microbatch."""
        ranks, size = profile.shape.num_ranks, profile.shape.num_microbatches
        within = limited("v_auto", profile, ranks if self.max_activations is None else self.max_activations)
        blocks = list(_blocks(ranks))
        short = min(size, SHORT * ranks)
        if short < size:
            shape, work = replace(profile.shape, num_microbatches=short), within.microbatch_work[:short]
            fewer = replace(within, shape=shape, microbatch_work=work)
            costs = cost_arrays(fewer)
            blocks = blocks[:: 1 + len(blocks) * costs.num_actions // MOST_ACTIONS]
            makespans = [_ordered(costs, nominal)[0] for nominal in blocks]
            finalists = min(FINALISTS, 1 + MOST_ACTIONS // (size * costs.num_actions // short))
            blocks = [blocks[place] for place in np.argsort(makespans, kind="stable")[:finalists].tolist()]
        costs = cost_arrays(within)
        orders = chain(_known(within, costs), (_ordered(costs, nominal) for nominal in blocks), _cautious(costs))
        makespan, rows = min(orders, key=lambda each: each[0])
        assert makespan < UNLIMITED, "one microbatch at a time always runs"
        return program_of(profile.shape, rows)


def _ordered(costs: CostArrays, nominal: IntArray) -> tuple[int, OrderRows]:
    rows = blank_rows(costs)
    return int(list_schedule_by_pattern.fast(costs, nominal, PERIOD, rows)), rows


def _known(within: StageCosts, costs: CostArrays) -> Iterator[tuple[int, OrderRows]]:
    """ZB-V and V-Min as they are, where they fit: of equals, ZB-V bears slow links best."""
    for schedule in (ZBV(), VMin()):
        rows = blank_rows(costs)
        fill_rows(schedule.build(within), rows)
        yield int(makespan_and_peak.fast(costs, rows)[0]), rows


def _cautious(costs: CostArrays) -> Iterator[tuple[int, OrderRows]]:
    """Orders for budgets in which blocks get stuck: no forward takes the room that its microbatch needs further on."""
    for in_flight in (costs.size, 1):
        policy = np.zeros((len(Rule), costs.num_stages), dtype=np.int64)
        policy[Rule.IN_FLIGHT], policy[Rule.PREFER] = in_flight, 1
        policy[Rule.SPLIT_LAST] = policy[Rule.DEFER] = costs.size
        rows = blank_rows(costs)
        yield int(list_schedule.fast(costs, rules_of(policy), rows)), rows


def _blocks(num_ranks: int) -> Iterator[IntArray]:
    """The blocks of V-Min and V-Half, and those of every combination of paces."""
    yield from (min_block(num_ranks), half_block(num_ranks), uneven_block(num_ranks))
    rank = np.arange(num_ranks)
    below = num_ranks - 1 - rank
    for down, up, back, home, pause in product(PACES, PACES, PACES, PACES, PAUSES):
        f_down = down * rank
        f_up = f_down[-1] + 1 + up * below
        i_up = f_up[0] + 1 + pause + back * rank
        i_down = i_up[-1] + 1 + home * below
        yield block(f_down, f_up, i_up, i_down)
