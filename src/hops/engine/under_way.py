"""What is under way in a run with faults, so that it can be lost and begun again: work of ranks, and messages."""

from collections.abc import Callable
from typing import Any

from hops.actions import Action, Op
from hops.engine.iteration import Iteration

WAITS = -1  # in place of a start: it waits for what is down


class Work:
    """What ranks spend time on together."""

    __slots__ = ("arguments", "length_ns", "links", "ranks", "row", "start_ns", "then", "turn")

    def __init__(
        self,
        ranks: tuple[int, ...],
        links: tuple[int, ...],
        length_ns: int,
        row: tuple[int, int, int, int],
        then: Callable[..., None],
        arguments: tuple[Any, ...],
    ) -> None:
        self.ranks = ranks
        self.links = links
        self.length_ns = length_ns
        self.row = row  # iteration, stage (-1: none), op, microbatch
        self.then = then  # called with arguments and start when it ends
        self.arguments = arguments
        self.start_ns = WAITS
        self.turn = 0  # raised whenever it is lost or begun

    def __str__(self) -> str:
        _, stage, op, microbatch = self.row
        what = Op(op).name if stage < 0 else str(Action(stage, Op(op), microbatch))
        return f"{what} of rank{'s' if len(self.ranks) > 1 else ''} {' and '.join(map(str, self.ranks))}"


class Message:
    """An action's output on its way, or waiting for the way."""

    __slots__ = ("action", "iteration", "key", "links", "ranks", "sent_ns", "transfer", "turn")

    def __init__(
        self, ranks: tuple[int, int], links: tuple[int, ...], iteration: Iteration, action: Action, key: int
    ) -> None:
        self.ranks = ranks
        self.links = links
        self.iteration = iteration
        self.action = action
        self.key = key
        self.sent_ns = WAITS
        self.transfer: Any = None
        self.turn = 0

    def __str__(self) -> str:
        return f"the output of {self.action} from rank {self.ranks[0]} to rank {self.ranks[1]}"
