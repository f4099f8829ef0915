"""Chimera: two copies of the model, one down the ranks and one up, in units of p microbatches (arXiv 2107.06925).

Every action has a slot, as long as F and as B: in a unit each direction begins a forward every second slot, and its
microbatches turn at the last stage. The order is that of the authors' `chimera_pipeline_rank.py`.
"""

import numpy as np

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.builders import in_order, kind_of
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.dualpipe import check_even
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("chimera")
class Chimera(StaticScheduler):
    """Whole backwards, both directions at once: good for about as many microbatches as ranks."""

    needs = "p and m even"

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError unless ranks and microbatches are even."""
        check_even("chimera", num_ranks, num_microbatches)
        return Shape.both_ways(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        return in_order(profile.shape, [_order(profile.shape, rank) for rank in range(profile.shape.num_ranks)])


def _order(shape: Shape, rank: int) -> tuple[IntArray, IntArray]:
    """A rank's kinds and microbatches by their slots."""
    ranks = shape.num_ranks
    unit, member = np.divmod(np.arange(shape.num_microbatches), ranks)
    goes_up = member >= ranks // 2  # the first half of a unit goes down
    stage = np.where(goes_up, ranks - 1 - rank, rank)  # of its own copy
    begins = 2 * ranks * unit + 2 * np.where(goes_up, member - ranks // 2, member)
    slots = np.concatenate([begins + stage, begins + 2 * ranks - 1 - stage])
    down, up = shape.stages_of(rank)
    kinds = np.concatenate([np.where(goes_up, kind_of(up, op), kind_of(down, op)) for op in (Op.F, Op.B)])
    order = np.argsort(slots)
    return kinds[order], np.tile(np.arange(shape.num_microbatches), 2)[order]
