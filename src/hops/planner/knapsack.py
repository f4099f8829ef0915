"""The least sum of weights over sets of (kind, place, layers) that hold the model, by dynamic programming."""

from dataclasses import dataclass

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.compiled import kernel

INNER, FIRST, LAST, WHOLE = range(4)  # places; their bits say which ends of the model they hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """A set of items: (kind, place, layers) of each."""

    items: tuple[tuple[int, int, int], ...]


class Knapsack:
    """Least sums of weights over sets of items that hold the model, for several weightings at once.

    State: which of first and last are taken (4), layers held. One device after the other takes an item or none.
    """

    def __init__(self, weights: FloatArray, counts: IntArray) -> None:
        """`weights`: shape (weightings, kinds, 4 places, layers + 1)."""
        self.weights, self.counts = weights, counts
        self.layers = weights.shape[3] - 1
        self.steps: list[tuple[int, IntArray]] = []
        self.best = np.full((len(weights), 4, self.layers + 1), np.inf)
        self.best[:, 0, 0] = 0.0
        for kind, count in enumerate(counts.tolist()):
            for _ in range(min(count, self.layers)):
                if not self._take(kind):
                    break

    @property
    def values(self) -> FloatArray:
        """Least sum per weighting; infinite where no set holds the model."""
        return self.best[:, 3, self.layers]

    def _take(self, kind: int) -> bool:
        """Let one more device of the kind take the item that helps most; whether it helps anywhere."""
        after = self.best.copy()
        choice = np.full(after.shape, -1, dtype=np.int64)  # place * (layers + 1) + length; -1: none
        take_items.fast(np.ascontiguousarray(self.weights[:, kind]), self.best, after, choice)
        helps = bool((choice >= 0).any())
        if helps:
            self.steps.append((kind, choice))
            self.best = after
        return helps

    def pick(self, weighting: int) -> Pick:
        """The set of items that has the least sum."""
        state, held, items = 3, self.layers, []
        for kind, choice in reversed(self.steps):
            code = int(choice[weighting, state, held])
            if code >= 0:
                place, length = divmod(code, self.layers + 1)
                items.append((kind, place, length))
                held -= length
                state = _out_of_state(state, place)
        return Pick(items=tuple(items))


@kernel
def take_items(weights: FloatArray, best: FloatArray, after: FloatArray, choice: IntArray) -> None:
    """Improve `after`, a copy of `best`, by one item each, and fill in `choice`; the first of equal items is taken.

    `weights` has the shape (weightings, 4 places, layers + 1), the others (weightings, 4 states, layers + 1). A state
    has bit 0 where the first stage is taken, bit 1 where the last is.
    """
    layers = weights.shape[2] - 1
    for number in range(len(weights)):
        for place in range(4):  # INNER takes no bit, FIRST bit 0, LAST bit 1, WHOLE both
            for state in range(4):
                if state & place:
                    continue
                to = state | place
                for length in range(layers + 1):
                    weight = weights[number, place, length]
                    if weight == np.inf:
                        continue
                    for held in range(layers + 1 - length):
                        new = best[number, state, held] + weight
                        if new < after[number, to, held + length]:
                            after[number, to, held + length] = new
                            choice[number, to, held + length] = place * (layers + 1) + length


def _out_of_state(state: int, place: int) -> int:
    return state & ~place
