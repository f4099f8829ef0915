"""Iterations that noise does not explain: warm-up at the start of a run, and stalls in it.

Warm-up: from the first iteration on, while its window `pipeline` is longer than the median of all by more than 5
robust spreads and 1 %; at most half of the iterations. The end of an iteration (reductions, optimizer) is left out of
this rule, because a reduction that stalls in the first iteration is a stall and no warm-up.

Stalls: an iteration whose time exceeds the median by more than 5 robust spreads and by more than 5 % of it. What
stalled is the term of its critical path that exceeds its own median most. The spread grows with the share of
iterations that stall, to twice its size at two fifths; if half of them stall, that is what is usual.
Both rules: docs/decisions/0083-warm-up-and-stalls.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hops.metrics.critical_path import Paths, PathTerm
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.metrics.throughput import iteration_times_ns
from hops.trace.trace import Trace

_WARMUP_FLOOR = 0.01
_STALL_FLOOR = 0.05

MAD_TO_SIGMA = 1.4826  # of a normal distribution: 1 / Phi^-1(3/4); Rousseeuw and Croux 1993, section 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """Of `count` values: their median, and the standard deviation that a normal distribution of their MAD has."""

    count: int
    median: float
    spread: float

    @classmethod
    def of(cls, values: ArrayLike) -> "Robust":
        """Of at least one value."""
        array = np.asarray(values, dtype=np.float64)
        median = float(np.median(array))
        spread = MAD_TO_SIGMA * float(np.median(np.abs(array - median)))
        return cls(count=len(array), median=median, spread=spread)

    def outlying(self, *, floor: float) -> float:
        """The value above which one is no noise: 5 spreads above the median, and at least `floor` above it."""
        return self.median + max(OUTLYING_SPREADS * self.spread, floor)


# The median and spread of 17 normal values take one of them for an outlier in 1 of 90 runs (20,000 drawn runs).
OUTLYING_SPREADS = 5.0


def find_warmup(trace: Trace) -> int:
    """How many leading iterations are warm-up. Raises UsageError for a trace without actions."""
    run = Iterations.recorded(trace, RunFacts())
    windows = (run.pipeline_end_ns - run.pipeline_start_ns).tolist()
    usual = Robust.of(windows)
    limit = usual.outlying(floor=_WARMUP_FLOOR * usual.median)
    leading = next((place for place, window in enumerate(windows) if window <= limit), len(windows))
    return min(leading, len(windows) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowIteration:
    """One stalled iteration.

    Attributes:
        iteration: its number.
        excess_ns: how much it took above the median iteration.
        term: what on its critical path exceeds its own median most.
        term_excess_ns: by how much.
    """

    iteration: int
    excess_ns: int
    term: PathTerm
    term_excess_ns: int


def find_stalls(run: Iterations, paths: Paths) -> tuple[SlowIteration, ...]:
    """The stalled iterations of a run, in order; `paths` are its critical paths."""
    times = iteration_times_ns(run)
    usual = Robust.of(times)
    limit = usual.outlying(floor=_STALL_FLOOR * usual.median)
    excess = paths.spent_ns - np.median(paths.spent_ns, axis=0)
    stalls = []
    for place in np.flatnonzero(times > limit).tolist():
        worst = int(np.argmax(excess[place]))
        stalls.append(
            SlowIteration(
                iteration=int(run.iterations[place]),
                excess_ns=round(float(times[place]) - usual.median),
                term=paths.terms[worst],
                term_excess_ns=round(float(excess[place, worst])),
            )
        )
    return tuple(stalls)
