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
        before: how many intervals lie before actions.
    """

    start: Ints
    end: Ints
    ready: Ints
    rank: Ints
    producer: Ints
    cell: Ints
    before: int


def waits(run: Iterations, *, once: bool = False) -> Waits:
    """Follow every wait of a run to its end. Vectorised: one round per rank that a chain passes.

    Where iterations overlap, an instant lies in the windows of two of them and counts in both; `once`: as an instant
    of the later one only, and none after the last iteration's end.
    """
    gaps = _gaps(run, *(_once(run) if once else (run.pipeline_end_ns, np.full(run.num_iterations, run.span))))
    messages, faults = np.zeros((2, run.num_iterations * run.num_ranks), dtype=np.int64)
    gap, cell, start, end = np.arange(len(gaps.start)), gaps.cell, gaps.start, gaps.end
    explains = bool(len(run.message_faults.start)) or bool(np.any(gaps.ready < gaps.end))
    for _ in range(2 * run.trace.meta.num_stages + 2 if explains else 0):  # clocks that disagree could make circles
        # what lies after the input was made is a message (or a fault) of the rank itself
        made = np.clip(gaps.ready[gap], start, end)
        broken = run.message_faults.within(made, end)
        np.add.at(messages, cell, end - made - broken)
        np.add.at(faults, cell, broken)
        # what lies before is spent by the producer, computing or idling
        waiting = (made > start) & (gaps.producer[gap] >= 0)
        idle = (made > start) & (gaps.producer[gap] < 0)
        np.add.at(faults, cell[idle], run.faults.within(start[idle], made[idle]))
        gap, cell, start, end = gap[waiting], cell[waiting], start[waiting], made[waiting]
        shift = (gaps.producer[gap] - gaps.rank[gap]) * run.span
        start, end = start + shift, end + shift
        np.add.at(faults, cell, run.faults.within(start, end))
        piece, gap = _overlapping(gaps, start, end)
        cell = cell[piece]
        start, end = np.maximum(start[piece], gaps.start[gap]), np.minimum(end[piece], gaps.end[gap])
        np.add.at(faults, cell, -run.faults.within(start, end))
        if not len(gap):
            break
    shape = (run.num_iterations, run.num_ranks)
    return Waits(messages=messages.reshape(shape), faults=faults.reshape(shape))


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
    ready, producer = _inputs(run, compute, start)
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
    """When the input of each compute row was made (shifted to the row's rank), and by which rank (-1: none)."""
    rows = run.trace
    found = inputs_from_elsewhere(run)
    source = found.source[compute.row]
    remote = source >= 0
    sends = _sends(rows)
    sends[found.last] |= sends
    previous_sent = np.append(False, sends[compute.row][:-1] & (np.diff(compute.rank) == 0))
    alone = np.where(previous_sent, idle_from, compute.start)
    ready = np.where(remote, found.ready_ns[compute.row] + compute.rank * run.span, alone)
    return ready, np.where(remote, rows.rank[source], -1).astype(np.int64)


def _sends(rows: Trace) -> NDArray[np.bool_]:
    """Which actions send to a stage on another rank."""
    rank_of_stage = np.asarray(rows.meta.rank_of_stage)
    target = neighbours(rows.meta.shape, rows.stage.astype(np.int64), np.where(rows.op == Op.F, 1, -1))
    inside = (target >= 0) & (rows.op <= Op.I)
    elsewhere: NDArray[np.bool_] = rank_of_stage[np.where(inside, target, 0)] != rows.rank
    return inside & elsewhere
