"""Exposed communication: communication and synchronisation that keep ranks from computing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.metrics.bubble import BubbleCause, Bubbles
from hops.metrics.intervals import Intervals, Ints
from hops.metrics.iterations import Iterations, first_starts_and_last_ends_ns
from hops.program.action import Op
from hops.trace.trace import Stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposed:
    """Nanoseconds over all iterations that count, shape (ranks,).

    Attributes:
        messages: idle with a message under way at the end of the wait (see waits).
        reductions: in the rank's own reduction after the pipeline. One that runs while the pipeline drains delays
            nobody.
        synchronization: idle after the pipeline while neither the rank's own reduction nor its host works: waiting for
            other ranks before the optimizer step or before the next iteration.
    """

    messages: Ints
    reductions: Ints
    synchronization: Ints

    @property
    def total(self) -> Ints:
        return self.messages + self.reductions + self.synchronization


def exposed(run: Iterations, found: Bubbles) -> Exposed:
    """What each rank loses to communication. `found` are the bubbles of the same run."""
    stream = run.trace.stream
    compute = stream == Stream.COMPUTE
    reduce = compute | (stream == Stream.COLLECTIVE)
    computing, reducing, hosting = _idle_after_pipeline(run, compute, reduce, reduce | (stream == Stream.HOST))
    return Exposed(
        messages=found.pipeline.by_cause[BubbleCause.MESSAGES],
        reductions=computing - reducing,
        synchronization=hosting,
    )


def _idle_after_pipeline(run: Iterations, *at_work: NDArray[np.bool_]) -> list[Ints]:
    """Nanoseconds of each rank outside the pipeline windows and outside the rows of each `at_work`; shape (ranks,)."""
    whole, inside = run.iteration_windows(), run.pipeline_windows()
    after = whole.length() - inside.length()
    works = [run.lanes(mask) for mask in at_work]
    return [after - whole.overlap(work) + inside.overlap(work) for work in works]


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


def phases(run: Iterations) -> Phases:
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


def _line(run: Iterations, start: Ints, end: Ints) -> Intervals:
    """Intervals on one lane for all ranks."""
    return Intervals.union(np.zeros(len(start), dtype=np.int64), start, end, lanes=1, span=run.span)
