"""Interleaved 1F1B: several chunks per rank, in Megatron-LM's order (arXiv 2104.04473, section 2.2).

The order, the warm-up and the limits are those of Megatron-LM core's `get_schedule_table` and
`get_pp_rank_microbatches`.
"""

import numpy as np

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import Op
from hops.program.builders import at_least, in_order, kind_of
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("interleaved_1f1b")
class Interleaved1F1B(StaticScheduler):
    """Stage s lies on rank s mod p; a rank runs a group of microbatches through a chunk before it turns to the next.

    Args:
        chunks: stages per rank (Megatron-LM's virtual pipeline size), at least 2.
        microbatch_group_size: microbatches per group (Megatron-LM's microbatch group size per virtual pipeline stage),
            at least the number of ranks, which is the default (None).
    """

    def __init__(self, *, chunks: int = 2, microbatch_group_size: int | None = None) -> None:
        self.chunks = at_least("chunks", chunks, 2)
        self.group = (
            None if microbatch_group_size is None else at_least("microbatch_group_size", microbatch_group_size, 1)
        )

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError where Megatron-LM does: groups from p to m, and no rest of fewer than p microbatches."""
        group = self._group(num_ranks)
        if not num_ranks <= group <= num_microbatches:
            raise UsageError(
                f"interleaved_1f1b: microbatch_group_size must be from {num_ranks} (ranks) to {num_microbatches} "
                f"(microbatches), but got {group}; use more microbatches or another schedule"
            )
        rest = num_microbatches % group
        if 0 < rest < num_ranks:
            raise UsageError(
                f"interleaved_1f1b: {num_microbatches} microbatches in groups of {group} leave {rest}, "
                f"expected 0 or at least {num_ranks} (ranks); use a multiple of {group} microbatches"
            )
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    def build(self, profile: StageCosts) -> Program:
        return in_order(profile.shape, [self._order(profile.shape, rank) for rank in range(profile.shape.num_ranks)])

    def _group(self, num_ranks: int) -> int:
        return num_ranks if self.group is None else self.group

    def _order(self, shape: Shape, rank: int) -> tuple[IntArray, IntArray]:
        group = self._group(shape.num_ranks)
        stages = shape.stages_of(rank)
        forwards = _in_groups(stages, Op.F, shape.num_microbatches, group)
        backwards = _in_groups(stages[::-1], Op.B, shape.num_microbatches, group)
        total = forwards.shape[1]
        warmup = min(2 * (shape.num_ranks - 1 - rank) + (self.chunks - 1) * group, total)
        steady = total - warmup
        turns = np.stack([forwards[:, warmup:], backwards[:, :steady]], axis=2).reshape(2, 2 * steady)
        kinds, microbatches = np.concatenate([forwards[:, :warmup], turns, backwards[:, steady:]], axis=1)
        return kinds, microbatches


def _in_groups(stages: tuple[int, ...], op: Op, num_microbatches: int, group: int) -> IntArray:
    """The stages in turn, each with one group of microbatches; then the next group. Kinds and microbatches: (2, n)."""
    kinds = np.array([kind_of(stage, op) for stage in stages])
    parts = []
    for start in range(0, num_microbatches, group):
        numbers = np.arange(start, min(start + group, num_microbatches))
        parts.append(np.stack([np.repeat(kinds, len(numbers)), np.tile(numbers, len(kinds))]))
    return np.concatenate(parts, axis=1)
