"""The bubble gap by gap: when each rank idles, before which action, waiting for whom, and what share each cause has.

The sums over the gaps of a rank are its idle time by cause in the window `iteration` (see bubble). What neither
messages nor faults explain is split into imbalance and the rest rank by rank, not gap by gap: every gap of a rank has
the same share of it.
"""

from dataclasses import dataclass

import numpy as np

from hops.distributions import FloatArray
from hops.metrics.bubble import BubbleCause, bubbles, faults_after, idle_after
from hops.metrics.intervals import Intervals, Ints
from hops.metrics.iterations import Iterations
from hops.metrics.waits import FollowedGaps, followed_gaps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdleGaps:
    """All idle time of a run that counts, sorted by rank and start. Arrays have shape (gaps,).

    Attributes:
        rank, start_ns, end_ns: the gap.
        row: row of the run's trace that ends it, if it is an action that the rank waited to start; -1: none.
        source: row whose output that action takes from another rank; -1: none.
        ready_ns: when that was made; the gap's end where nothing was awaited.
        holder, held_ns: the rank that most of the gap is spent waiting for while it computes (-1: none), how long.
        by_cause: nanoseconds of each gap by cause; they sum to its length.
    """

    rank: Ints
    start_ns: Ints
    end_ns: Ints
    row: Ints
    source: Ints
    ready_ns: Ints
    holder: Ints
    held_ns: Ints
    by_cause: dict[BubbleCause, FloatArray]


def idle_gaps(run: Iterations) -> IdleGaps:
    """Every gap of every rank, with its causes."""
    followed = followed_gaps(run)
    compute, whole, inner = run.compute(), run.iteration_windows(), run.pipeline_windows()
    after = idle_after(whole, inner, compute)
    shift = followed.rank * run.span
    known = Intervals.union(followed.rank, followed.start_ns, followed.end_ns, lanes=run.num_ranks, span=run.span)
    rest = inner.among(lambda inner, busy, known: inner & ~busy & ~known, compute, known)
    late = faults_after(run, after).within(after.start, after.end)
    parts = (
        _Part(start=followed.start_ns + shift, end=followed.end_ns + shift, faults=followed.faults_ns, step=False),
        _Part(start=rest.start, end=rest.end, faults=np.zeros(len(rest.start), dtype=np.int64), step=False),
        _Part(start=after.start, end=after.end, faults=late, step=True),
    )
    return _gathered(run, followed, parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Gaps of one kind, times shifted by rank; `step`: outside the pipeline windows."""

    start: Ints
    end: Ints
    faults: Ints
    step: bool


def _gathered(run: Iterations, followed: FollowedGaps, parts: tuple[_Part, ...]) -> IdleGaps:
    """All parts in one, sorted."""
    start, end, faults = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end", "faults")
    )
    step = np.concatenate([np.full(len(part.start), part.step) for part in parts])
    order = np.argsort(start, kind="stable")
    rank = start // run.span
    more = len(start) - len(followed.rank)

    def padded(values: Ints, filler: int) -> Ints:
        return np.concatenate([values, np.full(more, filler, dtype=np.int64)])[order]

    messages = padded(followed.messages_ns, 0)
    start, end, faults, step, rank = start[order], end[order], faults[order], step[order], rank[order]
    other = (end - start - messages - faults).astype(np.float64)
    imbalance = _imbalance_share(run)[rank] * other * ~step
    return IdleGaps(
        rank=rank,
        start_ns=start - rank * run.span,
        end_ns=end - rank * run.span,
        row=padded(followed.row, -1),
        source=padded(followed.source, -1),
        ready_ns=np.where(padded(followed.row, -1) >= 0, padded(followed.ready_ns, 0), end - rank * run.span),
        holder=padded(followed.holder, -1),
        held_ns=padded(followed.held_ns, 0),
        by_cause={
            BubbleCause.WARM_UP_COOL_DOWN: (other - imbalance) * ~step,
            BubbleCause.IMBALANCE: imbalance,
            BubbleCause.MESSAGES: messages.astype(np.float64),
            BubbleCause.FAULT: faults.astype(np.float64),
            BubbleCause.STEP: other * step,
        },
    )


def _imbalance_share(run: Iterations) -> FloatArray:
    """Imbalance as part of what neither messages nor faults explain inside the pipeline windows, shape (ranks,)."""
    causes = bubbles(run).iteration.by_cause
    imbalance = causes[BubbleCause.IMBALANCE]
    total = imbalance + causes[BubbleCause.WARM_UP_COOL_DOWN]
    return np.asarray(imbalance / np.where(total > 0, total, 1), dtype=np.float64)
