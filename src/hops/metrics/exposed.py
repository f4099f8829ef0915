"""Exposed communication: communication and synchronisation that keep ranks from computing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.metrics.bubble import Bubbles, Cause
from hops.metrics.intervals import Ints
from hops.metrics.run import Run
from hops.trace import Stream


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


def exposed(run: Run, found: Bubbles) -> Exposed:
    """What each rank loses to communication. `found` are the bubbles of the same run."""
    stream = run.trace.stream
    computing = _idle_after_pipeline(run, stream == Stream.COMPUTE)
    reducing = _idle_after_pipeline(run, np.isin(stream, (Stream.COMPUTE, Stream.COLLECTIVE)))
    hosting = _idle_after_pipeline(run, np.isin(stream, (Stream.COMPUTE, Stream.COLLECTIVE, Stream.HOST)))
    return Exposed(
        messages=found.pipeline.by_cause[Cause.MESSAGES],
        reductions=computing - reducing,
        synchronization=hosting,
    )


def _idle_after_pipeline(run: Run, at_work: NDArray[np.bool_]) -> Ints:
    """Nanoseconds of each rank outside the pipeline windows and outside the rows of `at_work`, shape (ranks,)."""
    work = run.lanes(at_work)
    whole = run.on_every_rank(run.start_ns, run.end_ns)
    inner = run.on_every_rank(run.pipeline_start_ns, run.pipeline_end_ns)
    idle, idle_inside = (window.length() - window.overlap(work) for window in (whole, inner))
    return idle - idle_inside
