"""The difference of two runs' iteration times, term by term of their critical paths; the terms sum to it.

An iteration's time is the sum of what lies on its critical path (see critical_path). Means of the terms over the
iterations that did not stall, and what stalls add to the mean, sum to the mean iteration time of a run; so their
differences sum to the difference of the runs. Where the path of one run leads through other ranks than that of the
other, both show: less time there, more time here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hops.metrics.audit import NS_PER_MS, Audit
from hops.metrics.critical_path import PathTerm, Piece

STALLS = "stalls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The mean iteration of one run: `sum(terms_ms) + stalls_ms = iteration_ms`.

    Attributes:
        terms_ms: by term, mean over the iterations that did not stall.
        stalls_ms: by how much the mean over all iterations is above that of those that did not stall.
        stalled, iterations: how many stalled, of how many.
    """

    iteration_ms: float
    terms_ms: Mapping[PathTerm, float]
    stalls_ms: float
    stalled: int
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TermChange:
    """One term in both runs; `term` is None for what stalls add."""

    term: PathTerm | None
    first_ms: float
    second_ms: float

    def __str__(self) -> str:
        return STALLS if self.term is None else str(self.term)

    @property
    def change_ms(self) -> float:
        """How much more the second run spends."""
        return self.second_ms - self.first_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two runs, and the terms in which they differ, the greatest change first."""

    first: Breakdown
    second: Breakdown
    changes: tuple[TermChange, ...]

    @property
    def total_ms(self) -> float:
        """How much longer the second run's mean iteration is: the sum of all changes."""
        return self.second.iteration_ms - self.first.iteration_ms

    def by_piece(self) -> tuple[tuple[str, float, float], ...]:
        """Name, first and second time of every kind of piece that occurs, and of stalls; they sum to the totals."""
        groups: dict[str, list[TermChange]] = {name: [] for name in (*Piece, STALLS)}
        for change in self.changes:
            groups[STALLS if change.term is None else change.term.piece].append(change)
        return tuple(
            (name, sum(each.first_ms for each in group), sum(each.second_ms for each in group))
            for name, group in groups.items()
            if any(each.first_ms or each.second_ms for each in group)
        )

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of numbers, text and None."""
        return {
            "iteration_ms": {"first": self.first.iteration_ms, "second": self.second.iteration_ms},
            "change_ms": self.total_ms,
            "by_piece": [
                {"piece": name, "first_ms": first, "second_ms": second, "change_ms": second - first}
                for name, first, second in self.by_piece()
            ],
            "terms": [
                {
                    **({"piece": STALLS} if change.term is None else change.term.to_dict()),
                    "first_ms": change.first_ms,
                    "second_ms": change.second_ms,
                    "change_ms": change.change_ms,
                }
                for change in self.changes
            ],
        }


def break_down(found: Audit) -> Breakdown:
    """The mean iteration of an audited run."""
    stalled = {stall.iteration for stall in found.stalls}
    calm = np.array([number not in stalled for number in found.iterations])
    means = found.paths.spent_ns[calm].mean(axis=0) / NS_PER_MS
    walls = np.asarray(found.walls_ms)
    return Breakdown(
        iteration_ms=float(walls.mean()),
        terms_ms=dict(zip(found.paths.terms, means.tolist(), strict=True)),
        stalls_ms=float(walls.mean() - walls[calm].mean()),
        stalled=len(stalled),
        iterations=len(calm),
    )


def difference(first: Breakdown, second: Breakdown) -> Difference:
    """What the second run spends more (or less) than the first."""
    terms = [*first.terms_ms, *(term for term in second.terms_ms if term not in first.terms_ms)]
    changes = [_change(term, first, second) for term in terms]
    changes.append(TermChange(term=None, first_ms=first.stalls_ms, second_ms=second.stalls_ms))
    ordered = sorted(changes, key=lambda each: -abs(each.change_ms))
    return Difference(first=first, second=second, changes=tuple(ordered))


def _change(term: PathTerm, first: Breakdown, second: Breakdown) -> TermChange:
    """A term that is not on a run's path takes none of its time."""
    sides = [run.terms_ms.get(term, 0.0) for run in (first, second)]
    return TermChange(term=term, first_ms=sides[0], second_ms=sides[1])
