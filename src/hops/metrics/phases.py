"""What an iteration consists of: phases that follow each other and fill its time."""

from dataclasses import dataclass

import numpy as np

from hops.actions import Op
from hops.metrics.intervals import Intervals, Ints
from hops.metrics.run import Run
from hops.metrics.spans import first_starts_and_last_ends_ns
from hops.trace import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Nanoseconds over all iterations that count; they sum to the `iteration` windows.

    Attributes:
        warm_up: from the first action until every rank has started its first one.
        steady: from then until a rank has ended its last action.
        cool_down: from then to the end of the last action of all.
        reductions: after the pipeline, with a reduction on any rank.
        optimizer: after the pipeline, with no reduction and an optimizer step on any rank.
        host: after the pipeline, with neither and the host at work.
        other: the rest.
    """

    warm_up: int
    steady: int
    cool_down: int
    reductions: int
    optimizer: int
    host: int
    other: int


def phases(run: Run) -> Phases:
    """Cut every iteration into its phases."""
    first, last = first_starts_and_last_ends_ns(run)
    pipeline_end = np.minimum(run.pipeline_end_ns, run.end_ns)
    filled = np.minimum(first.max(axis=1), pipeline_end)
    drains = np.clip(last.min(axis=1), filled, pipeline_end)
    stream, op = run.trace.stream, run.trace.op
    after = _line(run, pipeline_end, run.end_ns)
    parts = [0]
    mask = np.zeros(len(stream), dtype=bool)
    for more in (stream == Stream.COLLECTIVE, (stream == Stream.COMPUTE) & (op == Op.OPTIMIZER), stream == Stream.HOST):
        mask |= more
        parts.append(int(after.overlap(_line(run, run.trace.start_ns[mask], run.trace.end_ns[mask]))[0]))
    reductions, optimizer, host = np.diff(parts).tolist()
    return Phases(
        warm_up=int((filled - run.start_ns).sum()),
        steady=int((drains - filled).sum()),
        cool_down=int((pipeline_end - drains).sum()),
        reductions=reductions,
        optimizer=optimizer,
        host=host,
        other=int(after.length()[0]) - parts[-1],
    )


def _line(run: Run, start: Ints, end: Ints) -> Intervals:
    """Intervals on one lane for all ranks."""
    return Intervals.union(np.zeros(len(start), dtype=np.int64), start, end, lanes=1, span=run.span)
