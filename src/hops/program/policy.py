"""A policy decides during the run, rank by rank, what a program has fixed before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hops.program.action import Action, Pair
from hops.program.shape import Shape


class View(Protocol):
    """What a policy sees of the run when its rank is idle. Everything concerns this rank in this iteration."""

    @property
    def rank(self) -> int: ...
    @property
    def iteration(self) -> int: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def in_flight(self) -> int:
        """Microbatches (per stage of the rank) whose F has started and whose B or W has not ended."""

    def ready(self) -> Sequence[Action]:
        """Actions that could start now: inputs arrived, not started, in order of (op, stage, microbatch).

        A backward is listed as B and as I until one of them starts; after I, its W is listed.
        """

    def done(self, action: Action) -> bool:
        """Whether the action has ended."""


class Policy(Protocol):
    """Whoever is asked what an idle rank shall run next."""

    def next_actions(self, view: View) -> Sequence[Action | Pair]:
        """What the rank `view.rank` shall run next, in that order, waiting for the inputs of each. Empty: nothing now.

        A pair, a forward and then a backward, runs as one: it starts when both can, and sends when both are done.

        The rank is asked again when it has run them, and when something arrives for it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPolicy:
    """A policy that is ready to decide, and the placement that it decides for: what runs where no program does."""

    shape: Shape
    policy: Policy
