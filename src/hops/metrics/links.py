"""What crossed each link: bytes over capacity, time in use, and contention."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations
from hops.trace.trace import LinkMeta, Stream
from hops.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """Traffic of one link over all iterations that count. A message occupies it from its entry to its delivery.

    Attributes:
        link: what the trace says of it.
        messages, bytes: that crossed it.
        window_ns: sum of the `iteration` windows.
        busy_ns: time with at least one message.
        contended_ns: time with two or more.
    """

    link: LinkMeta
    messages: int
    bytes: int
    window_ns: int
    busy_ns: int
    contended_ns: int

    @property
    def utilization(self) -> float | None:
        """Bytes over capacity x window; None for a link of unlimited bandwidth."""
        if not isfinite(self.link.bandwidth):
            return None
        return self.bytes / (self.link.bandwidth * self.window_ns / NS_PER_S)

    @property
    def busy_share(self) -> float:
        """Part of the window with at least one message."""
        return self.busy_ns / self.window_ns


def link_uses(run: Iterations) -> tuple[LinkUse, ...]:
    """Traffic of every link, in the order of the trace's metadata."""
    rows = run.trace.of(Stream.MESSAGE)
    pairs, pair_of_row = np.unique(rows.rank.astype(np.int64) * run.num_ranks + rows.peer, return_inverse=True)
    rows_of_pair = np.split(np.argsort(pair_of_row, kind="stable"), np.cumsum(np.bincount(pair_of_row))[:-1])
    rows_of_link: list[list[Ints]] = [[] for _ in run.trace.meta.links]
    for pair, members in zip(pairs, rows_of_pair, strict=False):  # no pairs: split gives one empty part
        for crossed in run.trace.meta.routes.get(divmod(int(pair), run.num_ranks), ()):
            rows_of_link[crossed].append(members)
    uses = []
    for link, parts in zip(run.trace.meta.links, rows_of_link, strict=True):
        members = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        busy, contended = _occupied(rows.start_ns[members], rows.end_ns[members])
        uses.append(
            LinkUse(
                link=link,
                messages=len(members),
                bytes=int(rows.bytes[members].sum()),
                window_ns=run.window_ns,
                busy_ns=busy,
                contended_ns=contended,
            )
        )
    return tuple(uses)


def _occupied(start: Ints, end: Ints) -> tuple[int, int]:
    """Nanoseconds with at least one interval, and with two or more."""
    time = np.concatenate((start, end))
    order = np.argsort(time, kind="stable")
    level = np.cumsum(np.repeat((1, -1), len(start))[order])
    lasting = np.diff(time[order])
    return int(lasting[level[:-1] >= 1].sum()), int(lasting[level[:-1] >= 2].sum())
