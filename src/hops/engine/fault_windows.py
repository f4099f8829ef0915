"""A fault plan compiled for one run: how slow each rank is when, and each moment at which things break or return."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.engine.settings import Faults
from hops.faults.plan import FOREVER, Fault, FaultKind
from hops.program.action import Op
from hops.trace.trace import COLUMNS, Stream, Trace


@dataclass(frozen=True, slots=True)
class Pace:
    """How many times longer everything takes: `factors[i]` from `since_ns[i]` on; the first holds from 0 on."""

    since_ns: tuple[int, ...] = (0,)
    factors: tuple[float, ...] = (1.0,)

    def at(self, time_ns: int) -> tuple[float, int]:
        """The factor now, and until when it holds."""
        index = bisect_right(self.since_ns, time_ns)
        return self.factors[index - 1], self.since_ns[index] if index < len(self.since_ns) else FOREVER


def end_of(start_ns: int, length_ns: int, paces: Sequence[Pace]) -> int:
    """When work ends that takes `length_ns` undisturbed and goes at the slowest of the paces at each instant.

    The integral of 1/factor from start to end is the length; the end is rounded to the nearest nanosecond.
    """
    now, left = start_ns, float(length_ns)
    while True:
        segments = [pace.at(now) for pace in paces]
        factor, until = max(factor for factor, _ in segments), min(until for _, until in segments)
        if left * factor <= until - now:
            return now + round(left * factor)
        left -= (until - now) / factor
        now = until


class WindowEdge(NamedTuple):
    """Everything that breaks or returns at one moment."""

    ranks_down: list[int]
    ranks_up: list[int]
    links_down: list[int]
    links_up: list[int]
    bandwidths: list[tuple[int, float]]  # link, the part that is left from now on


def _no_change() -> WindowEdge:
    return WindowEdge([], [], [], [], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultWindows:
    """Faults by rank and by link.

    Attributes:
        faults: the plan and whom it concerns.
        links: names of the network's links, then of those that only reductions cross.
        reduction_links[rank]: indices into `links` of what the rank's gradient reduction crosses.
        rank_pace, link_pace: by rank and by link; None: never slow.
        link_down: by link, its down windows (start, end), merged and in order.
        changes: (moment, what breaks or returns), in order of time.
        horizon_ns: what happens later than this is not in here; FOREVER: everything is.
    """

    faults: Faults
    links: tuple[str, ...]
    reduction_links: tuple[tuple[int, ...], ...]
    rank_pace: tuple[Pace | None, ...]
    link_pace: tuple[Pace | None, ...]
    link_down: tuple[tuple[tuple[int, int], ...], ...]
    changes: list[tuple[int, WindowEdge]] = field(repr=False)
    horizon_ns: int

    @classmethod
    def compile(
        cls, faults: Faults, num_ranks: int, network_links: Iterable[str], *, until_ns: int = FOREVER
    ) -> "FaultWindows":
        """Faults that begin by `until_ns`, of devices and links that the run uses. A run may follow them until then.

        Until then they are exact: a fault that begins later can only change what is later.
        """
        devices = faults.devices or tuple(f"rank{rank}" for rank in range(num_ranks))
        crossed = faults.reduction_links or ((),) * num_ranks
        links = tuple(network_links)
        links += tuple(dict.fromkeys(name for names in crossed for name in names if name not in links))
        index = {name: number for number, name in enumerate(links)}
        of: dict[tuple[FaultKind, str], list[Fault]] = defaultdict(list)
        begun = faults.plan.begun_by(until_ns)
        for fault in begun:
            of[fault.kind, fault.target].append(fault)
        rank_down = [_merged(of[FaultKind.STOP, device]) for device in devices]
        link_down = [_merged(of[FaultKind.LINK_DOWN, link]) for link in links]
        bandwidths = [_steps(of[FaultKind.LINK_SLOW, link]) for link in links]
        changes: dict[int, WindowEdge] = defaultdict(_no_change)
        for rank, start, end in _numbered(rank_down):
            changes[start].ranks_down.append(rank)
            changes[end].ranks_up.append(rank)
        for link, start, end in _numbered(link_down):
            changes[start].links_down.append(link)
            changes[end].links_up.append(link)
        for number, steps in enumerate(bandwidths):
            for time, factor in steps:
                changes[time].bandwidths.append((number, factor))
        return cls(
            faults=faults,
            links=links,
            reduction_links=tuple(tuple(index[name] for name in names) for names in crossed),
            rank_pace=tuple(_pace(_steps(of[FaultKind.SLOW, device])) for device in devices),
            link_pace=tuple(_pace([(time, 1 / factor) for time, factor in steps]) for steps in bandwidths),
            link_down=tuple(map(tuple, link_down)),
            changes=sorted(item for item in changes.items() if item[0] < FOREVER and item[0] <= until_ns),
            horizon_ns=until_ns if len(begun) < len(faults.plan) else FOREVER,
        )

    def stops_at(self, time_ns: int, ranks: Iterable[int]) -> tuple[Fault, ...]:
        """The stops that begin at this moment on these ranks' devices."""
        devices = self.faults.devices
        hit = {devices[rank] if devices else f"rank{rank}" for rank in ranks}
        return tuple(
            fault
            for fault in self.faults.plan
            if fault.kind is FaultKind.STOP and fault.start_ns == time_ns and fault.target in hit
        )

    def down_since(self, link: int, time_ns: int) -> tuple[int, int]:
        """The window in which a link is down now: (start, end). It may end at this moment."""
        return next(window for window in self.link_down[link] if window[0] <= time_ns <= window[1])


def _merged(faults: Iterable[Fault]) -> list[tuple[int, int]]:
    """Windows in order of time, those that touch made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((fault.start_ns, fault.end_ns) for fault in faults):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _numbered(windows: Iterable[Iterable[tuple[int, int]]]) -> Iterator[tuple[int, int, int]]:
    for number, each in enumerate(windows):
        for start, end in each:
            yield number, start, end


def _steps(faults: Sequence[Fault]) -> list[tuple[int, float]]:
    """The product of the factors of all faults that last, whenever it changes. `faults` are in the plan's order."""
    edges = defaultdict[int, list[int]](list)
    for number, fault in enumerate(faults):
        edges[fault.start_ns].append(number)
        edges[fault.end_ns].append(number)
    steps, lasting = [], list[int]()  # numbers, ascending: products are rounded in the plan's order
    for time in sorted(edges):
        for number in edges[time]:
            if faults[number].end_ns == time:
                del lasting[bisect_left(lasting, number)]
            else:
                insort(lasting, number)
        if time < FOREVER:
            steps.append((time, prod((faults[number].factor for number in lasting), start=1.0)))
    return steps


def _pace(steps: Sequence[tuple[int, float]]) -> Pace | None:
    by_time = {0: 1.0, **dict(steps)}
    return Pace(tuple(by_time), tuple(by_time.values())) if steps else None


def with_fault_rows(trace: Trace, disturbances: FaultWindows) -> Trace:
    """The trace with one row for every fault and rank (or pair of ranks) that it hits, while the run lasts.

    A link hits the pairs that exchanged messages or tied gradients over it, and as (rank, rank) itself a rank whose
    gradient reduction crosses it. `iteration` is the one that had started last, anywhere.
    """
    end = int(trace.end_ns.max(initial=0))
    begun = disturbances.faults.plan.begun_by(end - 1)
    hit_by = _hit_by(trace, disturbances) if begun else {}
    numbers, first = np.unique(trace.iteration, return_index=True) if begun else ((), ())  # rows are sorted by start
    begins = [int(trace.start_ns[row]) for row in first]
    rows = []
    for fault in begun:
        number = int(numbers[max(0, bisect_right(begins, fault.start_ns) - 1)])
        for rank, peer in hit_by.get((fault.kind.of_link, fault.target), ()):
            rows.append((number, rank, _FAULT, -1, int(Op.HOST), -1, peer, fault.start_ns, min(fault.end_ns, end), 0))
    return _inserted(trace, np.array(rows, dtype=np.int64)) if rows else trace


_FAULT = int(Stream.FAULT)


def _inserted(trace: Trace, rows: NDArray[np.int64]) -> Trace:
    """The trace with a few more rows, shape (rows, columns), each where it belongs."""
    added = dict(zip(COLUMNS, rows.T, strict=True))
    order = np.lexsort((added["rank"], added["end_ns"], added["start_ns"]))
    added = {name: column[order] for name, column in added.items()}
    lows = np.searchsorted(trace.start_ns, added["start_ns"], side="left").tolist()
    highs = np.searchsorted(trace.start_ns, added["start_ns"], side="right").tolist()
    places = []
    for row, (low, high) in enumerate(zip(lows, highs, strict=True)):  # among those that start then
        end, rank = trace.end_ns[low:high], trace.rank[low:high]
        before = (end == added["end_ns"][row]) & (
            (rank < added["rank"][row]) | ((rank == added["rank"][row]) & (trace.stream[low:high] <= _FAULT))
        )
        places.append(low + int(np.count_nonzero(before | (end < added["end_ns"][row]))))
    columns = {
        name: np.insert(getattr(trace, name), places, added[name].astype(kind)) for name, kind in COLUMNS.items()
    }
    return Trace(**columns, meta=trace.meta)


def _hit_by(trace: Trace, disturbances: FaultWindows) -> dict[tuple[bool, str], list[tuple[int, int]]]:
    """By whether it is a link, and its name: the ranks that its faults hit, and their peers (-1: none)."""
    ranks = trace.meta.num_ranks
    found: dict[tuple[bool, str], list[tuple[int, int]]] = defaultdict(list)
    for rank, device in enumerate(disturbances.faults.devices or tuple(f"rank{rank}" for rank in range(ranks))):
        found[False, device].append((rank, -1))
    if not any(fault.kind.of_link for fault in disturbances.faults.plan):
        return found
    sent = (trace.peer >= 0) & (trace.peer != trace.rank)  # pairs of actions bear their own rank
    numbers = np.unique(trace.rank[sent].astype(np.int64) * ranks + trace.peer[sent]).tolist()
    pairs = {divmod(number, ranks) for number in numbers}
    if np.any(trace.op == Op.TIED_REDUCE):
        first, last = trace.meta.rank_of_stage[0], trace.meta.rank_of_stage[-1]
        pairs |= {(first, last), (last, first)}
    for pair in sorted(pairs):
        for link in trace.meta.routes.get(pair, ()):
            found[True, trace.meta.links[link].name].append(pair)
    for rank in np.unique(trace.rank[trace.op == Op.GRAD_REDUCE]).tolist() if disturbances.reduction_links else ():
        for link in disturbances.reduction_links[rank]:
            found[True, disturbances.links[link]].append((rank, rank))
    return found
