"""ZB-V: two stages per rank, down and up the ranks: few bubbles in 1F1B's memory (arXiv 2401.10241, 2405.15362)."""

from collections.abc import Iterator

from hops.actions import Action, Op
from hops.schedule.base import SCHEDULERS, StaticScheduler
from hops.schedule.columns import column
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape

DOWN, UP = 0, 1  # chunks: on the way down the ranks, and up again


@SCHEDULERS.register("zb_v")
class ZBV(StaticScheduler):
    """The order that PyTorch's ScheduleZBVZeroBubble uses, for any number of microbatches.

    It is drawn for at least 2 p - 1 microbatches; with fewer, those that are not there are left out.
    """

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: Profile) -> Program:
        ranks = (_order(profile.shape, rank) for rank in range(profile.shape.num_ranks))
        return Program(shape=profile.shape, ranks=tuple(ranks))


def _order(shape: Shape, rank: int) -> tuple[Action, ...]:
    drawn = max(2 * shape.num_ranks - 1, shape.num_microbatches)
    stages = shape.stages_of(rank)
    queues = {
        (chunk, op): iter(column(stage, op, drawn)) for chunk, stage in enumerate(stages) for op in (Op.F, Op.I, Op.W)
    }
    actions = (next(queues[turn]) for turn in _turns(rank, shape.num_ranks, drawn))
    return tuple([action for action in actions if action.microbatch < shape.num_microbatches])


def _turns(rank: int, num_ranks: int, num_microbatches: int) -> Iterator[tuple[int, Op]]:
    """(chunk, op) in the order of the rank; each (chunk, op) runs through the microbatches."""
    below = num_ranks - rank
    for _ in range(2 * below - 1):
        yield DOWN, Op.F
    for _ in range(rank):
        yield UP, Op.F
        yield DOWN, Op.F
    for _ in range(below):
        yield UP, Op.F
        yield UP, Op.I
        yield UP, Op.W
    started = 2 * below - 1 + rank
    for microbatch in range(num_microbatches - num_ranks):
        if started + microbatch < num_microbatches:
            yield DOWN, Op.F
        yield DOWN, Op.I
        yield DOWN, Op.W
        yield UP, Op.F
        yield UP, Op.I
        yield UP, Op.W
    for _ in range(rank):
        yield DOWN, Op.I
        yield UP, Op.I
    for _ in range(below):
        yield DOWN, Op.I
        yield DOWN, Op.W
    for _ in range(rank):
        yield UP, Op.W
    for _ in range(rank):
        yield DOWN, Op.W
