"""Seq1F1B: 1F1B over slices of the sequence, whose backwards run from a microbatch's last slice to its first.

A slice attends to those before it, so that it is the dearer the later it is (arXiv 2406.03488). The order is that of
sail-sg's `seq1f1b.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.program.action import Op
from hops.program.builders import at_least, in_order, kind_of
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("seq1f1b")
class Seq1F1B(StaticScheduler):
    """1F1B whose actions are slices of a microbatch: the bubble, and what a rank holds, shrink with their number.

    Args:
        slices: into how many parts of equal length a sequence is cut, at least 2.
    """

    def __init__(self, *, slices: int = 2) -> None:
        self.slices = at_least("slices", slices, 2)

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:
        if placement.slices >= 2:
            yield {"slices": placement.slices}

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.loop(num_ranks, num_microbatches=num_microbatches * self.slices).sliced(self.slices)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        return in_order(shape, [_order(stage, shape) for stage in range(shape.num_stages)])


def _order(stage: int, shape: Shape) -> tuple[IntArray, IntArray]:
    """Kinds, and numbers of slices counted over all microbatches."""
    size, slices = shape.num_microbatches, shape.slices
    forward, backward = kind_of(stage, Op.F), kind_of(stage, Op.B)
    up = np.arange(size)
    back = up - 2 * (up % slices) + slices - 1
    warmup = min(shape.num_stages - 2 - stage + slices, size)
    steady = size - warmup
    turns = np.stack([up[warmup:], back[:steady]], axis=1).reshape(-1)
    kinds = np.concatenate([np.full(warmup, forward), np.tile([forward, backward], steady), np.full(warmup, backward)])
    return kinds, np.concatenate([up[:warmup], turns, back[steady:]])
