"""An iteration cut in four, one part after the other: pipeline, reduce, optimizer, host.

Each part begins where the one before ends, so none is negative where ranks go on alone: a step that begins while other
ranks still compute counts from the pipeline's end on, and what reaches into the next iteration belongs there.
"""

from typing import NamedTuple

import numpy as np

from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations
from hops.program.action import Op
from hops.trace.trace import Stream


class Parts(NamedTuple):
    """Nanoseconds of each iteration, shape (iterations,); they sum to its time.

    Attributes:
        pipeline: from the first action to the end of the last one.
        reduce: from there to the first optimizer step. Reductions, and waiting for each other.
        optimizer: from there to the end of the last optimizer step.
        host: from there to the next iteration.
    """

    pipeline: Ints
    reduce: Ints
    optimizer: Ints
    host: Ints


def parts_ns(run: Iterations) -> Parts | None:
    """The parts of every iteration; None where one has no optimizer step, which tells them apart."""
    trace = run.trace
    step = (trace.stream == Stream.COMPUTE) & (trace.op == Op.OPTIMIZER)
    index = run.index[step]
    if len(np.unique(index)) < run.num_iterations:
        return None
    first = np.full(run.num_iterations, np.iinfo(np.int64).max)
    last = np.zeros(run.num_iterations, dtype=np.int64)
    np.minimum.at(first, index, trace.start_ns[step])
    np.maximum.at(last, index, trace.end_ns[step])
    computed = computed_ns(run)
    first = np.clip(first, computed, run.end_ns)
    last = np.clip(last, first, run.end_ns)
    return Parts(computed - run.start_ns, first - computed, last - first, run.end_ns - last)


def computed_ns(run: Iterations) -> Ints:
    """When each iteration's pipeline has ended, or the next iteration has begun; shape (iterations,)."""
    return np.minimum(run.pipeline_end_ns, run.end_ns)
