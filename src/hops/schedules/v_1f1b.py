"""1F1B-V: two stages per rank, down and up the ranks, whole backwards (sail-sg's `v1f1b`, arXiv 2405.15362).

A building block repeats every six slots; then every action moves to the first free slots that its input and the
block's memory allow.
"""

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.builders import counted
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

PERIOD = 6  # slots in which a rank does F (one slot) and B (two) of its two stages
FREE, BUSY = -1, -2  # a slot without action, and the second one of a B


@SCHEDULERS.register("v_1f1b")
class V1F1B(StaticScheduler):
    """Three quarters of 1F1B's activations with whole backwards, drawn for B = 2 F."""

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        starts = _block(shape.num_ranks)
        grid = np.full((shape.num_ranks, int(starts.max()) + PERIOD * shape.num_microbatches), FREE)
        held = np.zeros_like(grid)
        pull_forward.fast(starts, np.array(shape.rank_of_stage), shape.num_microbatches, grid, held)
        return counted(shape, [row[row >= 0] for row in grid])


def _block(num_ranks: int) -> IntArray:
    """The slots of F (row 0) and B (row 1) of microbatch 0 on every stage; shape (2, stages).

    F goes down the V in steps of one slot. B goes up it in steps of two, the ranks of the second half in the order of
    the first, with three more slots after every third, so that no two actions of a rank meet when the block repeats.
    """
    stages = 2 * num_ranks
    starts = np.zeros((2, stages), dtype=np.int64)
    starts[0] = np.arange(stages)
    steps = np.arange(stages) + (-num_ranks - 2) % 3  # since a place where the three more are due
    back = 2 * np.arange(stages) + 3 * (steps // 3)
    starts[1, ::-1] = stages + (3 if num_ranks % 3 == 0 else 0) + back
    return starts


@kernel
def pull_forward(starts: IntArray, rank_of: IntArray, size: int, grid: IntArray, held: IntArray) -> None:
    """Fill the grid's rows with kinds (stage * 4 + op), every action as early as it can be.

    An action moves to the first free slots after its input is there, and an F only so far that its rank never holds
    more activations than the fullest rank of the repeated block. `held` counts them per slot; shapes (ranks, slots).
    """
    ranks, slots = grid.shape
    stages = len(rank_of)
    for s in range(stages):
        for m in range(size):
            first, last = starts[0, s] + PERIOD * m, starts[1, s] + PERIOD * m + 2
            grid[rank_of[s], first] = s * 4
            grid[rank_of[s], last - 2] = s * 4 + 1
            grid[rank_of[s], last - 1] = BUSY
            for slot in range(first, last):
                held[rank_of[s], slot] += 1
    limit = 0
    for rank in range(ranks):
        for slot in range(slots):
            limit = max(limit, held[rank, slot])
    end = np.zeros((2, stages, size), dtype=np.int64)
    count = np.zeros((2, stages), dtype=np.int64)
    for slot in range(slots):
        for rank in range(ranks):
            kind = grid[rank, slot]
            if kind < 0:
                continue
            s, op = kind >> 2, kind & 3
            m = count[op, s]
            count[op, s] = m + 1
            place = slot
            if op == 0:
                arrived = end[0, s - 1, m] if s > 0 else 0
                earlier = slot - 1
                while earlier >= arrived and held[rank, earlier] < limit:
                    if grid[rank, earlier] == FREE:
                        place = earlier
                    earlier -= 1
                for between in range(place, slot):
                    held[rank, between] += 1
                grid[rank, slot] = FREE
            else:
                place = end[1, s + 1, m] if s < stages - 1 else end[0, s, m]
                grid[rank, slot] = grid[rank, slot + 1] = FREE
                while grid[rank, place] != FREE or grid[rank, place + 1] != FREE:
                    place += 1
                for between in range(place + 2, slot + 2):
                    held[rank, between] -= 1
                grid[rank, place + 1] = BUSY
            grid[rank, place] = kind
            end[op, s, m] = place + op + 1
