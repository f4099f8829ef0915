"""The bubble: what part of ranks x window is idle, and why."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hops.metrics.intervals import Intervals, Ints
from hops.metrics.run import Run, is_action
from hops.metrics.waits import waits


class Cause(StrEnum):
    """Why a rank idles. Each idle nanosecond has one cause; the first that applies.

    STEP: outside the pipeline window: reductions, waiting for other ranks' optimizer, the host.
    FAULT: the rank at the end of its wait is hit by a fault (see waits).
    MESSAGES: a message is under way at the end of its wait (see waits).
    IMBALANCE: of what is left, as much as the busiest rank of the iteration computes longer than this one.
    WARM_UP_COOL_DOWN: the rest: filling and draining the pipeline, which remains when all ranks have equal work.
    """

    WARM_UP_COOL_DOWN = "warm_up_cool_down"
    IMBALANCE = "imbalance"
    MESSAGES = "messages"
    FAULT = "fault"
    STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Idle:
    """Busy and idle nanoseconds of every rank in one window, summed over iterations. Busy + causes = window.

    Attributes:
        window_ns: length of the window.
        busy_ns: shape (ranks,).
        by_cause: nanoseconds by cause, each of shape (ranks,).
    """

    window_ns: int
    busy_ns: Ints
    by_cause: dict[Cause, Ints]

    @property
    def rank_time_ns(self) -> int:
        """Ranks x window."""
        return self.window_ns * len(self.busy_ns)

    def fraction(self) -> float:
        """Bubble fraction: 1 - busy / (ranks x window)."""
        return 1.0 - float(self.busy_ns.sum()) / self.rank_time_ns

    def fraction_of(self, cause: Cause) -> float:
        """Part of ranks x window that idles for this cause."""
        return float(self.by_cause[cause].sum()) / self.rank_time_ns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bubbles:
    """Idle time in both windows."""

    pipeline: Idle
    iteration: Idle


def bubbles(run: Run) -> Bubbles:
    """Busy and idle time by cause, of the windows `pipeline` (actions only) and `iteration` (optimizer step too)."""
    found = waits(run)
    rows = run.compute_rows()
    action = is_action(run.trace)[rows.row]
    busy = run.per_iteration_and_rank(rows.row[action], rows.busy[action])
    window = (run.pipeline_end_ns - run.pipeline_start_ns)[:, None]
    other = window - busy - found.messages - found.faults
    imbalance = np.minimum(busy.max(axis=1, keepdims=True) - busy, other).sum(axis=0)
    messages, faults = found.messages.sum(axis=0), found.faults.sum(axis=0)
    pipeline = Idle(
        window_ns=run.pipeline_ns,
        busy_ns=busy.sum(axis=0),
        by_cause=_causes(other.sum(axis=0), imbalance, messages, faults, step=np.zeros_like(messages)),
    )

    compute = run.compute()
    whole = run.on_every_rank(run.start_ns, run.end_ns)
    inner = run.on_every_rank(run.pipeline_start_ns, run.pipeline_end_ns)
    idle, idle_inside = _idle(whole, compute), _idle(inner, compute)
    iteration = Idle(
        window_ns=run.window_ns,
        busy_ns=whole.overlap(compute),
        by_cause=_causes(idle_inside - messages - faults, imbalance, messages, faults, step=idle - idle_inside),
    )
    return Bubbles(pipeline=pipeline, iteration=iteration)


def _idle(window: Intervals, compute: Intervals) -> Ints:
    return window.length() - window.overlap(compute)


def _causes(other: Ints, imbalance: Ints, messages: Ints, faults: Ints, *, step: Ints) -> dict[Cause, Ints]:
    """Split what neither messages nor faults explain into imbalance and the rest."""
    imbalance = np.minimum(imbalance, other)
    return {
        Cause.WARM_UP_COOL_DOWN: other - imbalance,
        Cause.IMBALANCE: imbalance,
        Cause.MESSAGES: messages,
        Cause.FAULT: faults,
        Cause.STEP: step,
    }
