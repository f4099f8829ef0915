"""The order of compute actions in a trace as a program, whoever decided it: a policy, or a real run."""

import numpy as np
from numpy.typing import NDArray

from hops.arrays import distinct
from hops.errors import TraceError
from hops.program.action import Op
from hops.program.program import Program
from hops.program.wiring import neighbours
from hops.trace.trace import Stream, Trace


def program_from_trace(trace: Trace, *, iteration: int | None = None) -> Program:
    """Every rank's actions in order of their start; rows that bear their own rank as peer are pairs, two by two.

    Args:
        trace: simulated or measured.
        iteration: which one; None means the first in the trace.

    Raises TraceError if the trace has no actions of that iteration. The program is not checked: a measured trace may
    lack rows.
    """
    is_action = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W)
    numbers = distinct(trace.iteration[is_action])
    if len(numbers) == 0 or (iteration is not None and iteration not in numbers):
        known = f"it has iterations {numbers[0]} to {numbers[-1]}" if len(numbers) else "it has none"
        wanted = "any iteration" if iteration is None else f"iteration {iteration}"
        raise TraceError(f"the trace has no compute actions of {wanted}; {known}")
    chosen = numbers[0] if iteration is None else iteration
    rows = trace.where(is_action & (trace.iteration == chosen))
    shape = trace.meta.shape
    order = np.argsort(rows.rank, kind="stable")
    rank, stage, op, microbatch = (
        column[order].astype(np.int64) for column in (rows.rank, rows.stage, rows.op, rows.microbatch)
    )
    opens = np.zeros(len(rank), dtype=np.bool_)
    opens[paired_rows(rows)[0]] = True
    opens = opens[order]
    return Program(
        shape=shape,
        stage=stage,
        op=op,
        microbatch=microbatch,
        step=np.arange(len(rank)) - np.concatenate([[0], np.cumsum(opens)[:-1]]).astype(np.int64),
        first=np.searchsorted(rank, np.arange(shape.num_ranks + 1)),
    )


def paired_rows(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and second row of every pair: a forward and the backward after it on its rank, in one iteration, both
    bearing the rank as peer.
    """
    rows = np.flatnonzero((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W))
    rows = rows[np.lexsort((rows, trace.iteration[rows], trace.rank[rows]))]
    forward, paired = trace.op[rows] == Op.F, trace.peer[rows] == trace.rank[rows]
    together = (np.diff(trace.rank[rows]) == 0) & (np.diff(trace.iteration[rows]) == 0)
    opens = together & paired[:-1] & paired[1:] & forward[:-1] & ~forward[1:]
    return rows[:-1][opens], rows[1:][opens]


FORWARD, BACKWARD = 0, 1  # the two directions in which data travels along the stages


def producer_rows(trace: Trace) -> NDArray[np.int64]:
    """For every row, the index of the action that made what it takes from a neighbouring stage; -1: nothing.

    F takes the activation of the stage before, B and I the gradient of the stage after, W and the rest nothing. A
    MESSAGE row points at the action that sent it. If an action ran twice (redone after a fault), the later one counts.
    """
    lookup = _Lookup(trace)
    direction = np.where(trace.op == Op.F, FORWARD, BACKWARD)
    producer_stage = neighbours(trace.meta.shape, trace.stage.astype(np.int64), np.where(trace.op == Op.F, -1, 1))
    producer_stage = np.where(trace.stream == Stream.MESSAGE, trace.stage, producer_stage)
    takes = (trace.op <= Op.I) & np.isin(trace.stream, (Stream.COMPUTE, Stream.MESSAGE))
    takes &= (producer_stage >= 0) & (trace.microbatch >= 0)
    rows = np.full(len(trace), -1, dtype=np.int64)
    rows[takes] = lookup.rows[lookup.keys(trace, producer_stage, direction)[takes]]
    return rows


class _Lookup:
    """Row of the action of (iteration, stage, direction, microbatch), as one dense array."""

    def __init__(self, trace: Trace) -> None:
        iterations = distinct(trace.iteration)
        self.iteration = np.searchsorted(iterations, trace.iteration).astype(np.int64)
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
