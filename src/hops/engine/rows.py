"""Records rows as three integers each while the run goes on, and unpacks them into columns at its end.

Code bent for speed (see `benchmarks/engine.py`): a row costs three appends and 24 bytes.
"""

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.cost.base import CostModel
from hops.engine.settings import RunSettings
from hops.hardware.network import CrossedLinks, Network
from hops.program.action import Op
from hops.program.shape import Shape
from hops.trace.trace import LinkMeta, Stream, Trace, TraceMeta

# code = iteration | stage (or rank, for rows without one) | microbatch | op | stream
_STREAM_BITS, _OP_BITS, _MICROBATCH_BITS, _STAGE_BITS = 3, 3, 20, 14
_OP_AT = _STREAM_BITS
_MICROBATCH_AT = _OP_AT + _OP_BITS
_STAGE_AT = _MICROBATCH_AT + _MICROBATCH_BITS
_ITERATION_AT = _STAGE_AT + _STAGE_BITS
MAX_MICROBATCHES = 1 << _MICROBATCH_BITS
MAX_STAGES = 1 << _STAGE_BITS
LOST_MESSAGE = 6  # stands for Stream.LOST in the code of a message


class Recorder:
    """Collects rows. Messages and actions are given by stage; the other rows by rank."""

    __slots__ = ("_add_code", "_add_end", "_add_start", "_codes", "_ends", "_starts")

    def __init__(self) -> None:
        self._codes = array("q")
        self._starts = array("q")
        self._ends = array("q")
        self._add_code, self._add_start, self._add_end = self._codes.append, self._starts.append, self._ends.append

    def row(
        self, stream: int, iteration: int, where: int, op: int, microbatch: int, start_ns: int, end_ns: int
    ) -> None:
        """Add a row (by position, for speed); `where`: stage of an action or message, rank of anything else."""
        self._add_code(
            iteration << _ITERATION_AT | where << _STAGE_AT | microbatch << _MICROBATCH_AT | op << _OP_AT | stream
        )
        self._add_start(start_ns)
        self._add_end(end_ns)

    def rows(self, codes: NDArray[np.int64], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> None:
        """Add many rows at once; `codes` come from `codes_of`."""
        for kept, added in ((self._codes, codes), (self._starts, start_ns), (self._ends, end_ns)):
            kept.frombytes(np.ascontiguousarray(added, dtype=np.int64).tobytes())

    def trace(self, meta: TraceMeta, message_bytes: NDArray[np.int64]) -> Trace:
        """The trace, sorted as traces are. `message_bytes`: shape (stages, ops that send)."""
        owner = np.asarray(meta.rank_of_stage, dtype=np.int32)
        codes, start, end = (_view(rows) for rows in (self._codes, self._starts, self._ends))
        order = np.lexsort((_kind(codes), _rank(codes, owner), end, start))
        codes = codes[order]
        stage = np.where(_is_staged(codes), _where(codes), np.int32(-1))
        op, kind = _op(codes), _kind(codes)
        message = (kind == Stream.MESSAGE) | (kind == LOST_MESSAGE)
        peer = np.where(op == Op.F, stage + np.int32(1), stage - np.int32(1))[message]
        peers, sizes = np.full(len(codes), -1, dtype=np.int32), np.zeros(len(codes), dtype=np.int64)
        peers[message] = owner[peer]
        sizes[message] = message_bytes[stage[message], op[message]]
        return Trace(
            iteration=(codes >> _ITERATION_AT).astype(np.int32),
            rank=_rank(codes, owner),
            stream=np.minimum(kind, np.int8(Stream.LOST)),
            stage=stage,
            op=op,
            microbatch=np.where(stage >= 0, _part(codes, _MICROBATCH_AT, _MICROBATCH_BITS, np.int32), np.int32(-1)),
            peer=peers,
            start_ns=start[order],
            end_ns=end[order],
            bytes=sizes,
            meta=meta,
        )


def codes_of(
    stream: int, iteration: int, where: NDArray[np.int64], op: NDArray[np.int64], microbatch: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The codes of many rows of one stream and iteration; arguments as in `Recorder.row`."""
    of_action = where << _STAGE_AT | microbatch << _MICROBATCH_AT | op << _OP_AT
    return of_action | (iteration << _ITERATION_AT | stream)


def _view(rows: "array[int]") -> NDArray[np.int64]:
    return np.frombuffer(rows, dtype=np.int64) if rows else np.empty(0, np.int64)


def _part(codes: NDArray[np.int64], at: int, bits: int, dtype: type) -> NDArray[Any]:
    return (codes >> at & ((1 << bits) - 1)).astype(dtype)


def _kind(codes: NDArray[np.int64]) -> NDArray[np.int8]:
    """The stream, or LOST_MESSAGE."""
    return _part(codes, 0, _STREAM_BITS, np.int8)


def _op(codes: NDArray[np.int64]) -> NDArray[np.int8]:
    return _part(codes, _OP_AT, _OP_BITS, np.int8)


def _where(codes: NDArray[np.int64]) -> NDArray[np.int32]:
    return _part(codes, _STAGE_AT, _STAGE_BITS, np.int32)


def _is_staged(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    return _op(codes) <= Op.W


def _rank(codes: NDArray[np.int64], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    where = _where(codes)
    return np.where(_is_staged(codes), owner[np.minimum(where, len(owner) - 1)], where)


def trace_meta(shape: Shape, network: Network, settings: RunSettings) -> TraceMeta:
    """The meta of a run's trace."""
    ranks = range(shape.num_ranks)
    return TraceMeta(
        source="simulated",
        schedule=settings.schedule,
        num_microbatches=shape.num_microbatches,
        rank_of_stage=shape.rank_of_stage,
        devices=settings.devices or tuple(f"rank{rank}" for rank in ranks),
        hosts=settings.hosts or tuple(f"host{rank}" for rank in ranks),
        links=tuple(LinkMeta(name=link.name, bandwidth=link.bandwidth) for link in network.links),
        routes=CrossedLinks(network, shape.num_ranks),
    )


def message_sizes(costs: CostModel) -> NDArray[np.int64]:
    """Bytes that each stage sends: shape (stages, ops that send)."""
    sending = (Op.F, Op.B, Op.I)
    sizes = [[costs.message_bytes(stage, op) for op in sending] for stage in range(costs.num_stages)]
    return np.array(sizes, dtype=np.int64)
