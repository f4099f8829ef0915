"""DualPipeV: a V of two stages per rank whose steady state pairs a forward of one with a backward of the other.

The order is that of DeepSeek's `DualPipeV` (github.com/deepseek-ai/DualPipe, "cut-in-half").
"""

from collections.abc import Sequence

import numpy as np

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import NUM_OPS, Op
from hops.program.builders import counted, kind_of, repeated
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

WEIGHT = -1  # stands for the W of the oldest I whose W has not run
OPENS = 1 << 40  # added to a forward that is paired with the action after it


@SCHEDULERS.register("dualpipe_v")
class DualPipeV(StaticScheduler):
    """Pairs a forward of one stage with a backward of the other; a rank keeps at most 2 p + 1 activations of both."""

    needs = "m at least 2 p"

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        if num_microbatches < 2 * num_ranks:
            raise UsageError(
                f"dualpipe_v: microbatches must be at least {2 * num_ranks}, twice the ranks, "
                f"but got {num_microbatches}"
            )
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        turns = [dualpipe_turns(shape, rank, *shape.stages_of(rank)) for rank in range(shape.num_ranks)]
        return paired_program(shape, turns)


def paired_program(shape: Shape, turns: Sequence[IntArray]) -> Program:
    """The program of what `dualpipe_turns` gives for each rank; every stage counts its microbatches from 0."""
    opens = [row >= OPENS for row in turns]
    orders = [_with_weights(np.where(row >= OPENS, row - OPENS, row)) for row in turns]
    return counted(shape, orders, opens)


def dualpipe_turns(shape: Shape, rank: int, near: int, far: int) -> IntArray:
    """What a rank does in order, by the eight steps of the original.

    Args:
        shape: a V of so many ranks, and the microbatches of each of its stages.
        rank: counted from the ranks where microbatches enter.
        near: the stage of the rank to which microbatches come first.
        far: its other stage.
    """
    (f, b, i), (f_up, b_up, i_up) = ([kind_of(s, op) for op in (Op.F, Op.B, Op.I)] for s in (near, far))
    below = shape.num_ranks - 1 - rank
    pairs = shape.num_microbatches - 2 * shape.num_ranks + rank + 1
    main = repeated(([f + OPENS, b_up, f_up + OPENS, b], pairs))
    if below == 0 and pairs > 0:
        main[0] = f  # the last rank does not overlap its first two, to save a bubble
    half = (rank + 1) // 2
    split = [
        kind
        for turn in range(rank + 1)
        for kind in (i_up if turn > half or (turn == half and rank % 2 == 1) else b_up, i if turn >= half else b)
    ]
    return repeated(
        ([f], 2 * below),
        ([f, f_up], rank + 1),
        ([i_up, WEIGHT, f_up], below),
        (main, 1),
        ([b_up, f_up + OPENS, b], below),
        (split, 1),
        ([WEIGHT, i], below),
        ([WEIGHT], rank + 1),
    )


def _with_weights(kinds: IntArray) -> IntArray:
    """Put the n-th I's W where the n-th WEIGHT stands."""
    inputs = kinds[kinds % NUM_OPS == Op.I]
    kinds[kinds == WEIGHT] = inputs[inputs >= 0] - Op.I + Op.W
    return kinds
