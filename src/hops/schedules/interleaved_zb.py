"""Interleaved zero bubble: interleaved chunks, every backward split (PyTorch's ScheduleInterleavedZeroBubble)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.builders import at_least, counted
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler, chunks_of
from hops.schedules.chunk_tables import chunk_turns, equal_groups
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("interleaved_zb")
class InterleavedZeroBubble(StaticScheduler):
    """Warms up with half of interleaved 1F1B's extra forwards per rank; rank s runs its first W after its I number s.

    Args:
        chunks: stages per rank, at least 2.
    """

    needs = "m divides into m // p groups, or is less than p"

    def __init__(self, *, chunks: int = 2) -> None:
        self.chunks = at_least("chunks", chunks, 2)

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:
        if chunks_of(placement) >= 2:
            yield {"chunks": chunks_of(placement)}

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError if the microbatches do not divide into groups of p or a little more."""
        equal_groups("interleaved_zb", num_ranks, num_microbatches)
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        group = equal_groups("interleaved_zb", shape.num_ranks, shape.num_microbatches)
        return counted(shape, [self._order(shape, rank, group) for rank in range(shape.num_ranks)])

    def _order(self, shape: Shape, rank: int, group: int) -> IntArray:
        """Turn j has a forward (while there are any), an I, and the W of the I that was `rank` turns before."""
        (forwards, _), (backwards, _) = chunk_turns(shape, rank, group)
        inputs, weights = backwards - Op.B + Op.I, backwards - Op.B + Op.W
        total = len(forwards)
        warmup = min((self.chunks - 1) * group + shape.num_ranks - 1 - rank, total)
        late = min(rank, total)
        none = np.full(total, -1)
        turns = np.stack([none, inputs, none], axis=1)
        turns[: total - warmup, 0] = forwards[warmup:]
        turns[late:, 2] = weights[: total - late]
        steady = turns.reshape(-1)
        return np.concatenate([forwards[:warmup], steady[steady >= 0], weights[total - late :]])
