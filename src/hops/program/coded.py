"""A program as integers: columns over all actions, rank after rank, read by checking and evaluating at full speed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hops.program.action import ACTION_OPS, Action, Op
from hops.program.shape import Shape

IntArray = NDArray[np.int64]
NUM_OPS = len(ACTION_OPS)
SINGLE, OPENS, CLOSES = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """The actions of all ranks in one row of columns. Rank r owns positions first[r] to first[r + 1] - 1.

    Attributes:
        stage, op, microbatch: shape (actions,).
        pair: shape (actions,); SINGLE, or OPENS or CLOSES a pair that runs as one action.
        first: shape (ranks + 1,).
    """

    shape: Shape
    stage: IntArray
    op: IntArray
    microbatch: IntArray
    pair: IntArray
    first: IntArray

    @classmethod
    def of(cls, shape: Shape, ranks: Sequence[Sequence[Action]], pairs: Sequence[Sequence[int]] = ()) -> "Coded":
        """Encode; any integers are taken as they are."""
        lengths = [len(actions) for actions in ranks]
        numbers = chain.from_iterable(chain.from_iterable(ranks))
        table = np.fromiter(numbers, dtype=np.int64, count=3 * sum(lengths)).reshape(-1, 3)
        stage, op, microbatch = table.T.copy()
        first = np.cumsum([0, *lengths])
        pair = np.full(len(stage), SINGLE)
        for rank, opening in enumerate(pairs):
            opens = first[rank] + np.array(opening, dtype=np.int64)
            pair[opens] = OPENS
            pair[opens + 1] = CLOSES
        return cls(shape=shape, stage=stage, op=op, microbatch=microbatch, pair=pair, first=first)

    @property
    def kind(self) -> IntArray:
        """Stage and op in one number, stage * 4 + op; shape (actions,)."""
        return self.stage * NUM_OPS + self.op

    @property
    def rank(self) -> IntArray:
        """The rank whose list the action is in; shape (actions,)."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def action(self, position: int) -> Action:
        return Action(int(self.stage[position]), Op(int(self.op[position])), int(self.microbatch[position]))

    def split(self, column: IntArray) -> tuple[IntArray, ...]:
        """A column over all actions as one array per rank."""
        return tuple(np.split(column, self.first[1:-1]))
