"""DualPipeV: a V of two stages per rank whose steady state pairs a forward of one with a backward of the other.

The order is that of DeepSeek's `DualPipeV` (github.com/deepseek-ai/DualPipe, "cut-in-half"). It runs a pair as one
overlapped action; here a pair is its forward, then its backward, which takes the same time in all.
"""

from collections.abc import Iterator

from hops.actions import Action, Op
from hops.errors import UsageError
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import column
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape

DOWN, UP = 0, 1  # chunks: on the way down the ranks, and up again


@SCHEDULERS.register("dualpipe_v")
class DualPipeV(StaticScheduler):
    """Needs at least 2 p microbatches; a rank keeps at most 2 p + 1 activations of its stages."""

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        if num_microbatches < 2 * num_ranks:
            raise UsageError(
                f"dualpipe_v: microbatches must be at least {2 * num_ranks}, twice the ranks, "
                f"but got {num_microbatches}"
            )
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: Profile) -> Program:
        ranks = (_order(profile.shape, rank) for rank in range(profile.shape.num_ranks))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _order(shape: Shape, rank: int) -> tuple[Action, ...]:
    size = shape.num_microbatches
    forward, backward, weight = ([column(s, op, size) for s in shape.stages_of(rank)] for op in (Op.F, Op.B, Op.W))
    split = [column(stage, Op.I, size) for stage in shape.stages_of(rank)]
    forwards = [iter(actions) for actions in forward]
    turn = [0, 0]  # backwards begun, per chunk
    waiting: list[Action] = []  # weight backwards put off, oldest first
    actions: list[Action] = []
    for chunk, op in _turns(rank, shape.num_ranks, size):
        if op is Op.F:
            actions.append(next(forwards[chunk]))
        elif op is Op.W:
            actions.append(waiting.pop(0))
        else:
            microbatch = turn[chunk]
            turn[chunk] += 1
            actions.append((backward if op is Op.B else split)[chunk][microbatch])
            if op is Op.I:
                waiting.append(weight[chunk][microbatch])
    return tuple(actions)


def _turns(rank: int, num_ranks: int, num_microbatches: int) -> Iterator[tuple[int, Op]]:
    """(chunk, op) in the order of the rank, by the eight steps of the original. W's chunk is that of the oldest I."""
    below = num_ranks - 1 - rank
    for _ in range(2 * below):
        yield DOWN, Op.F
    for _ in range(rank + 1):
        yield DOWN, Op.F
        yield UP, Op.F
    for _ in range(below):
        yield UP, Op.I
        yield UP, Op.W
        yield UP, Op.F
    for _ in range(num_microbatches - 2 * num_ranks + rank + 1):
        yield DOWN, Op.F
        yield UP, Op.B
        yield UP, Op.F
        yield DOWN, Op.B
    for _ in range(below):
        yield UP, Op.B
        yield UP, Op.F
        yield DOWN, Op.B
    yield from _cool_down(rank, below)


def _cool_down(rank: int, below: int) -> Iterator[tuple[int, Op]]:
    """The last backwards, from about half on with their weights put off."""
    half = (rank + 1) // 2
    for turn in range(rank + 1):
        yield UP, Op.I if turn > half or (turn == half and rank % 2 == 1) else Op.B
        yield DOWN, Op.I if turn >= half else Op.B
    for _ in range(below):
        yield UP, Op.W
        yield DOWN, Op.I
    for _ in range(rank + 1):
        yield UP, Op.W
