"""Offsets between clocks, from what must have happened before what.

An action cannot start before what it takes was made. Of two clocks a and b, b ahead of a by x, every forward from a to
b gives x <= start on b - end on a, and every backward from b to a gives x >= end on b - start on a. So forward and
backward together hold each offset from both sides; over several clocks the tightest bounds are shortest paths. The
estimate is the middle of the bounds relative to the first clock, as if the fastest message took equally long in both
directions; it keeps all constraints, since half the sum of two solutions of difference constraints is one. Half the
distance of the bounds is how far off it may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.errors import TraceError
from hops.trace.order import producer_rows
from hops.trace.trace import COLUMNS, Stream, Trace

Ints = NDArray[np.int64]
UNBOUND = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What must have happened before what: `end_ns` on clock `before`, then `start_ns` on clock `after`. Shape (n,)."""

    before: Ints
    end_ns: Ints
    after: Ints
    start_ns: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffsets:
    """By clock, shape (clocks,): how many ns it is ahead of the first one: the estimate, and its bounds."""

    ahead_ns: Ints
    least_ns: Ints
    most_ns: Ints

    def notes(self, names: Sequence[str]) -> tuple[str, ...]:
        """A sentence for every clock but the first."""
        return tuple(
            f"clock of {name} set back by {ahead / 1e6:.3f} ms, which is off by {(most - least) / 2e6:.3f} ms at most: "
            f"order alone allows {least / 1e6:.3f} to {most / 1e6:.3f} ms ahead of that of {names[0]}"
            for name, ahead, least, most in zip(
                names[1:],
                self.ahead_ns[1:].tolist(),
                self.least_ns[1:].tolist(),
                self.most_ns[1:].tolist(),
                strict=True,
            )
        )


def clock_offsets(order: Order, names: Sequence[str]) -> ClockOffsets:
    """Estimate the offsets of the clocks with these names.

    Raises TraceError if no offsets fit (clocks that drift), or if nothing bounds one from both sides.
    """
    count = len(names)
    most = np.full((count, count), UNBOUND, dtype=np.int64)  # most[a, b]: clock b is ahead of a by no more
    np.minimum.at(most, (order.before, order.after), order.start_ns - order.end_ns)
    np.fill_diagonal(most, 0)
    for through in range(count):
        most = np.minimum(most, np.minimum(most[:, through, None] + most[None, through], UNBOUND))
        around = np.diagonal(most)
        if np.any(around < 0):
            clock = int(np.argmin(around))
            raise TraceError(
                f"no offset between clocks keeps the order of actions: on the way from {names[clock]} around and back "
                f"{-int(around[clock]) / 1e6:.3f} ms are missing; expected clocks that go equally fast: record a "
                "shorter time, or let the hosts keep time together (chrony, PTP)"
            )
    least, highest = -most[:, 0], most[0]
    free = (highest >= UNBOUND // 2) | (least <= -UNBOUND // 2)
    if free.any():
        clock = int(np.argmax(free))
        raise TraceError(
            f"nothing holds the clock of {names[clock]} from both sides; expected forwards and backwards between it "
            f"and {names[0]}"
        )
    return ClockOffsets(ahead_ns=(least + highest) // 2, least_ns=least, most_ns=highest)


def aligned(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """The trace with the clocks of its hosts set back to that of the first, and a note on each."""
    names = list(dict.fromkeys(trace.meta.hosts))
    clock = np.array([names.index(host) for host in trace.meta.hosts])[trace.rank]
    after = np.flatnonzero((trace.stream == Stream.COMPUTE) & (producer_rows(trace) >= 0))
    before = producer_rows(trace)[after]
    apart = clock[before] != clock[after]
    before, after = before[apart], after[apart]
    order = Order(before=clock[before], end_ns=trace.end_ns[before], after=clock[after], start_ns=trace.start_ns[after])
    found = clock_offsets(order, names)
    start, end = (times - found.ahead_ns[clock] for times in (trace.start_ns, trace.end_ns))
    first = start.min()
    columns = {name: getattr(trace, name) for name in COLUMNS} | {"start_ns": start - first, "end_ns": end - first}
    return Trace.from_columns(columns, trace.meta), found.notes(names)
