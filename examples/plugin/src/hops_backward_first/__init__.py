"""Backwards first: run a backward whenever one is ready, else a forward if the limit in flight allows it."""

from collections.abc import Sequence

from hops.errors import UsageError
from hops.program.action import Action, Op
from hops.schedules.base import Scheduler, View
from hops.timing.stage_costs import StageCosts


class BackwardFirst(Scheduler):
    """1F1B without a fixed order: stages of equal length run exactly 1F1B, others take what comes first.

    Args:
        extra: microbatches in flight beyond the p - s of 1F1B on rank s.
    """

    def __init__(self, *, extra: int = 0) -> None:
        if extra < 0:
            raise UsageError(f"extra must be at least 0, but got {extra}")
        self.extra = extra
        self._num_ranks = 0

    def configure(self, profile: StageCosts) -> None:
        self._num_ranks = profile.shape.num_ranks

    def next_actions(self, view: View) -> Sequence[Action]:
        forwards = [action for action in view.ready() if action.op is Op.F]
        backwards = [action for action in view.ready() if action.op is Op.B]
        if backwards:
            return backwards[:1]
        if view.in_flight < self._num_ranks - view.rank + self.extra:
            return forwards[:1]
        return ()
