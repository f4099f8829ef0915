"""What an action waited for: the row of the trace that made its input."""

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.trace.trace import Stream, Trace

FORWARD, BACKWARD = 0, 1  # the two directions in which data travels along the stages


def producer_rows(trace: Trace) -> NDArray[np.int64]:
    """For every row, the index of the action that made what it takes from a neighbouring stage; -1: nothing.

    F takes the activation of the stage before, B and I the gradient of the stage after, W and the rest nothing. A
    MESSAGE row points at the action that sent it. If an action ran twice (redone after a fault), the later one counts.
    """
    lookup = _Lookup(trace)
    direction = np.where(trace.op == Op.F, FORWARD, BACKWARD)
    producer_stage = np.where(trace.op == Op.F, trace.stage - 1, trace.stage + 1)
    producer_stage = np.where(trace.stream == Stream.MESSAGE, trace.stage, producer_stage)
    takes = (trace.op <= Op.I) & np.isin(trace.stream, (Stream.COMPUTE, Stream.MESSAGE))
    takes &= (producer_stage >= 0) & (producer_stage < trace.meta.num_stages) & (trace.microbatch >= 0)
    rows = np.full(len(trace), -1, dtype=np.int64)
    rows[takes] = lookup.rows[lookup.keys(trace, producer_stage, direction)[takes]]
    return rows


class _Lookup:
    """Row of the action of (iteration, stage, direction, microbatch), as one dense array."""

    def __init__(self, trace: Trace) -> None:
        iterations, index = np.unique(trace.iteration, return_inverse=True)
        self.iteration = index.astype(np.int64)
        self.num_stages = trace.meta.num_stages
        self.num_microbatches = int(trace.microbatch.max(initial=-1)) + 1
        self.rows = np.full(len(iterations) * self.num_stages * 2 * self.num_microbatches, -1, dtype=np.int64)
        produces = np.flatnonzero((trace.stream == Stream.COMPUTE) & (trace.op <= Op.I))
        direction = np.where(trace.op == Op.F, FORWARD, BACKWARD)
        self.rows[self.keys(trace, trace.stage, direction)[produces]] = produces

    def keys(self, trace: Trace, stage: NDArray[np.integer], direction: NDArray[np.integer]) -> NDArray[np.int64]:
        key: NDArray[np.int64] = (
            (self.iteration * self.num_stages + stage) * 2 + direction
        ) * self.num_microbatches + trace.microbatch
        return key
