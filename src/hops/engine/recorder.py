"""Records rows as three integers each while the run goes on, and unpacks them into columns at its end.

Code bent for speed (see `benchmarks/engine.py`): a row costs three appends and 24 bytes.
"""

from array import array

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.trace import Stream, Trace, TraceMeta

# code = iteration | stage (or rank, for rows without one) | microbatch | op | stream
_STREAM_BITS, _OP_BITS, _MICROBATCH_BITS, _STAGE_BITS = 3, 3, 20, 14
_OP_AT = _STREAM_BITS
_MICROBATCH_AT = _OP_AT + _OP_BITS
_STAGE_AT = _MICROBATCH_AT + _MICROBATCH_BITS
_ITERATION_AT = _STAGE_AT + _STAGE_BITS
MAX_MICROBATCHES = 1 << _MICROBATCH_BITS
MAX_STAGES = 1 << _STAGE_BITS


class Recorder:
    """Collects rows. Messages and actions are given by stage; the other rows by rank."""

    __slots__ = ("_codes", "_ends", "_starts")

    def __init__(self) -> None:
        self._codes = array("q")
        self._starts = array("q")
        self._ends = array("q")

    def row(
        self, stream: int, iteration: int, where: int, op: int, microbatch: int, start_ns: int, end_ns: int
    ) -> None:
        """Add a row (by position, for speed); `where`: stage of an action or message, rank of anything else."""
        self._codes.append(
            ((((iteration << _STAGE_BITS | where) << _MICROBATCH_BITS | microbatch) << _OP_BITS | op) << _STREAM_BITS)
            | stream
        )
        self._starts.append(start_ns)
        self._ends.append(end_ns)

    def trace(self, meta: TraceMeta, message_bytes: NDArray[np.int64]) -> Trace:
        """The trace. `message_bytes`: shape (stages, ops that send)."""
        codes = np.frombuffer(self._codes, dtype=np.int64) if self._codes else np.empty(0, np.int64)
        stream = codes & ((1 << _STREAM_BITS) - 1)
        op = codes >> _OP_AT & ((1 << _OP_BITS) - 1)
        microbatch = codes >> _MICROBATCH_AT & (MAX_MICROBATCHES - 1)
        where = codes >> _STAGE_AT & (MAX_STAGES - 1)
        staged = op <= Op.W
        message = stream == Stream.MESSAGE
        stage = np.where(staged, where, -1)
        owner = np.asarray(meta.rank_of_stage, dtype=np.int64)
        rank = np.where(staged, owner[np.minimum(where, len(owner) - 1)], where)
        target = np.clip(np.where(op == Op.F, stage + 1, stage - 1), 0, len(owner) - 1)
        sending = np.where(message, op, 0)
        columns = {
            "iteration": codes >> _ITERATION_AT,
            "rank": rank,
            "stream": stream,
            "stage": stage,
            "op": op,
            "microbatch": np.where(staged, microbatch, -1),
            "peer": np.where(message, owner[target], -1),
            "start_ns": np.frombuffer(self._starts, dtype=np.int64) if self._starts else np.empty(0, np.int64),
            "end_ns": np.frombuffer(self._ends, dtype=np.int64) if self._ends else np.empty(0, np.int64),
            "bytes": np.where(message, message_bytes[np.maximum(stage, 0), sending], 0),
        }
        return Trace.from_columns(columns, meta)
