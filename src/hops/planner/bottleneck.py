"""The exact least bottleneck: dynamic programming over how many devices of each kind are used, from the last stage on.

State: counts of used devices per kind. Value: the first layer that they can hold, in the best order, if no stage may
take longer than a threshold. Needing fewer layers never hurts those before, so that one value per state is exact, for
layers that differ, too. The number of devices used is the position from the end, which decides how many microbatches
1F1B keeps in flight, so that memory is exact as well.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hops.arrays import FloatArray, IntArray

MOST_STATES = 1_500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What the bottleneck depends on.

    Attributes:
        seconds: of a microbatch on a block, shape (kinds, layers + 1, layers + 1); infinite where there is none.
        needed: bytes by position from the end, for the positions that differ: shape (positions, layers + 1,
            layers + 1); later positions are as the last one.
        memory: bytes per kind.
        counts: devices per kind.
    """

    seconds: FloatArray
    needed: IntArray
    memory: IntArray
    counts: IntArray

    @property
    def num_layers(self) -> int:
        return int(self.seconds.shape[1]) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KindLayout:
    """Stages in the order of the model: the kind of each, and its layers."""

    kinds: tuple[int, ...]
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The least possible seconds of the slowest stage, and a layout that has it.

    `exact`: whether all devices were considered; if there are too many kinds for that, some are left out.
    """

    seconds: float
    layout: KindLayout
    exact: bool


def least_bottleneck(problem: Problem) -> Bottleneck | None:
    """The exact least bottleneck, by bisection over the times that stages can have; None if no layout fits."""
    counts = _affordable(problem)
    search = _Reach(problem, counts)
    times = np.unique(problem.seconds[counts > 0])
    times = times[np.isfinite(times)]
    low, high = 0, len(times)  # the first feasible one is in [low, high]
    if not len(times) or search.layout(times[-1]) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        if search.reaches(times[middle]):
            high = middle
        else:
            low = middle + 1
    layout = search.layout(times[low])
    assert layout is not None, "bisection ends at a feasible time"
    return Bottleneck(seconds=float(times[low]), layout=layout, exact=_whole(problem, counts))


def most_layers(problem: Problem) -> int:
    """How many layers all devices can hold at most, from the end of the model; less than all if no layout fits."""
    search = _Reach(problem, _affordable(problem))
    return problem.num_layers - int(search.first_layers(np.inf).min())


def _affordable(problem: Problem) -> IntArray:
    """Counts that make few enough states: slow kinds are cut first, and no more devices than layers are needed."""
    counts = np.minimum(problem.counts, problem.num_layers)
    inner = problem.seconds[:, problem.num_layers - 1, problem.num_layers]
    for kind in np.argsort(-inner, kind="stable"):
        excess = np.prod(counts + 1.0) / MOST_STATES
        if excess <= 1:
            break
        counts[kind] = max(0, int((counts[kind] + 1) / excess) - 1)
    return counts


def _whole(problem: Problem, counts: IntArray) -> bool:
    """Whether nothing was cut that could be of use."""
    return bool((counts == np.minimum(problem.counts, problem.num_layers)).all())


class _Reach:
    """The lattice of counts, level by level, and the extension of a state by one more device."""

    def __init__(self, problem: Problem, counts: IntArray) -> None:
        self.problem = problem
        self.counts = counts
        sizes = counts + 1
        self.strides = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)
        self.num_states = int(np.prod(sizes))

    @cached_property
    def levels(self) -> list[list[tuple[int, IntArray]]]:
        """Per number of devices from 1: kind of the one in front, and the states that can have it there."""
        states = np.arange(self.num_states, dtype=np.int64)
        digits = [states // stride % (count + 1) for stride, count in zip(self.strides, self.counts, strict=True)]
        total = np.sum(digits, axis=0)
        order = np.argsort(total, kind="stable")
        bounds = np.searchsorted(total[order], np.arange(int(self.counts.sum()) + 2))
        levels = []
        for used in range(1, int(self.counts.sum()) + 1):
            here = order[bounds[used] : bounds[used + 1]]
            levels.append([(kind, here[digits[kind][here] > 0]) for kind in range(len(self.counts))])
        return levels

    def extension(self, seconds: float, position: int) -> IntArray:
        """The first layer of a stage that ends before layer b, at [kind, b]; b where not even one layer is possible.

        Layer 0 is left out: the first stage is judged when it is closed.
        """
        problem = self.problem
        needed = problem.needed[min(position, len(problem.needed) - 1)]
        possible = (problem.seconds <= seconds) & (needed[None] <= problem.memory[:, None, None])
        possible &= np.isfinite(problem.seconds)
        layers = np.arange(problem.num_layers + 1)
        first = np.where(possible, layers[None, :, None], problem.num_layers + 1)
        inner = first[:, 1:, :].min(axis=1, initial=problem.num_layers + 1)
        return np.where(inner > problem.num_layers, layers[None, :], inner).astype(np.int64)

    def first_layers(self, seconds: float) -> IntArray:
        """Per state, the first layer that it can hold (or 0, if it can be closed by its first stage)."""
        first = np.full(self.num_states, self.problem.num_layers, dtype=np.int64)
        for position, level in enumerate(self.levels):
            inner, closes = self.extension(seconds, position), self.closing(seconds, position)
            for kind, states in level:
                before = first[states - self.strides[kind]]
                reached = np.where(closes[kind][before], 0, inner[kind][before])
                first[states] = np.minimum(first[states], np.where(before == 0, 0, reached))
        return first

    def closing(self, seconds: float, position: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether one device can hold all layers before b, at [kind, b]."""
        problem = self.problem
        needed = problem.needed[min(position, len(problem.needed) - 1)][0]
        fits = needed[None] <= problem.memory[:, None]
        closes: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = fits & (problem.seconds[:, 0] <= seconds)
        return closes & np.isfinite(problem.seconds[:, 0])

    def reaches(self, seconds: float) -> bool:
        return bool((self.first_layers(seconds) == 0).any())

    def layout(self, seconds: float) -> KindLayout | None:
        """The layout with the fewest devices, found by walking back from a state that holds everything."""
        first = self.first_layers(seconds)
        done = np.flatnonzero(first == 0)
        if not len(done):
            return None
        totals = sum(done // stride % (count + 1) for stride, count in zip(self.strides, self.counts, strict=True))
        state = int(done[np.argmin(totals)])
        kinds: list[int] = []
        starts: list[int] = []
        while first[state] < self.problem.num_layers:
            kind, start, state = self._step_back(seconds, first, state, start=int(first[state]))
            kinds.append(kind)
            starts.append(start)
        ends = [*starts[1:], self.problem.num_layers]
        return KindLayout(kinds=tuple(kinds), layers=tuple(b - a for a, b in zip(starts, ends, strict=True)))

    def _step_back(self, seconds: float, first: IntArray, state: int, *, start: int) -> tuple[int, int, int]:
        """The stage in front of a state: its kind, its first layer, and the state behind it."""
        digits = [state // int(s) % (int(c) + 1) for s, c in zip(self.strides, self.counts, strict=True)]
        position = sum(digits) - 1
        inner, closes = self.extension(seconds, position), self.closing(seconds, position)
        for kind, used in enumerate(digits):
            if not used:
                continue
            before = state - int(self.strides[kind])
            end = int(first[before])
            if end > start and ((start == 0 and closes[kind][end]) or (start > 0 and inner[kind][end] == start)):
                return kind, start, before
        raise AssertionError("every reached state has a stage in front")
