"""DualPipe: two copies of the model; microbatches enter at both ends and meet in pairs (deepseek-ai/DualPipe).

The ranks of the upper half do what DualPipeV does on half of the ranks and microbatches, with the copy of a stage where
DualPipeV has the second half of the model; the lower half mirrors them.
"""

from dataclasses import replace

import numpy as np

from hops.errors import UsageError
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.schedules.dualpipe_v import dualpipe_turns, paired_program
from hops.timing.stage_costs import StageCosts


@SCHEDULERS.register("dualpipe")
class DualPipe(StaticScheduler):
    """Half of the microbatches enter at each end; every rank holds two stages' weights, and reduces both."""

    needs = "p and m even, m at least 2 p"

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError unless ranks and microbatches are even, and microbatches at least twice the ranks."""
        check_even("dualpipe", num_ranks, num_microbatches)
        if num_microbatches < 2 * num_ranks:
            raise UsageError(
                f"dualpipe: microbatches must be at least {2 * num_ranks}, twice the ranks, but got {num_microbatches}"
            )
        return Shape.both_ways(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        ranks, half = shape.num_ranks, shape.num_microbatches // 2
        upper = Shape.v(ranks // 2, num_microbatches=half)
        turns = []
        for rank in range(ranks):
            down, up = shape.stages_of(rank)
            if rank < ranks // 2:
                turns.append(dualpipe_turns(upper, rank, down, up))
            else:
                turns.append(dualpipe_turns(upper, ranks - 1 - rank, up, down))
        program = paired_program(shape, turns)
        return replace(program, microbatch=np.where(program.stage >= ranks, half, 0) + program.microbatch)


def check_even(name: str, num_ranks: int, num_microbatches: int) -> None:
    """Raise UsageError, in the name of the schedule, unless both ways through the ranks get as much to do."""
    for what, number in (("ranks", num_ranks), ("microbatches", num_microbatches)):
        if number % 2:
            raise UsageError(f"{name}: {what} must be an even number, half for each direction, but got {number}")
