"""What a trace measured of each device and of each way between two: logarithms of times, apart from what they did."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.draws import FloatArray
from hops.trace import Stream, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """Times of one device or way in order.

    Attributes:
        rank: of the device, or of the sender; peer: the receiver, -1 for devices.
        rows: of the trace.
        values: logarithm of each time, less the mean of its kind (stage, op), so that only changes are left.
    """

    rank: int
    peer: int
    rows: Ints
    values: FloatArray


def device_series(trace: Trace) -> Iterator[Series]:
    """Actions of every rank."""
    actions = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W) & (trace.end_ns > trace.start_ns)
    for rank in range(trace.meta.num_ranks):
        rows = np.flatnonzero(actions & (trace.rank == rank))
        if len(rows):
            yield _series(trace, rank, -1, rows)


def link_series(trace: Trace) -> Iterator[Series]:
    """Messages of every (sender, receiver)."""
    messages = (trace.stream == Stream.MESSAGE) & (trace.end_ns > trace.start_ns)
    pairs = np.unique(np.stack((trace.rank[messages], trace.peer[messages])), axis=1).T
    for rank, peer in pairs.tolist():
        rows = np.flatnonzero(messages & (trace.rank == rank) & (trace.peer == peer))
        yield _series(trace, rank, peer, rows)


def _series(trace: Trace, rank: int, peer: int, rows: Ints) -> Series:
    logs = np.log(trace.duration_ns[rows].astype(np.float64))
    kinds = trace.stage[rows].astype(np.int64) * len(Op) + trace.op[rows]
    _, index = np.unique(kinds, return_inverse=True)
    counts = np.bincount(index)
    means = np.bincount(index, weights=logs) / counts
    return Series(rank=rank, peer=peer, rows=rows, values=logs - means[index])
