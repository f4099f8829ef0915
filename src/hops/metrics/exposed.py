"""Exposed communication: communication and synchronisation that keep ranks from computing."""

from dataclasses import dataclass

import numpy as np

from hops.metrics.bubble import Bubbles, Cause
from hops.metrics.intervals import Ints
from hops.metrics.run import Run
from hops.trace import Stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exposed:
    """Nanoseconds over all iterations that count, shape (ranks,).

    Attributes:
        messages: idle with a message under way at the end of the wait (see waits).
        reductions: in a reduction and not computing.
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
    compute = run.compute()
    reductions = run.lanes(stream == Stream.COLLECTIVE)
    at_work = run.lanes(np.isin(stream, (Stream.COMPUTE, Stream.COLLECTIVE, Stream.HOST)))
    whole = run.on_every_rank(run.start_ns, run.end_ns)
    inner = run.on_every_rank(run.pipeline_start_ns, run.pipeline_end_ns)
    idle, idle_inside = (window.length() - window.overlap(at_work) for window in (whole, inner))
    return Exposed(
        messages=found.pipeline.by_cause[Cause.MESSAGES],
        reductions=reductions.length() - reductions.overlap(compute),
        synchronization=idle - idle_inside,
    )
