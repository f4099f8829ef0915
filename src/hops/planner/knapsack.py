"""The least sum of weights over sets of (kind, place, layers) that hold the model, by dynamic programming."""

from dataclasses import dataclass

import numpy as np

from hops.arrays import FloatArray, IntArray

INNER, FIRST, LAST, WHOLE = range(4)  # places


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
        for place in range(4):
            lengths = np.flatnonzero(np.isfinite(self.weights[:, kind, place]).any(axis=0))
            for state in _from_states(place):
                to = _into_state(state, place)
                for length in lengths.tolist():
                    weight = self.weights[:, kind, place, length][:, None]
                    new = self.best[:, state, : self.layers + 1 - length] + weight
                    better = new < after[:, to, length:]
                    if better.any():
                        after[:, to, length:] = np.where(better, new, after[:, to, length:])
                        code = place * (self.layers + 1) + length
                        choice[:, to, length:] = np.where(better, code, choice[:, to, length:])
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


def _from_states(place: int) -> tuple[int, ...]:
    """States (bit 0: first taken, bit 1: last taken) in which a place can be taken."""
    return {INNER: (0, 1, 2, 3), FIRST: (0, 2), LAST: (0, 1), WHOLE: (0,)}[place]


def _into_state(state: int, place: int) -> int:
    return state | {INNER: 0, FIRST: 1, LAST: 2, WHOLE: 3}[place]


def _out_of_state(state: int, place: int) -> int:
    return state & ~{INNER: 0, FIRST: 1, LAST: 2, WHOLE: 3}[place]
