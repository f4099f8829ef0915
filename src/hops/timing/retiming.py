"""Times an order of actions, from any point on, and gives up as soon as it can't be good enough."""

from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.timing.order_rows import OrderRows
from hops.timing.stage_costs import UNLIMITED, CostArrays


class Tails(NamedTuple):
    """The least time from the end of each forward, and of each I, to the end; shapes (stages, size), last first."""

    after_forward: IntArray
    after_backward: IntArray


class OrderTimes(NamedTuple):
    """When the actions of an order end (ns), and where its forwards and backwards stand.

    Attributes:
        end: of every action, shape (ranks, longest).
        forward_end, backward_end: of the j-th F, and B or I, of each stage; shape (stages, size).
        forward_at, backward_at: their places in the rank's row; shape (stages, size).
    """

    end: IntArray
    forward_end: IntArray
    backward_end: IntArray
    forward_at: IntArray
    backward_at: IntArray


class Mark(NamedTuple):
    """A point in an order: what comes before it on each rank.

    Attributes:
        at: the place of each rank's next action; free: when the rank gets there; shape (ranks,).
        forwards, backwards: how many of each stage come before; shape (stages,).
    """

    at: IntArray
    free: IntArray
    forwards: IntArray
    backwards: IntArray


@kernel
def blank_times(costs: CostArrays) -> OrderTimes:
    """Room for the times of any order."""
    stages, size = len(costs.rank_of), costs.size
    longest = 0
    per_rank = np.zeros(len(costs.budget), dtype=np.int64)
    for s in range(stages):
        per_rank[costs.rank_of[s]] += 3 * size
        longest = max(longest, per_rank[costs.rank_of[s]])
    return OrderTimes(
        np.zeros((len(costs.budget), longest), dtype=np.int64),
        np.zeros((stages, size), dtype=np.int64),
        np.zeros((stages, size), dtype=np.int64),
        np.zeros((stages, size), dtype=np.int64),
        np.zeros((stages, size), dtype=np.int64),
    )


@kernel
def blank_mark(costs: CostArrays) -> Mark:
    """The beginning of any order."""
    ranks, stages = len(costs.budget), len(costs.rank_of)
    return Mark(
        np.zeros(ranks, dtype=np.int64),
        np.zeros(ranks, dtype=np.int64),
        np.zeros(stages, dtype=np.int64),
        np.zeros(stages, dtype=np.int64),
    )


@kernel
def retime(
    costs: CostArrays,
    rows: OrderRows,
    tails: Tails,
    since: Mark,
    known: OrderTimes,
    now: Mark,
    new: OrderTimes,
    limit: int,
) -> int:
    """The makespan (ns); or UNLIMITED if it is over `limit`, or never ends.

    `known` holds the ends of what comes before `since`. What comes after is written into `new`, and `now` shows how far
    it got. Where microbatches differ, W takes the mean of them; posted receives are one entry early, whatever the peer
    sends first. With `tails`, an action from which the end cannot be reached within the limit is where it gives up.
    """
    size, times, each, hop = costs.size, costs.times, costs.each, costs.each_hop
    gap, posted, first_new, known_end = costs.gap, costs.posted, since.at, known.end
    uneven = 1 if each.shape[2] > 1 else 0
    after_forward, after_backward = tails
    position, free, forwards, backwards = now
    end, forward_end, backward_end, forward_at, backward_at = new
    known_forward_end, known_backward_end = known.forward_end, known.backward_end
    first_forward, first_backward = since.forwards, since.backwards
    position[:], free[:] = since.at, since.free
    forwards[:], backwards[:] = since.forwards, since.backwards
    kinds, length = rows
    ranks = len(length)
    last = len(costs.rank_of) - 1
    left = 0
    for rank in range(ranks):
        left += length[rank] - position[rank]
    # Sweep down the ranks and up again: forwards flow down, backwards up. In each visit a rank runs as far as it can.
    down = True
    while left > 0:
        ran = 0
        for step in range(ranks):
            rank = step if down else ranks - 1 - step
            at = position[rank]
            came = at
            time = free[rank]
            while at < length[rank]:
                ready = time + gap if at > 0 else time
                received = 0
                if posted and at > 1:
                    received = gap + (known_end[rank, at - 2] if at - 2 < first_new[rank] else end[rank, at - 2])
                kind = kinds[rank, at]
                s = kind >> 2
                op = kind & 3
                if op == 0:
                    j = forwards[s]
                    if s > 0:
                        if forwards[s - 1] <= j:
                            break
                        is_known = j < first_forward[s - 1]
                        arrived = known_forward_end[s - 1, j] if is_known else forward_end[s - 1, j]
                        ready = max(ready, max(arrived, received) + hop[s - 1, j * uneven])
                    time = ready + each[s, 0, j * uneven]
                    if time + after_forward[s, size - 1 - j] > limit:
                        return UNLIMITED
                    forward_end[s, j] = time
                    forward_at[s, j] = at
                    forwards[s] = j + 1
                elif op == 3:
                    time = ready + times[s, 3]
                else:
                    j = backwards[s]
                    if s < last:
                        if backwards[s + 1] <= j:
                            break
                        is_known = j < first_backward[s + 1]
                        arrived = known_backward_end[s + 1, j] if is_known else backward_end[s + 1, j]
                        ready = max(ready, max(arrived, received) + hop[s, j * uneven])
                    elif forwards[s] <= j:
                        break
                    time = ready + each[s, op, j * uneven]
                    if op == 2 and time + after_backward[s, size - 1 - j] > limit:
                        return UNLIMITED
                    backward_end[s, j] = time
                    backward_at[s, j] = at
                    backwards[s] = j + 1
                end[rank, at] = time
                at += 1
            ran += at - came
            position[rank] = at
            free[rank] = time
        if ran == 0:
            return UNLIMITED
        left -= ran
        down = not down
    makespan = 0
    for rank in range(ranks):
        makespan = max(makespan, free[rank])
    return makespan if makespan <= limit else UNLIMITED


def order_ns(costs: CostArrays, rows: OrderRows) -> int:
    """The makespan (ns) of a whole order; UNLIMITED if it never ends."""
    nothing = np.zeros((costs.num_stages, costs.size), dtype=np.int64)
    times, mark, now = blank_times.fast(costs), blank_mark.fast(costs), blank_mark.fast(costs)
    return int(retime.fast(costs, rows, Tails(nothing, nothing), mark, times, now, times, UNLIMITED))


@kernel
def row_peak(costs: CostArrays, rows: OrderRows, rank: int, scratch: Mark, waiting: IntArray) -> int:
    """The most bytes that a rank's activations take; UNLIMITED if its order is wrong, or they break its budget.

    The order is right if F comes before backward before W. `waiting`, shape (stages,), is scratch, too. W may need more
    than F keeps (recomputation makes it), so that an I counts as a forward does.
    """
    activation, kept, budget = costs.activation, costs.kept, costs.budget[rank]
    kinds, length = rows.kinds[rank], rows.length[rank]
    forwards, backwards = scratch.forwards, scratch.backwards
    forwards[:] = 0
    backwards[:] = 0
    waiting[:] = 0
    held = 0
    peak = 0
    for at in range(length):
        s = kinds[at] >> 2
        op = kinds[at] & 3
        if op == 0:
            forwards[s] += 1
            held += activation[s]
        elif op == 3:
            waiting[s] -= 1
            held -= kept[s]
            if waiting[s] < 0:
                return UNLIMITED
        else:
            backwards[s] += 1
            held -= activation[s]
            if backwards[s] > forwards[s]:
                return UNLIMITED
            if op == 2:
                waiting[s] += 1
                held += kept[s]
        peak = max(peak, held)
        if peak > budget:
            return UNLIMITED
    return peak
