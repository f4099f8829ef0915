"""A trace is ten NumPy columns; everything known about a run is a function of them.

One row is one interval on one rank. Times are integer nanoseconds since the start of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hops.arrays import distinct, table_library
from hops.program.action import Op
from hops.program.shape import Shape


class Stream(IntEnum):
    """Which lane of its rank a row lies on."""

    COMPUTE = 0  # F, B, I, W and the optimizer step
    MESSAGE = 1  # on the sender's rank, from entering the first link to delivery; op is the producer's
    COLLECTIVE = 2  # TIED_REDUCE, GRAD_REDUCE
    HOST = 3  # the host's own time between iterations
    FAULT = 4  # a fault's window on the rank it hits; of a link: on the sender's rank, with the receiver as peer
    LOST = 5  # what a fault threw away, from its start to that moment: work, or with a peer a message; not the redoing


COLUMNS: Mapping[str, type] = {
    "iteration": np.int32,
    "rank": np.int32,
    "stream": np.int8,
    "stage": np.int32,  # -1: none
    "op": np.int8,  # hops.program.action.Op
    "microbatch": np.int32,  # -1: none
    "peer": np.int32,  # receiving rank of a message, -1: none
    "start_ns": np.int64,
    "end_ns": np.int64,
    "bytes": np.int64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMeta:
    """A link as metrics need it. `bandwidth` in bytes/s, infinite if it is not shared."""

    name: str
    bandwidth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMeta:
    """What a trace cannot say in rows.

    Attributes:
        source: where it comes from.
        schedule: name of what decided the order ("" if unknown).
        num_microbatches: per iteration.
        rank_of_stage: rank that runs stage s; its length is the number of stages.
        copies, slices: as in `Shape`; of slices, `num_microbatches` counts these.
        devices: name of the device under each rank, length = ranks.
        hosts: name of the host of each rank's device, length = ranks.
        links: the links that messages cross.
        routes: (source rank, target rank) to indices into `links`.
    """

    source: Literal["simulated", "measured"]
    schedule: str = ""
    num_microbatches: int
    rank_of_stage: tuple[int, ...]
    devices: tuple[str, ...]
    hosts: tuple[str, ...]
    links: tuple[LinkMeta, ...] = ()
    routes: Mapping[tuple[int, int], tuple[int, ...]]
    copies: int = 1
    slices: int = 1

    @property
    def shape(self) -> Shape:
        """What was arranged."""
        return Shape(
            num_microbatches=self.num_microbatches,
            rank_of_stage=self.rank_of_stage,
            copies=self.copies,
            slices=self.slices,
        )

    @property
    def num_ranks(self) -> int:
        return len(self.devices)

    @property
    def num_stages(self) -> int:
        return len(self.rank_of_stage)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Columns of equal length (see COLUMNS), sorted by start, end, rank; plus `meta`. Arrays are read-only."""

    iteration: NDArray[np.int32]
    rank: NDArray[np.int32]
    stream: NDArray[np.int8]
    stage: NDArray[np.int32]
    op: NDArray[np.int8]
    microbatch: NDArray[np.int32]
    peer: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    bytes: NDArray[np.int64]
    meta: TraceMeta

    def __post_init__(self) -> None:
        size = len(self.start_ns)
        for name, dtype in COLUMNS.items():
            column = getattr(self, name)
            assert column.dtype == dtype, f"column {name} is {column.dtype}, expected {np.dtype(dtype)}"
            assert column.shape == (size,), f"column {name} has shape {column.shape}, expected ({size},)"
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.start_ns)

    def __repr__(self) -> str:
        meta = self.meta
        return f"Trace({meta.source}, {meta.schedule or 'no schedule'}, {meta.num_ranks} ranks, {len(self)} rows)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in COLUMNS)
        return same and self.meta == other.meta

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any], meta: TraceMeta) -> "Trace":
        """Build from anything array-like per column, sorting rows by (start, end, rank, stream)."""
        arrays: dict[str, NDArray[Any]] = {
            name: np.asarray(columns[name], dtype=dtype) for name, dtype in COLUMNS.items()
        }
        order = np.lexsort((arrays["stream"], arrays["rank"], arrays["end_ns"], arrays["start_ns"]))
        return cls(**{name: array[order] for name, array in arrays.items()}, meta=meta)

    def where(self, mask: NDArray[np.bool_]) -> "Trace":
        """The rows for which `mask` (shape (rows,)) is true."""
        if mask.all():  # columns are read-only, so that traces can share them
            return self
        return Trace(**{name: getattr(self, name)[mask] for name in COLUMNS}, meta=self.meta)

    def of(self, stream: Stream) -> "Trace":
        """The rows of one stream."""
        return self.where(self.stream == stream)

    @property
    def duration_ns(self) -> NDArray[np.int64]:
        return self.end_ns - self.start_ns

    @property
    def num_iterations(self) -> int:
        return len(distinct(self.iteration))

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the ten columns, streams and ops by name. Raises UsageError without pandas."""
        return table_library("pandas").DataFrame(self._named())

    def to_arrow(self) -> Any:
        """An Arrow table of the ten columns, streams and ops by name. Raises UsageError without pyarrow."""
        return table_library("pyarrow").table(self._named())

    def _named(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in COLUMNS}
        for name, words in (("stream", Stream), ("op", Op)):
            columns[name] = np.array([each.name for each in words])[columns[name]]
        return columns

    @property
    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(getattr(self, field.name).nbytes for field in fields(self) if field.name in COLUMNS)


def longest_ns(num_ranks: int) -> int:
    """How long a trace may last: metrics count the ranks' times one after the other, in 64 bits."""
    return 2**62 // (num_ranks + 1)


def check_columns(columns: Mapping[str, NDArray[np.integer]], meta: TraceMeta) -> None:
    """Raise ValueError saying the column and what is expected, if a row cannot be in a trace with this metadata."""
    bounds = {
        "rank": (0, meta.num_ranks),
        "peer": (-1, meta.num_ranks),
        "stage": (-1, meta.num_stages),
        "microbatch": (-1, meta.num_microbatches),
    }
    for name, (low, high) in bounds.items():
        if np.any((columns[name] < low) | (columns[name] >= high)):
            raise ValueError(f"{name}: expected {low} to {high - 1}, as the metadata has it")
    for name, low in {"iteration": 0, "start_ns": 0, "bytes": 0}.items():
        if np.any(columns[name] < low) or np.any(columns[name] > np.iinfo(COLUMNS[name]).max):
            raise ValueError(f"{name}: expected a number from {low} on that fits {np.dtype(COLUMNS[name])}")
    if np.any(columns["end_ns"] > longest_ns(meta.num_ranks)):
        raise ValueError(
            f"end_ns: expected at most {longest_ns(meta.num_ranks)}, for {meta.num_ranks} ranks to fit 64 bits"
        )
    if np.any(columns["end_ns"] < columns["start_ns"]):
        raise ValueError("end_ns: expected at least start_ns")
    staged = (columns["op"] <= Op.W) & (columns["stream"] <= Stream.MESSAGE)
    if np.any(staged & ((columns["stage"] < 0) | (columns["microbatch"] < 0))):
        raise ValueError("stage and microbatch: expected from 0 on for F, B, I and W")
    if np.any(~np.isin(columns["op"], list(Op)) | ~np.isin(columns["stream"], list(Stream))):
        raise ValueError("op and stream: expected numbers of hops.program.action.Op and hops.trace.Stream")
