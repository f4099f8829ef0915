"""Overlapped messages: the sender goes on at once, the receiver takes its input when it needs it."""

from hops.engine.iteration import Iteration
from hops.engine.run import ReferenceRun
from hops.program.action import Action


class OverlappedRun(ReferenceRun):
    """A run whose messages cost the ranks nothing but waiting."""

    def advance(self, rank: int) -> None:
        if self.busy[rank] or self.left[rank]:
            return
        action = self.order.peek(rank)
        if action is None:
            if self.order.is_done(rank):
                self.end_iteration(rank)
        elif self.order.can_start(self.current[rank], rank, action):
            self.order.take(rank)
            self.start(rank, action)

    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        self.transmit(iteration, action, key)
