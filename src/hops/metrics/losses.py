"""What faults cost in a trace: work and messages thrown away, and how long devices were down or slow.

Rule: an iteration is stalled if its time exceeds the median by more than 5 robust spreads and by more than 5 % of it.
What stalled is the term of its critical path that exceeds its own median most. The spread grows with the share of
iterations that stall, to twice its size at two fifths; if half of them stall, that is what is usual.
"""

from dataclasses import dataclass

import numpy as np

from hops.metrics.critical_path import Paths, PathTerm
from hops.metrics.intervals import Intervals, Ints
from hops.metrics.iterations import Iterations, Robust
from hops.metrics.throughput import iteration_times_ns
from hops.trace.trace import Stream, Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Losses:
    """Over a whole trace, warm-up included.

    Attributes:
        work_ns: time spent on work that was lost, shape (ranks,). Doing it again costs the same once more.
        pieces_of_work: how many rows of work were lost; both ends of a tied reduction count.
        messages: how many messages were lost and sent again.
        down_ns: time under a fault of the rank's own device (stop or slow), shape (ranks,).
        faults: how many faults hit ranks or links of the run, counted once for each rank or pair of ranks.
    """

    work_ns: Ints
    pieces_of_work: int
    messages: int
    down_ns: Ints
    faults: int

    @property
    def any(self) -> bool:
        """Whether a fault hit the run."""
        return self.faults > 0


def losses(trace: Trace) -> Losses:
    """Count what the FAULT and LOST rows of a trace say."""
    lost, faults = trace.of(Stream.LOST), trace.of(Stream.FAULT)
    work, own = lost.where(lost.peer < 0), faults.where(faults.peer < 0)
    ranks = trace.meta.num_ranks
    work_ns = np.zeros(ranks, dtype=np.int64)
    np.add.at(work_ns, work.rank, work.duration_ns)
    span = int(trace.end_ns.max(initial=0)) + 1
    down = Intervals.union(own.rank, own.start_ns, own.end_ns, lanes=ranks, span=span)
    return Losses(
        work_ns=work_ns,
        pieces_of_work=len(work),
        messages=len(lost) - len(work),
        down_ns=down.length(),
        faults=len(faults),
    )


_FLOOR = 0.05


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
    limit = usual.outlying(floor=_FLOOR * usual.median)
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
