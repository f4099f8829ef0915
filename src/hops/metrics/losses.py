"""What faults cost in a trace: work and messages thrown away, and how long devices were down or slow."""

from dataclasses import dataclass

import numpy as np

from hops.metrics.intervals import Intervals, Ints
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
