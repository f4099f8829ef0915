"""What crossed each link: bytes over capacity, time in use, and contention.

Messages cross the links of their route. Reductions cross those that a fault would hold them up on
(docs/decisions/0093-links-and-reductions.md): the gradient reduction of a rank the links of its host's NIC, by which
its messages leave for and come from other hosts; the tied-embedding one the links between its two ends.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from hops.arrays import distinct
from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations
from hops.program.action import Op
from hops.trace.trace import LinkMeta, Stream, Trace, TraceMeta
from hops.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """Traffic of one link over all iterations that count. A message occupies it from its entry to its delivery.

    Attributes:
        link: what the trace says of it.
        messages, bytes: that crossed it; a simulated reduction has no bytes.
        window_ns: sum of the `iteration` windows.
        busy_ns: time with at least one message or reduction.
        reducing_ns: time with at least one reduction.
        contended_ns: time with two messages or more.
    """

    link: LinkMeta
    messages: int
    bytes: int
    window_ns: int
    busy_ns: int
    reducing_ns: int
    contended_ns: int

    @property
    def utilization(self) -> float | None:
        """Bytes over capacity x window; None for a link of unlimited bandwidth."""
        if not isfinite(self.link.bandwidth):
            return None
        return self.bytes / (self.link.bandwidth * self.window_ns / NS_PER_S)

    @property
    def busy_share(self) -> float:
        """Part of the window with at least one message or reduction."""
        return self.busy_ns / self.window_ns


def link_uses(run: Iterations) -> tuple[LinkUse, ...]:
    """Traffic of every link, in the order of the trace's metadata."""
    rows = run.trace.of(Stream.MESSAGE)
    pair_of_row = rows.rank.astype(np.int64) * run.num_ranks + rows.peer
    order = np.argsort(pair_of_row, kind="stable")
    pairs = distinct(pair_of_row[order])
    rows_of_pair = np.split(order, np.searchsorted(pair_of_row[order], pairs[1:]))
    rows_of_link: list[list[Ints]] = [[] for _ in run.trace.meta.links]
    for pair, members in zip(pairs, rows_of_pair, strict=False):  # no pairs: split gives one empty part
        for crossed in run.trace.meta.routes.get(divmod(int(pair), run.num_ranks), ()):
            rows_of_link[crossed].append(members)
    reductions = run.trace.of(Stream.COLLECTIVE)
    crossing = _reductions_of_links(run, reductions)
    uses = []
    for number, (link, parts) in enumerate(zip(run.trace.meta.links, rows_of_link, strict=True)):
        members = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        busy, contended = _occupied(rows.start_ns[members], rows.end_ns[members])
        reducing = 0
        if crossing[number].any():
            start, end = reductions.start_ns[crossing[number]], reductions.end_ns[crossing[number]]
            reducing, _ = _occupied(start, end)
            busy, _ = _occupied(np.append(rows.start_ns[members], start), np.append(rows.end_ns[members], end))
        uses.append(
            LinkUse(
                link=link,
                messages=len(members),
                bytes=int(rows.bytes[members].sum()),
                window_ns=run.window_ns,
                busy_ns=busy,
                reducing_ns=reducing,
                contended_ns=contended,
            )
        )
    return tuple(uses)


def _reductions_of_links(run: Iterations, reductions: Trace) -> list[NDArray[np.bool_]]:
    """Which reductions cross each link; shape (reductions,) each."""
    meta = run.trace.meta
    crossing = [np.zeros(len(reductions), dtype=bool) for _ in meta.links]
    for rank in np.unique(reductions.rank).tolist():
        mine = reductions.rank == rank
        for op, links in ((Op.GRAD_REDUCE, _nic_links(meta, rank)), (Op.TIED_REDUCE, _tied_links(meta))):
            for link in links:
                crossing[link] |= mine & (reductions.op == op)
    return crossing


def _nic_links(meta: TraceMeta, rank: int) -> set[int]:
    """The first link of every route to another host, and the last one of every route from there."""
    apart = {ends: links for ends, links in meta.routes.items() if meta.hosts[ends[0]] != meta.hosts[ends[1]] and links}
    out = {links[0] for (source, _), links in apart.items() if source == rank}
    return out | {links[-1] for (_, target), links in apart.items() if target == rank}


def _tied_links(meta: TraceMeta) -> set[int]:
    ends = (meta.rank_of_stage[0], meta.rank_of_stage[-1])
    return {link for way in (ends, ends[::-1]) for link in meta.routes.get(way, ())}


def _occupied(start: Ints, end: Ints) -> tuple[int, int]:
    """Nanoseconds with at least one interval, and with two or more."""
    time = np.concatenate((start, end))
    order = np.argsort(time, kind="stable")
    level = np.cumsum(np.repeat((1, -1), len(start))[order])
    lasting = np.diff(time[order])
    return int(lasting[level[:-1] >= 1].sum()), int(lasting[level[:-1] >= 2].sum())
