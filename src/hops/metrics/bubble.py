"""The bubble: what part of ranks x window is idle, and why.

Inside the pipeline window every wait is followed to its end (see waits). Outside it, a rank waits for reductions, for
other ranks' optimizer steps, for the host, or for what a fault hits.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from hops.metrics.intervals import Intervals, Ints
from hops.metrics.iterations import Iterations, is_action
from hops.metrics.waits import waits
from hops.trace.trace import Stream


class BubbleCause(StrEnum):
    """Why a rank idles. Each idle nanosecond has one cause; the first that applies.

    STEP: outside the pipeline window: reductions, waiting for other ranks' optimizer, the host.
    FAULT: the rank at the end of its wait is hit by a fault (see waits); outside the pipeline window: it is hit with
        something left to do, or has nothing under way while another is.
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
    by_cause: dict[BubbleCause, Ints]

    @property
    def rank_time_ns(self) -> int:
        """Ranks x window."""
        return self.window_ns * len(self.busy_ns)

    def fraction(self) -> float:
        """Bubble fraction of the window."""
        return bubble_fraction(self.busy_ns, self.window_ns)

    def fraction_of(self, cause: BubbleCause) -> float:
        """Part of ranks x window that idles for this cause."""
        return float(self.by_cause[cause].sum()) / self.rank_time_ns


def bubble_fraction(busy_ns: Ints, window_ns: int) -> float:
    """1 - busy / (ranks x window); `busy_ns` has shape (ranks,)."""
    return 1.0 - float(busy_ns.sum()) / (window_ns * len(busy_ns))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bubbles:
    """Idle time in both windows."""

    pipeline: Idle
    iteration: Idle


def bubbles(run: Iterations) -> Bubbles:
    """Busy and idle time by cause, of the windows `pipeline` (actions only) and `iteration` (optimizer step too)."""
    found = waits(run)
    busy = _busy_in_pipelines(run)
    window = (run.pipeline_end_ns - run.pipeline_start_ns)[:, None]
    other = window - busy - found.messages - found.faults
    imbalance = np.minimum(busy.max(axis=1, keepdims=True) - busy, other).sum(axis=0)
    messages, faults = found.messages.sum(axis=0), found.faults.sum(axis=0)
    pipeline = Idle(
        window_ns=run.pipeline_ns,
        busy_ns=busy.sum(axis=0),
        by_cause=_causes(other.sum(axis=0), imbalance, messages, faults, step=np.zeros_like(messages)),
    )

    if np.any(run.pipeline_end_ns > run.end_ns):
        found = waits(run, once=True)
        messages, faults = found.messages.sum(axis=0), found.faults.sum(axis=0)
    compute, whole, inner = run.compute(), run.iteration_windows(), run.pipeline_windows()
    after = idle_after(whole, inner, compute)
    inside = inner.length() - inner.overlap(compute)
    late = faults_after(run, after).length()
    iteration = Idle(
        window_ns=run.window_ns,
        busy_ns=_busy_in_iterations(whole, compute),
        by_cause=_causes(inside - messages - faults, imbalance, messages, faults + late, step=after.length() - late),
    )
    return Bubbles(pipeline=pipeline, iteration=iteration)


def pipeline_fraction(run: Iterations) -> float:
    """The bubble fraction of the window `pipeline`, without causes: `bubbles(run).pipeline.fraction()`."""
    return bubble_fraction(_busy_in_pipelines(run).sum(axis=0), run.pipeline_ns)


def iteration_fraction(run: Iterations) -> float:
    """The bubble fraction of the window `iteration`, without causes: `bubbles(run).iteration.fraction()`."""
    return bubble_fraction(_busy_in_iterations(run.iteration_windows(), run.compute()), run.window_ns)


def _busy_in_pipelines(run: Iterations) -> Ints:
    """Nanoseconds of actions, by iteration and rank: shape (iterations, ranks)."""
    rows = run.compute_rows()
    action = is_action(run.trace)[rows.row]
    return run.per_iteration_and_rank(rows.row[action], rows.busy[action])


def _busy_in_iterations(whole: Intervals, compute: Intervals) -> Ints:
    """Nanoseconds of actions and optimizer steps in all windows, shape (ranks,)."""
    return whole.overlap(compute)


def idle_after(whole: Intervals, inner: Intervals, compute: Intervals) -> Intervals:
    """When ranks idle in an iteration, but in no pipeline window."""
    return whole.among(lambda whole, inner, busy: whole & ~inner & ~busy, inner, compute)


def faults_after(run: Iterations, idle: Intervals) -> Intervals:
    """What of the time after the pipelines, in which ranks are `idle`, is a fault's.

    A rank that has something left to do in the iteration and is hit delays itself, and all that have nothing under
    way: they wait for it.
    """
    if not len(run.message_faults.start):
        return replace(idle, start=idle.start[:0], end=idle.end[:0])
    ends = np.zeros((run.num_iterations, run.num_ranks), dtype=np.int64)
    np.maximum.at(ends, (run.index, run.trace.rank), run.trace.end_ns)
    rank = np.tile(np.arange(run.num_ranks), run.num_iterations)
    begins = np.repeat(run.start_ns, run.num_ranks)
    unfinished = Intervals.union(rank, begins, ends.ravel(), lanes=run.num_ranks, span=run.span)
    hit = run.message_faults.among(np.logical_and, unfinished)
    shift = hit.start // run.span * run.span
    anywhere = run.on_every_rank(hit.start - shift, hit.end - shift)
    under_way = run.lanes(np.isin(run.trace.stream, (Stream.COLLECTIVE, Stream.HOST)))
    return idle.among(lambda idle, hit, other, busy: idle & (hit | (other & ~busy)), hit, anywhere, under_way)


def _causes(other: Ints, imbalance: Ints, messages: Ints, faults: Ints, *, step: Ints) -> dict[BubbleCause, Ints]:
    """Split what neither messages nor faults explain into imbalance and the rest."""
    imbalance = np.minimum(imbalance, other)
    return {
        BubbleCause.WARM_UP_COOL_DOWN: other - imbalance,
        BubbleCause.IMBALANCE: imbalance,
        BubbleCause.MESSAGES: messages,
        BubbleCause.FAULT: faults,
        BubbleCause.STEP: step,
    }
