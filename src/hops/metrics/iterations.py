"""The iterations of a trace that count, and their two windows.

An iteration lasts from its first action to the first action of the next one. The last one has no next one: it lasts to
the end of its last row, unless the trace shows that this is not where iterations end (see `_end_unknown`). Such a one
is left out of every metric.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hops.arrays import distinct
from hops.errors import UsageError
from hops.metrics.intervals import Intervals, Ints
from hops.metrics.summary import RunFacts
from hops.program.action import Op
from hops.trace.trace import Stream, Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComputeRows:
    """Rows of the compute stream, sorted by rank and start; times are shifted by rank (see Intervals).

    Attributes:
        row: index into the trace; rank: its rank.
        before: latest end of what the rank did before (its lane's zero for the first).
        start, end: of the row.
    """

    row: Ints
    rank: Ints
    before: Ints
    start: Ints
    end: Ints

    @property
    def busy(self) -> Ints:
        """Nanoseconds of the row; rows that overlap on one rank (clocks of measured runs) count once."""
        return np.maximum(self.end - np.maximum(self.start, self.before), 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Iterations:
    """A trace without its warm-up iterations, and when each of the others ran. All metrics are functions of it.

    Attributes:
        trace: rows of the iterations that count, without faults and what they threw away.
        facts: what the trace does not say.
        iterations: their numbers, rising, shape (iterations,).
        cut: numbers of those left out because the trace does not show when they ended.
        followed: which of them the next one follows, so that they end where it starts, shape (iterations,).
        index: position in `iterations` of every row, shape (rows,).
        start_ns, end_ns: window `iteration`: from the first action to the first action of the next one; for the last
            one (and before a number that is missing), to the end of its last row.
        pipeline_start_ns, pipeline_end_ns: window `pipeline`: from the first action to the end of the last one.
        faults: when each rank is hit by a fault of its device, or does what will be lost.
        message_faults: the same, and when a link that its messages cross is hit, or a message to or from it is lost.
        span: more than any time in the trace (see Intervals).
    """

    trace: Trace
    facts: RunFacts
    iterations: NDArray[np.int32]
    cut: tuple[int, ...]
    followed: NDArray[np.bool_]
    index: Ints
    start_ns: Ints
    end_ns: Ints
    pipeline_start_ns: Ints
    pipeline_end_ns: Ints
    faults: Intervals
    message_faults: Intervals
    span: int

    @classmethod
    def of(cls, trace: Trace, facts: RunFacts) -> "Iterations":
        """Leave out the warm-up iterations, and those of which the trace does not show when they ended.

        Raises UsageError if none is left.
        """
        run = cls.recorded(trace, facts)
        unknown = _end_unknown(run)
        return _left_out(run, unknown) if unknown.any() else run

    @classmethod
    def recorded(cls, trace: Trace, facts: RunFacts) -> "Iterations":
        """Leave out the warm-up iterations only. Raises UsageError if none is left."""
        numbers = distinct(trace.iteration[is_action(trace)])
        kept = numbers[facts.warmup_iterations :]
        if not len(kept):
            raise UsageError(
                f"no iteration left to measure: the trace has {len(numbers)} with actions and warm-up takes "
                f"{facts.warmup_iterations}; run more iterations or lower simulation.warmup_iterations"
            )
        span = int(trace.end_ns.max()) + 1
        disturbed = (trace.stream == Stream.FAULT) | (trace.stream == Stream.LOST)
        faults, message_faults = _faults(trace.where(disturbed), span)
        index = np.searchsorted(kept, trace.iteration).clip(max=len(kept) - 1)
        counts = (kept[index] == trace.iteration) & ~disturbed
        trace, index = trace.where(counts), index[counts]
        action = is_action(trace)
        start = _extreme(np.minimum, index[action], trace.start_ns[action], len(kept))
        last_row = _extreme(np.maximum, index, trace.end_ns, len(kept))
        follows = np.append(np.diff(kept) == 1, False)
        return cls(
            trace=trace,
            facts=facts,
            iterations=kept,
            cut=(),
            followed=follows,
            index=index,
            start_ns=start,
            end_ns=np.where(follows, np.append(start[1:], 0), last_row),
            pipeline_start_ns=start,
            pipeline_end_ns=_extreme(np.maximum, index[action], trace.end_ns[action], len(kept)),
            faults=faults,
            message_faults=message_faults,
            span=span,
        )

    @property
    def num_iterations(self) -> int:
        return len(self.iterations)

    @property
    def num_ranks(self) -> int:
        return self.trace.meta.num_ranks

    @property
    def window_ns(self) -> int:
        """Sum of the `iteration` windows."""
        return int((self.end_ns - self.start_ns).sum())

    @property
    def pipeline_ns(self) -> int:
        """Sum of the `pipeline` windows."""
        return int((self.pipeline_end_ns - self.pipeline_start_ns).sum())

    def lanes(self, mask: NDArray[np.bool_]) -> Intervals:
        """When the rows of `mask` (shape (rows,)) cover each rank."""
        rows = self.trace
        return Intervals.union(
            rows.rank[mask], rows.start_ns[mask], rows.end_ns[mask], lanes=self.num_ranks, span=self.span
        )

    def compute(self) -> Intervals:
        """When each rank computes: F, B, I, W and the optimizer step."""
        return self.lanes(self.trace.stream == Stream.COMPUTE)

    def compute_rows(self) -> "ComputeRows":
        """The compute rows, rank by rank, with how far each rank had got before."""
        row = np.flatnonzero(self.trace.stream == Stream.COMPUTE)
        row = row[np.argsort(self.trace.rank[row], kind="stable")]
        rank = self.trace.rank[row].astype(np.int64)
        end = self.trace.end_ns[row] + rank * self.span
        before = np.maximum(np.append(0, np.maximum.accumulate(end)[:-1]), rank * self.span)
        return ComputeRows(
            row=row, rank=rank, before=before, start=self.trace.start_ns[row] + rank * self.span, end=end
        )

    def iteration_windows(self) -> Intervals:
        """The windows `iteration`, on every rank."""
        return self.on_every_rank(self.start_ns, self.end_ns)

    def pipeline_windows(self) -> Intervals:
        """What of the windows `pipeline` lies in those of iterations, on every rank; once where they overlap."""
        return self.on_every_rank(self.pipeline_start_ns, np.minimum(self.pipeline_end_ns, self.end_ns))

    def on_every_rank(self, start: Ints, end: Ints) -> Intervals:
        """The same intervals on every rank."""
        rank = np.repeat(np.arange(self.num_ranks), len(start))
        return Intervals.union(
            rank,
            np.tile(start, self.num_ranks),
            np.tile(end, self.num_ranks),
            lanes=self.num_ranks,
            span=self.span,
        )

    def per_iteration_and_rank(self, rows: NDArray[np.integer], values: Ints) -> Ints:
        """Sum of the values of some rows, by iteration and rank: shape (iterations, ranks)."""
        sums = np.zeros((self.num_iterations, self.num_ranks), dtype=np.int64)
        np.add.at(sums, (self.index[rows], self.trace.rank[rows]), values)
        return sums


def _faults(rows: Trace, span: int) -> tuple[Intervals, Intervals]:
    """When faults hit each rank itself, and when they hit it or its messages. A row with a peer is of a message."""
    own, sent = rows.where(rows.peer < 0), rows.where(rows.peer >= 0)
    alone = (own.rank, own.start_ns, own.end_ns)
    all_of = (
        np.concatenate([first, of_sender, of_receiver])
        for first, of_sender, of_receiver in zip(
            alone, (sent.rank, sent.start_ns, sent.end_ns), (sent.peer, sent.start_ns, sent.end_ns), strict=True
        )
    )
    lanes = rows.meta.num_ranks
    return Intervals.union(*alone, lanes=lanes, span=span), Intervals.union(*all_of, lanes=lanes, span=span)


def _end_unknown(run: Iterations) -> NDArray[np.bool_]:
    """Which iterations end at nobody knows what time; shape (iterations,).

    The end of an iteration that no other follows is that of its last row, unless the others show that this is another
    time: where rows of an iteration end after the next one has started, ranks go on alone, and its own last row is
    too late; where a measured trace has nothing but actions, what follows them was not recorded, and it is too early.
    With no iteration followed by another there is nothing better.
    """
    last_row = _extreme(np.maximum, run.index, run.trace.end_ns, run.num_iterations)
    beyond = (last_row - run.end_ns)[run.followed]
    actions_only = run.trace.meta.source == "measured" and bool(is_action(run.trace).all())
    misleads = bool(np.any(beyond > 0)) or (actions_only and bool(np.any(beyond < 0)))
    return ~run.followed & misleads


def _left_out(run: Iterations, unknown: NDArray[np.bool_]) -> Iterations:
    """The run without some of its iterations; `unknown` has shape (iterations,)."""
    rows = ~unknown[run.index]
    return replace(
        run,
        trace=run.trace.where(rows),
        iterations=run.iterations[~unknown],
        cut=tuple(run.iterations[unknown].tolist()),
        followed=run.followed[~unknown],
        index=(np.cumsum(~unknown) - 1)[run.index[rows]],
        start_ns=run.start_ns[~unknown],
        end_ns=run.end_ns[~unknown],
        pipeline_start_ns=run.pipeline_start_ns[~unknown],
        pipeline_end_ns=run.pipeline_end_ns[~unknown],
    )


def is_action(trace: Trace) -> NDArray[np.bool_]:
    """Which rows are F, B, I or W on a rank's compute stream."""
    action: NDArray[np.bool_] = (trace.stream == Stream.COMPUTE) & (trace.op <= Op.W)
    return action


def _extreme(take: np.ufunc, group: Ints, values: Ints, groups: int) -> Ints:
    """Least or greatest value per group; every group has one."""
    limits = np.iinfo(np.int64)
    result = np.full(groups, limits.max if take is np.minimum else limits.min, dtype=np.int64)
    take.at(result, group, values)
    return result


def first_starts_and_last_ends_ns(run: Iterations) -> tuple[Ints, Ints]:
    """First start and last end of actions, shape (iterations, ranks); both are the window's start on an idle rank."""
    rows = np.flatnonzero(is_action(run.trace))
    cells = (run.index[rows], run.trace.rank[rows])
    first = np.full((run.num_iterations, run.num_ranks), np.iinfo(np.int64).max)
    last = np.repeat(run.pipeline_start_ns[:, None], run.num_ranks, axis=1)
    np.minimum.at(first, cells, run.trace.start_ns[rows])
    np.maximum.at(last, cells, run.trace.end_ns[rows])
    return np.minimum(first, last), last


def stage_spans_ns(run: Iterations) -> Ints:
    """Stage span of every rank and iteration, shape (iterations, ranks); 0 on a rank without actions."""
    first, last = first_starts_and_last_ends_ns(run)
    return last - first
