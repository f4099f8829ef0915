"""DualPipeV: a V of two stages per rank whose steady state pairs a forward of one with a backward of the other.

The order is that of DeepSeek's `DualPipeV` (github.com/deepseek-ai/DualPipe, "cut-in-half").
"""

from collections import deque
from collections.abc import Iterator
from itertools import count

from hops.errors import UsageError
from hops.program.action import ACTION_OPS, Action, Op
from hops.program.columns import column
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts

DOWN, UP = 0, 1  # chunks: on the way down the ranks, and up again

Turn = tuple[int, Op, bool]  # chunk, op, whether it opens a pair with the next
FORWARD_DOWN, FORWARD_UP = (DOWN, Op.F, False), (UP, Op.F, False)
OPEN_DOWN, OPEN_UP = (DOWN, Op.F, True), (UP, Op.F, True)
BACKWARD_DOWN, BACKWARD_UP = (DOWN, Op.B, False), (UP, Op.B, False)
INPUT_DOWN, INPUT_UP = (DOWN, Op.I, False), (UP, Op.I, False)
WEIGHT = (DOWN, Op.W, False)


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

    def build(self, profile: StageCosts) -> Program:
        orders = [_order(profile.shape, rank) for rank in range(profile.shape.num_ranks)]
        ranks, pairs = zip(*orders, strict=True)
        return Program(shape=profile.shape, ranks=ranks, pairs=pairs if any(pairs) else ())


def _order(shape: Shape, rank: int) -> tuple[tuple[Action, ...], tuple[int, ...]]:
    """The rank's actions, and the positions that open a pair."""
    size = shape.num_microbatches
    queues = {
        (chunk, op): column(stage, op, size) for chunk, stage in enumerate(shape.stages_of(rank)) for op in ACTION_OPS
    }
    begun = {(chunk, is_forward): count(0) for chunk in (DOWN, UP) for is_forward in (True, False)}
    put_off: deque[Action] = deque()
    actions: list[Action] = []
    pairs = []
    for chunk, op, opens in _turns(rank, shape.num_ranks, size):
        if opens:
            pairs.append(len(actions))
        if op is Op.W:
            actions.append(put_off.popleft())
            continue
        microbatch = next(begun[chunk, op is Op.F])
        actions.append(queues[chunk, op][microbatch])
        if op is Op.I:
            put_off.append(queues[chunk, Op.W][microbatch])
    return tuple(actions), tuple(pairs)


def _turns(rank: int, num_ranks: int, num_microbatches: int) -> Iterator[Turn]:
    """What the rank does in order, by the eight steps of the original. A W is that of the oldest I."""
    below = num_ranks - 1 - rank
    yield from [FORWARD_DOWN] * (2 * below)
    yield from [FORWARD_DOWN, FORWARD_UP] * (rank + 1)
    yield from [INPUT_UP, WEIGHT, FORWARD_UP] * below
    main = [OPEN_DOWN, BACKWARD_UP, OPEN_UP, BACKWARD_DOWN] * (num_microbatches - 2 * num_ranks + rank + 1)
    if below == 0:
        main[0] = FORWARD_DOWN  # the last rank does not overlap its first two, to save a bubble
    yield from main
    yield from [BACKWARD_UP, OPEN_UP, BACKWARD_DOWN] * below
    half = (rank + 1) // 2
    for turn in range(rank + 1):
        yield INPUT_UP if turn > half or (turn == half and rank % 2 == 1) else BACKWARD_UP
        yield INPUT_DOWN if turn >= half else BACKWARD_DOWN
    yield from [WEIGHT, INPUT_DOWN] * below
    yield from [WEIGHT] * (rank + 1)
