"""Stalls: iterations that take longer than noise explains, and where they lost the time.

Rule: an iteration is stalled if its time exceeds the median by more than 5 robust spreads and by more than 5 % of it.
What stalled is the term of its critical path that exceeds its own median most. The spread grows with the share of
iterations that stall, to twice its size at two fifths; if half of them stall, that is what is usual.
"""

from dataclasses import dataclass

import numpy as np

from hops.metrics.path import Paths, Term
from hops.metrics.rates import iteration_times_ns
from hops.metrics.robust import Robust
from hops.metrics.run import Run

_FLOOR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stalled iteration.

    Attributes:
        iteration: its number.
        excess_ns: how much it took above the median iteration.
        term: what on its critical path exceeds its own median most.
        term_excess_ns: by how much.
    """

    iteration: int
    excess_ns: int
    term: Term
    term_excess_ns: int


def find_stalls(run: Run, paths: Paths) -> tuple[Stall, ...]:
    """The stalled iterations of a run, in order; `paths` are its critical paths."""
    times = iteration_times_ns(run)
    usual = Robust.of(times)
    limit = usual.outlying(floor=_FLOOR * usual.median)
    excess = paths.spent_ns - np.median(paths.spent_ns, axis=0)
    stalls = []
    for place in np.flatnonzero(times > limit).tolist():
        worst = int(np.argmax(excess[place]))
        stalls.append(
            Stall(
                iteration=int(run.iterations[place]),
                excess_ns=round(float(times[place]) - usual.median),
                term=paths.terms[worst],
                term_excess_ns=round(float(excess[place, worst])),
            )
        )
    return tuple(stalls)
