"""For whom an idle rank waits, followed to the end: to a computing rank, a message or a fault.

Take an instant at which a rank idles before its next action of the iteration. If what that action needs from a
neighbouring stage is already made, the rank waits for a message. If not, look at the rank that has to make it: if that
one computes, the wait ends there, on a computing rank; if it idles too, ask the same of it. If the rank at the end of
this chain is hit by a fault at that instant (its device is down or slow, or what it does will be lost), or the message
there is (a link on its way is down or slow, or it will be lost), the wait is for the fault.

While its host prepares the next action, as long as that is known to take, a rank waits for nobody. An idle rank whose
next action needs nothing from elsewhere waits for its own message if its previous action sent one
(blocking sends); otherwise it waits for nobody. A rank with no action left waits for the rank that ends the pipeline.

Made means: the producing action, or the pair that it is in, has ended. So measured traces without message rows, and
rendezvous in which a message starts late, are served by the same definition.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.metrics.inputs import inputs_from_elsewhere
from hops.metrics.intervals import Ints
from hops.metrics.iterations import ComputeRows, Iterations, is_action
from hops.program.action import Op
from hops.program.wiring import neighbours
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waits:
    """Idle nanoseconds inside the pipeline window, shape (iterations, ranks).

    Attributes:
        messages: with a message under way at the end of the chain.
        faults: with a fault at the end of the chain.
    """

    messages: Ints
    faults: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Gaps:
    """Idle intervals, times shifted by rank (see Intervals): those before actions, sorted, then the rest.

    Attributes:
        start, end: of the interval.
        ready: when what the rank waits for was made.
        rank: that idles.
        producer: rank that makes what it waits for, -1: none.
        cell: iteration and rank, flat.
        row, source: rows of the trace: the action that ends the interval (-1: none does), and the one on another rank
            that makes what it takes (-1: none).
        before: how many intervals lie before actions.
    """

    start: Ints
    end: Ints
    ready: Ints
    rank: Ints
    producer: Ints
    cell: Ints
    row: Ints
    source: Ints
    before: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FollowedGaps:
    """Every gap of the ranks inside the pipeline windows, in time of the trace, and where its wait ends. (gaps,)

    Attributes:
        rank, start_ns, end_ns: the gap.
        row, source: as of `_Gaps`.
        ready_ns: when what the rank waits for was made; the end of the gap where it waits for its own rank.
        messages_ns, faults_ns: what of the gap has a message or a fault at the end of its chain.
        holder, held_ns: the rank that most of the gap is spent waiting for while it computes (-1: none), how long.
    """

    rank: Ints
    start_ns: Ints
    end_ns: Ints
    row: Ints
    source: Ints
    ready_ns: Ints
    messages_ns: Ints
    faults_ns: Ints
    holder: Ints
    held_ns: Ints


def waits(run: Iterations, *, once: bool = False) -> Waits:
    """Follow every wait of a run to its end. Vectorised: one round per rank that a chain passes.

    Where iterations overlap, an instant lies in the windows of two of them and counts in both; `once`: as an instant
    of the later one only, and none after the last iteration's end.
    """
    gaps = _gaps_of(run, once=once)
    explains = bool(len(run.message_faults.start)) or bool(np.any(gaps.ready < gaps.end))
    by_gap = np.zeros((2, len(gaps.start)), dtype=np.int64) if not explains else _follow(run, gaps, None)
    cells = np.zeros((2, run.num_iterations * run.num_ranks), dtype=np.int64)
    for sums, amounts in zip(cells, by_gap, strict=True):
        np.add.at(sums, gaps.cell, amounts)
    messages, faults = cells.reshape(2, run.num_iterations, run.num_ranks)
    return Waits(messages=messages, faults=faults)


def followed_gaps(run: Iterations) -> FollowedGaps:
    """The gaps that `waits(run, once=True)` sums up, one by one; no two of a rank overlap."""
    gaps = _gaps_of(run, once=True)
    computing: list[tuple[Ints, Ints, Ints]] = []
    messages, faults = _follow(run, gaps, computing)
    holder, held = _longest_held(computing, len(gaps.start), run.num_ranks)
    shift = gaps.rank * run.span
    return FollowedGaps(
        rank=gaps.rank,
        start_ns=gaps.start - shift,
        end_ns=gaps.end - shift,
        row=gaps.row,
        source=gaps.source,
        ready_ns=np.clip(gaps.ready, gaps.start, gaps.end) - shift,
        messages_ns=messages,
        faults_ns=faults,
        holder=holder,
        held_ns=held,
    )


def _follow(run: Iterations, gaps: _Gaps, computing: list[tuple[Ints, Ints, Ints]] | None) -> Ints:
    """What of each gap ends at a message, and what at a fault: shape (2, gaps).

    `computing` is given (gap, rank, nanoseconds) of what the rank computes at the end of the gap's chain; they are to
    be summed.
    """
    messages, faults = np.zeros((2, len(gaps.start)), dtype=np.int64)
    gap, origin, start, end = np.arange(len(gaps.start)), np.arange(len(gaps.start)), gaps.start, gaps.end
    for _ in range(2 * run.trace.meta.num_stages + 2):  # clocks that disagree could make circles
        # what lies after the input was made is a message (or a fault) of the rank itself
        made = np.clip(gaps.ready[gap], start, end)
        broken = run.message_faults.within(made, end)
        np.add.at(messages, origin, end - made - broken)
        np.add.at(faults, origin, broken)
        # what lies before is spent by the producer, computing or idling
        waiting = (made > start) & (gaps.producer[gap] >= 0)
        idle = (made > start) & (gaps.producer[gap] < 0)
        np.add.at(faults, origin[idle], run.faults.within(start[idle], made[idle]))
        gap, origin, start, end = gap[waiting], origin[waiting], start[waiting], made[waiting]
        producer = gaps.producer[gap]
        shift = (producer - gaps.rank[gap]) * run.span
        start, end = start + shift, end + shift
        hit = run.faults.within(start, end)
        np.add.at(faults, origin, hit)
        if computing is not None:
            computing.append((origin, producer, end - start - hit))
        piece, gap = _overlapping(gaps, start, end)
        origin, producer = origin[piece], producer[piece]
        start, end = np.maximum(start[piece], gaps.start[gap]), np.minimum(end[piece], gaps.end[gap])
        hit = run.faults.within(start, end)
        np.add.at(faults, origin, -hit)
        if computing is not None:
            computing.append((origin, producer, hit - (end - start)))
        if not len(gap):
            break
    return np.stack([messages, faults])


def _longest_held(computing: list[tuple[Ints, Ints, Ints]], gaps: int, num_ranks: int) -> tuple[Ints, Ints]:
    """Of every gap the rank whose computing fills most of it (the lowest of several, -1: none), and how much of it."""
    origin, rank, amount = (np.concatenate([each[part] for each in computing]) for part in range(3))
    cell, inverse = np.unique(origin * num_ranks + rank, return_inverse=True)
    total = np.zeros(len(cell), dtype=np.int64)
    np.add.at(total, inverse.reshape(-1), amount)
    cell, total = cell[total > 0], total[total > 0]
    best = np.lexsort((cell, -total, cell // num_ranks))
    first = best[np.diff(cell[best] // num_ranks, prepend=-1) > 0]
    holder, held = np.full(gaps, -1, dtype=np.int64), np.zeros(gaps, dtype=np.int64)
    holder[cell[first] // num_ranks] = cell[first] % num_ranks
    held[cell[first] // num_ranks] = total[first]
    return holder, held


def _gaps_of(run: Iterations, *, once: bool) -> _Gaps:
    return _gaps(run, *(_once(run) if once else (run.pipeline_end_ns, np.full(run.num_iterations, run.span))))


def _overlapping(gaps: _Gaps, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Pairs (interval, gap before an action) that overlap."""
    first = np.searchsorted(gaps.end[: gaps.before], start, side="right")
    count = np.maximum(np.searchsorted(gaps.start[: gaps.before], end, side="left") - first, 0)
    interval = np.repeat(np.arange(len(start)), count)
    nth = np.arange(len(interval)) - np.repeat(np.cumsum(count) - count, count)
    return interval, first[interval] + nth


def _once(run: Iterations) -> tuple[Ints, Ints]:
    """By iteration: the end of its pipeline or the next one's start; and the end of the last one that follows on."""
    closes = np.flatnonzero(np.append(run.start_ns[1:] != run.end_ns[:-1], True))
    limit = run.end_ns[closes[np.searchsorted(closes, np.arange(run.num_iterations))]]
    return np.minimum(run.pipeline_end_ns, run.end_ns), limit


def _gaps(run: Iterations, window_end: Ints, limit: Ints) -> _Gaps:
    """Idle time between a rank's rows and the edges of the pipeline window.

    Ranks idle after their last action of an iteration until its `window_end`, and nobody beyond `limit`; both shape
    (iterations,).
    """
    compute = run.compute_rows()
    index = run.index[compute.row]
    action = is_action(run.trace)[compute.row]
    begins = run.pipeline_start_ns[index] + compute.rank * run.span
    start = np.maximum(compute.before, begins)
    host = np.where(compute.before > begins, run.facts.host_per_action_ns, 0)  # meanwhile the rank waits for nobody
    start = np.minimum(start + host, np.maximum(start, compute.start))
    ready, source = _inputs(run, compute, start)
    producer = np.where(source >= 0, run.trace.rank[source], -1).astype(np.int64)
    last, until, ender = _ends(run, compute, action, window_end)
    until_start = np.minimum(compute.start, limit[index] + compute.rank * run.span)
    before = np.flatnonzero(action & (until_start > start))
    after = last[until > compute.end[last]]
    until = until[until > compute.end[last]]
    cell = index * run.num_ranks + compute.rank
    return _Gaps(
        start=np.concatenate((start[before], compute.end[after])),
        end=np.concatenate((until_start[before], until)),
        ready=np.concatenate((ready[before], until)),
        rank=np.concatenate((compute.rank[before], compute.rank[after])),
        producer=np.concatenate((producer[before], ender[index[after]])),
        cell=np.concatenate((cell[before], cell[after])),
        row=np.concatenate((compute.row[before], np.full(len(after), -1))),
        source=np.concatenate((source[before], np.full(len(after), -1))),
        before=len(before),
    )


def _ends(
    run: Iterations, compute: ComputeRows, action: NDArray[np.bool_], window_end: Ints
) -> tuple[Ints, Ints, Ints]:
    """Each rank's last action of each iteration, until when it then idles, and the rank that ends each iteration."""
    index = run.index[compute.row]
    follows = np.append((np.diff(compute.rank) == 0) & (np.diff(index) == 0) & action[1:], False)
    last = np.flatnonzero(action & ~follows)
    shift = compute.rank[last] * run.span
    beyond = (compute.rank[last] + 1) * run.span
    following = np.append(compute.start, beyond[-1:])[last + 1]  # of the same rank, or later than anything of it
    until = np.minimum(window_end[index[last]] + shift, following)
    ending = last[compute.end[last] - shift == run.pipeline_end_ns[index[last]]]
    ender = np.zeros(run.num_iterations, dtype=np.int64)
    ender[index[ending][::-1]] = compute.rank[ending][::-1]
    return last, until, ender


def _inputs(run: Iterations, compute: ComputeRows, idle_from: Ints) -> tuple[Ints, Ints]:
    """When the input of each compute row was made (shifted to the row's rank), and by which row (-1: none)."""
    rows = run.trace
    found = inputs_from_elsewhere(run)
    source = found.source[compute.row]
    remote = source >= 0
    sends = _sends(rows)
    sends[found.last] |= sends
    previous_sent = np.append(False, sends[compute.row][:-1] & (np.diff(compute.rank) == 0))
    alone = np.where(previous_sent, idle_from, compute.start)
    ready = np.where(remote, found.ready_ns[compute.row] + compute.rank * run.span, alone)
    return ready, source


def _sends(rows: Trace) -> NDArray[np.bool_]:
    """Which actions send to a stage on another rank."""
    rank_of_stage = np.asarray(rows.meta.rank_of_stage)
    target = neighbours(rows.meta.shape, rows.stage.astype(np.int64), np.where(rows.op == Op.F, 1, -1))
    inside = (target >= 0) & (rows.op <= Op.I)
    elsewhere: NDArray[np.bool_] = rank_of_stage[np.where(inside, target, 0)] != rows.rank
    return inside & elsewhere
