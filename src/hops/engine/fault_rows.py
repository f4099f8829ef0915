"""The faults of a run as rows of its trace: on the rank of a device, and on both ends of what crosses a link."""

from collections.abc import Iterator

import numpy as np

from hops.actions import Op
from hops.engine.disturbances import Disturbances
from hops.faults import Fault, FaultKind
from hops.trace import COLUMNS, Stream, Trace


def with_fault_rows(trace: Trace, disturbances: Disturbances) -> Trace:
    """The trace with one row for every fault and rank (or pair of ranks) that it hits, while the run lasts.

    A link hits the pairs that exchanged messages or tied gradients over it, and as (rank, rank) itself a rank whose
    gradient reduction crosses it. `iteration` is the one that had started last, anywhere.
    """
    end = int(trace.end_ns.max(initial=0))
    numbers, first = np.unique(trace.iteration, return_index=True)  # rows are sorted by start
    rows: dict[str, list[int]] = {name: [] for name in COLUMNS}
    pairs_of_link = _pairs_of_links(trace, disturbances)
    for fault in disturbances.faults.plan:
        if fault.start_ns >= end:
            continue
        started = int(np.searchsorted(trace.start_ns[first], fault.start_ns, side="right"))
        for rank, peer in _hit(fault, disturbances, pairs_of_link, trace.meta.num_ranks):
            row = {
                "iteration": int(numbers[max(0, started - 1)]),
                "rank": rank,
                "stream": int(Stream.FAULT),
                "stage": -1,
                "op": int(Op.HOST),
                "microbatch": -1,
                "peer": peer,
                "start_ns": fault.start_ns,
                "end_ns": min(fault.end_ns, end),
                "bytes": 0,
            }
            for name, value in row.items():
                rows[name].append(value)
    if not rows["rank"]:
        return trace
    columns = {name: np.concatenate([getattr(trace, name), rows[name]]) for name in COLUMNS}
    return Trace.from_columns(columns, trace.meta)


def _hit(
    fault: Fault, disturbances: Disturbances, pairs_of_link: dict[str, list[tuple[int, int]]], num_ranks: int
) -> Iterator[tuple[int, int]]:
    """Ranks and peers (-1: none) that a fault hits."""
    if fault.kind in (FaultKind.LINK_SLOW, FaultKind.LINK_DOWN):
        yield from pairs_of_link.get(fault.target, ())
        return
    devices = disturbances.faults.devices or tuple(f"rank{rank}" for rank in range(num_ranks))
    yield from ((rank, -1) for rank, device in enumerate(devices) if device == fault.target)


def _pairs_of_links(trace: Trace, disturbances: Disturbances) -> dict[str, list[tuple[int, int]]]:
    sent = trace.where(trace.peer >= 0)
    pairs = set(zip(sent.rank.tolist(), sent.peer.tolist(), strict=True))
    if np.any(trace.op == Op.TIED_REDUCE):
        first, last = trace.meta.rank_of_stage[0], trace.meta.rank_of_stage[-1]
        pairs |= {(first, last), (last, first)}
    found: dict[str, list[tuple[int, int]]] = {}
    for pair in sorted(pairs):
        for link in trace.meta.routes.get(pair, ()):
            found.setdefault(trace.meta.links[link].name, []).append(pair)
    for rank in np.unique(trace.rank[trace.op == Op.GRAD_REDUCE]).tolist() if disturbances.reduction_links else ():
        for link in disturbances.reduction_links[rank]:
            found.setdefault(disturbances.links[link], []).append((rank, rank))
    return found
