"""Looped breadth-first: every microbatch through a chunk before the next chunk (arXiv 2211.05953)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.builders import at_least, in_order, kind_of
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler, chunks_of
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("looped_bfs")
class LoopedBFS(StaticScheduler):
    """All forwards chunk by chunk, then all backwards from the last chunk and the last microbatch back.

    Made for sharded data parallelism: a chunk's weights are needed in one run per pass, its gradients are complete
    early. PyTorch's ScheduleLoopedBFS.

    Args:
        chunks: stages per rank, at least 2.
    """

    def __init__(self, *, chunks: int = 2) -> None:
        self.chunks = at_least("chunks", chunks, 2)

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:
        if chunks_of(placement) >= 2:
            yield {"chunks": chunks_of(placement)}

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    def build(self, profile: StageCosts) -> Program:
        return in_order(profile.shape, [_order(profile.shape, rank) for rank in range(profile.shape.num_ranks)])


def _order(shape: Shape, rank: int) -> tuple[IntArray, IntArray]:
    """Kinds and microbatches."""
    stages, size = shape.stages_of(rank), shape.num_microbatches
    kinds = [kind_of(stage, Op.F) for stage in stages] + [kind_of(stage, Op.B) for stage in reversed(stages)]
    up = np.arange(size)
    numbers = [np.tile(up, len(stages)), np.tile(up[::-1], len(stages))]
    return np.repeat(kinds, size), np.concatenate(numbers)
