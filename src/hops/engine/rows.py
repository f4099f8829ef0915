"""What the rows of a run's trace are: recorded by the reference one by one, with the metadata of both engines."""

from array import array

import numpy as np

from hops.engine.settings import RunSettings
from hops.hardware.network import CrossedLinks, Network
from hops.program.shape import Shape
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace, TraceMeta

NONE = -1


class Recorder:
    """Collects rows; a row costs 80 bytes until the trace is made."""

    __slots__ = ("_add", "_numbers")

    def __init__(self) -> None:
        self._numbers = array("q")
        self._add = self._numbers.extend

    def work(
        self, stream: int, iteration: int, rank: int, stage: int, op: int, microbatch: int, start_ns: int, end_ns: int
    ) -> None:
        """What a rank spent time on (by position, for speed); stage and microbatch are NONE for what is no action."""
        self._add((iteration, rank, stream, stage, op, microbatch, NONE, start_ns, end_ns, 0))

    def message(
        self, stream: int, iteration: int, pair: tuple[int, int], stage: int, op: int, microbatch: int, start_ns: int,
        end_ns: int, size: int,
    ) -> None:  # fmt: skip
        """A message from rank to rank; or an action in a pair, which bears its own rank as peer."""
        rank, peer = pair
        self._add((iteration, rank, stream, stage, op, microbatch, peer, start_ns, end_ns, size))

    def trace(self, meta: TraceMeta) -> Trace:
        """The trace, sorted as traces are; what ties stands in the order in which it was recorded."""
        numbers = np.frombuffer(self._numbers, dtype=np.int64) if self._numbers else np.empty(0, dtype=np.int64)
        columns = dict(zip(COLUMNS, numbers.reshape(-1, len(COLUMNS)).T, strict=True))
        lost_message = (columns["stream"] == Stream.LOST) & (columns["peer"] != NONE)  # they come after lost work
        order = np.lexsort((columns["stream"] + lost_message, columns["rank"], columns["end_ns"], columns["start_ns"]))
        return Trace(**{name: columns[name][order].astype(kind) for name, kind in COLUMNS.items()}, meta=meta)


def trace_meta(shape: Shape, network: Network, settings: RunSettings) -> TraceMeta:
    """The meta of a run's trace."""
    ranks = range(shape.num_ranks)
    return TraceMeta(
        source="simulated",
        schedule=settings.schedule,
        num_microbatches=shape.num_microbatches,
        rank_of_stage=shape.rank_of_stage,
        copies=shape.copies,
        slices=shape.slices,
        devices=settings.devices or tuple(f"rank{rank}" for rank in ranks),
        hosts=settings.hosts or tuple(f"host{rank}" for rank in ranks),
        links=tuple(LinkMeta(name=link.name, bandwidth=link.bandwidth) for link in network.links),
        routes=CrossedLinks(network, shape.num_ranks),
    )
