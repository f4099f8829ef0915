"""ZB-V: two stages per rank, down and up the ranks: few bubbles in 1F1B's memory (arXiv 2401.10241, 2405.15362).

The paper repeats a building block every six units of time (F = I = W = 1), then moves actions to earlier places. Here
the building block gives every action its nominal time, and each rank, unit by unit, runs the nominally first action
that can run and that memory allows, or else a weight backward.
"""

from hops.arrays import IntArray
from hops.program.action import Action, Op
from hops.program.builders import counted, first_microbatches, kind_of, repeated
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

DOWN, UP = 0, 1  # chunks: on the way down the ranks, and up again


@SCHEDULERS.register("zb_v")
class ZBV(StaticScheduler):
    """The order that PyTorch's ScheduleZBVZeroBubble uses, for any number of microbatches.

    It is drawn for at least 2 p - 1 microbatches; with fewer, those that are not there are left out.
    """

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        drawn = max(2 * shape.num_ranks - 1, shape.num_microbatches)
        program = counted(shape, [_order(shape, rank, drawn) for rank in range(shape.num_ranks)])
        return program if drawn == shape.num_microbatches else first_microbatches(program)


def _order(shape: Shape, rank: int, size: int) -> IntArray:
    """A rank's kinds in order; each of them runs through the microbatches."""
    down, up = shape.stages_of(rank)
    f, i, w = (kind_of(down, op) for op in (Op.F, Op.I, Op.W))
    f_up, i_up, w_up = (kind_of(up, op) for op in (Op.F, Op.I, Op.W))
    below = shape.num_ranks - rank
    steady = size - shape.num_ranks
    forwards = min(size - (2 * below - 1 + rank), steady)  # turns of the steady state that still have an F down
    return repeated(
        ([f], 2 * below - 1),
        ([f_up, f], rank),
        ([f_up, i_up, w_up], below),
        ([f, i, w, f_up, i_up, w_up], forwards),
        ([i, w, f_up, i_up, w_up], steady - forwards),
        ([i, i_up], rank),
        ([i, w], below),
        ([w_up], rank),
        ([w], rank),
    )


PERIOD = 6  # units of time that a rank works on one microbatch
NEVER = 1 << 60
Turn = tuple[int, Op]  # (stage, op)


@SCHEDULERS.register("v_half")
class VHalf(StaticScheduler):
    """Keeps at most p/2 + 1 microbatches' activations per rank, where 1F1B keeps p."""

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        ends: dict[Turn, list[int]] = {
            (stage, op): [NEVER] * shape.num_microbatches for stage in range(shape.num_stages) for op in (Op.F, Op.I)
        }
        ranks = [_Rank(shape, rank, ends) for rank in range(shape.num_ranks)]
        left = ranks
        now = 0
        while left:
            for rank in left:
                rank.run_one(now)
            now += 1
            left = [rank for rank in left if len(rank.actions) < rank.total]
        return Program.of(shape, [rank.actions for rank in ranks])


def _nominal(num_ranks: int, rank: int) -> tuple[int, int, int, int]:
    """Nominal times of microbatch 0: F down, F up, I down again (on the stage of F up), I up again.

    Forwards move one rank down in 1 unit and up in 2, and so do backwards, which halves what ZB-V's 3 and 3 keep.
    """
    below = num_ranks - 1 - rank
    turn = num_ranks + 1
    back = turn + 2 * (num_ranks - 1) + 2
    home = back + num_ranks + 3
    return rank, turn + 2 * below, back + rank, home + 2 * below


class _Rank:
    """One rank's list as it grows. Memory is counted in half activations of one stage: F takes 2, I and W free 1."""

    def __init__(self, shape: Shape, rank: int, ends: dict[Turn, list[int]]) -> None:
        down, up = shape.stages_of(rank)
        turns: tuple[Turn, ...] = ((down, Op.F), (up, Op.F), (up, Op.I), (down, Op.I))
        last = shape.num_stages - 1
        at_once = [0] * shape.num_microbatches
        self.total = 6 * shape.num_microbatches
        self.actions: list[Action] = []
        self._size = shape.num_microbatches
        self._nominal = _nominal(shape.num_ranks, rank)
        self._queues = [[Action(stage, op, number) for number in range(self._size)] for stage, op in turns]
        self._weights = {stage: [Action(stage, Op.W, number) for number in range(self._size)] for stage in (down, up)}
        self._ends = [ends[turn] for turn in turns]
        self._inputs = [
            at_once if down == 0 else ends[down - 1, Op.F],
            ends[up - 1, Op.F],
            ends[up, Op.F] if up == last else ends[up + 1, Op.I],
            ends[down + 1, Op.I],
        ]
        self._next = [0, 0, 0, 0]
        self._put_off: list[Action] = []
        self._weights_done = 0
        self._held = 0
        self._limit = 2 * shape.num_ranks + 4

    def run_one(self, now: int) -> None:
        """Run what is to start at this unit of time, if anything."""
        turn = self._choose(now)
        if turn >= 0:
            self._run(turn, now)
        elif self._weights_done < len(self._put_off):
            self.actions.append(self._put_off[self._weights_done])
            self._weights_done += 1
            self._held -= 1

    def _choose(self, now: int) -> int:
        """The turn with the nominally first action that could start; -1 if there is none."""
        best, best_time = -1, NEVER
        for turn, microbatch in enumerate(self._next):
            if microbatch < self._size and self._inputs[turn][microbatch] <= now:
                time = self._nominal[turn] + PERIOD * microbatch
                if time < best_time and (turn > 1 or self._fits(turn)):
                    best, best_time = turn, time
        return best

    def _fits(self, turn: int) -> bool:
        """Whether memory takes one more forward; one on the way down leaves room for those up that come before it."""
        ahead = 0
        if turn == 0:
            periods = -((self._nominal[1] - self._nominal[0]) // PERIOD)
            ahead = max(0, min(self._next[0] + periods, self._size) - self._next[1])
        return self._held + 2 * (1 + ahead) <= self._limit

    def _run(self, turn: int, now: int) -> None:
        microbatch = self._next[turn]
        action = self._queues[turn][microbatch]
        self._next[turn] += 1
        self._ends[turn][microbatch] = now + 1
        self.actions.append(action)
        if action.op is Op.F:
            self._held += 2
        else:
            self._held -= 1
            self._put_off.append(self._weights[action.stage][microbatch])
