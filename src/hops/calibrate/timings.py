"""The intervals of a plain 1F1B trace as arrays by iteration, rank and microbatch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.errors import UsageError
from hops.metrics.run import is_action
from hops.trace import Stream, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timings:
    """Seconds since the start of the trace.

    Attributes:
        forward, backward: shape (iterations, ranks, microbatches, 2): start and end.
        optimizer: shape (iterations, ranks, 2).
    """

    forward: Floats
    backward: Floats
    optimizer: Floats

    @property
    def num_microbatches(self) -> int:
        return int(self.forward.shape[2])

    def op(self, op: Op) -> Floats:
        """Those of F or B."""
        return self.forward if op is Op.F else self.backward

    @classmethod
    def of_rows(cls, trace: Trace) -> "Timings":
        """All iterations of a trace in which every rank runs one stage, F and B of every microbatch, and a step."""
        numbers = np.unique(trace.iteration)
        shape = (len(numbers), trace.meta.num_ranks, trace.meta.num_microbatches, 2)
        times = np.stack([trace.start_ns, trace.end_ns], axis=1) * 1e-9
        place = np.searchsorted(numbers, trace.iteration)
        filled = []
        for op in (Op.F, Op.B):
            rows = is_action(trace) & (trace.op == op)
            array = np.full(shape, np.nan)
            array[place[rows], trace.rank[rows], trace.microbatch[rows]] = times[rows]
            filled.append(array)
        step = np.full((shape[0], shape[1], 2), np.nan)
        rows = (trace.stream == Stream.COMPUTE) & (trace.op == Op.OPTIMIZER)
        step[place[rows], trace.rank[rows]] = times[rows]
        return cls(forward=filled[0], backward=filled[1], optimizer=step)

    @classmethod
    def of(cls, trace: Trace, *, name: str, warmup: int = 0) -> "Timings":
        """All iterations but the first `warmup`. Raises UsageError for a trace that is no 1F1B with optimizer steps."""
        kept = np.unique(trace.iteration)[warmup:]
        found = cls.of_rows(trace.where(np.isin(trace.iteration, kept)))
        for what, array in (("F", found.forward), ("B", found.backward), ("optimizer step", found.optimizer)):
            if not len(kept) or np.isnan(array).any():
                raise UsageError(
                    f"{name}: an iteration lacks a {what}, expected F, B and one optimizer step of every microbatch "
                    "and rank; leave the run out"
                )
        return found
