"""Sets of time intervals, one set per lane, and how much of one lies within another."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """Disjoint intervals [start, end) on several lanes at once, sorted; a lane is a rank, a link or all there is.

    Lane `n` lives at times shifted by `n * span`, so that one sorted array and one binary search serve all lanes.

    Attributes:
        start, end: shifted nanoseconds, shape (intervals,).
        lanes: how many lanes there are.
        span: shift between lanes; larger than any time.
    """

    start: Ints
    end: Ints
    lanes: int
    span: int

    @classmethod
    def union(cls, lane: NDArray[np.integer], start: Ints, end: Ints, *, lanes: int, span: int) -> "Intervals":
        """Merge intervals of the same lane that touch or overlap; empty ones vanish."""
        some = end > start
        shift = lane[some].astype(np.int64) * span
        start, end = start[some] + shift, end[some] + shift
        order = np.argsort(start, kind="stable")
        start, reach = start[order], np.maximum.accumulate(end[order])
        opens = np.ones(len(start), dtype=bool)
        opens[1:] = start[1:] > reach[:-1]
        closes = np.ones(len(start), dtype=bool)
        closes[:-1] = opens[1:]
        return cls(start=start[opens], end=reach[closes], lanes=lanes, span=span)

    def covers(self, time: Ints) -> NDArray[np.bool_]:
        """Whether each of the shifted times is covered."""
        reach = np.append(0, self.end)[np.searchsorted(self.start, time, side="right")]
        return np.asarray(time < reach)

    def covered_until(self, time: Ints) -> Ints:
        """Covered time, over all lanes, before each of the shifted times."""
        total = np.concatenate(([0], np.cumsum(self.end - self.start)))
        last = np.searchsorted(self.start, time, side="right")
        end = np.concatenate(([0], self.end))
        return np.asarray(total[last] - np.maximum(end[last] - time, 0), dtype=np.int64)

    def within(self, start: Ints, end: Ints) -> Ints:
        """Covered time in each of the shifted intervals."""
        if not len(self.start):  # a run without faults asks often
            return np.zeros(len(start), dtype=np.int64)
        return self.covered_until(end) - self.covered_until(start)

    def length(self) -> Ints:
        """Nanoseconds covered on each lane, shape (lanes,)."""
        return self._per_lane(self.end - self.start)

    def overlap(self, other: "Intervals") -> Ints:
        """Nanoseconds on each lane that both cover, shape (lanes,)."""
        return self._per_lane(other.within(self.start, self.end))

    def among(self, rule: Callable[..., NDArray[np.bool_]], *others: "Intervals") -> "Intervals":
        """The times for which `rule` holds of whether this set and each of the others (same lanes) covers them."""
        sets = (self, *others)
        edges = np.concatenate([edge for each in sets for edge in (each.start, each.end)])
        edges.sort(kind="stable")  # quick, since they come in sorted pieces
        cut = edges[np.diff(edges, prepend=-1) != 0]
        holds = rule(*(each.covers(cut) for each in sets))[:-1]
        return replace(self, start=cut[:-1][holds], end=cut[1:][holds])

    def _per_lane(self, amounts: Ints) -> Ints:
        sums = np.zeros(self.lanes, dtype=np.int64)
        np.add.at(sums, self.start // self.span, amounts)
        return sums
