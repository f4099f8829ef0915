"""Tightens heads, or tails, where several stages share a rank: all of them must pass through the one machine."""

import numpy as np

from hops.arrays import IntArray
from hops.bounds.release_times import LONG, NEVER, Heads
from hops.compiled import kernel
from hops.timing.retiming import Tails
from hops.timing.stage_costs import CostArrays


@kernel
def tighten(
    costs: CostArrays,
    down_time: IntArray,
    up_time: IntArray,
    before: IntArray,
    down: IntArray,
    up: IntArray,
) -> None:
    """Raise the earliest starts `down` (along the stages) and `up` (back), shapes (stages, size), in place.

    The j-th down of a stage comes after j downs of it and j + 1 of every earlier stage of the rank; the j-th up after
    j + 1 downs of all stages of the rank, j + 1 ups of the later ones and j of its own. So it starts no earlier than
    any of these can (an anchor), plus the work of those that start no earlier than the anchor. `before` is work that
    must precede a stage's down on its rank but may be done at any time from 0 (with time reversed: W).
    """
    size, rank_of, later = costs.size, costs.rank_of, costs.later
    stages = len(rank_of)
    best = np.empty((2, stages), dtype=np.int64)  # per target: an anchor's head less the work before it
    old_down, old_up = down.copy(), up.copy()
    for first in range(stages):
        is_first = True
        for s in range(first):
            if rank_of[s] == rank_of[first]:
                is_first = False
        if not is_first or later[first] < 0:
            continue
        u = first
        while u >= 0:
            for is_up in range(2):
                best[is_up, u] = NEVER
                for j in range(size):
                    # The anchors that come in at j: of each kind the j-th, of the target's own the one before.
                    t = first
                    while t >= 0:
                        for kind in range(2):
                            k = j
                            if kind == 0:
                                if is_up == 0 and t > u:
                                    continue
                                if is_up == 0 and t == u:
                                    k = j - 1
                            else:
                                if is_up == 0 or t < u:
                                    continue
                                if t == u:
                                    k = j - 1
                            if k < 0:
                                continue
                            head = old_down[t, k] if kind == 0 else old_up[t, k]
                            less = 0
                            v = first
                            while v >= 0:
                                if is_up == 1 or v <= u:
                                    less += earlier(old_down[v], head) * down_time[v]
                                if is_up == 1 and v >= u:
                                    less += earlier(old_up[v], head) * up_time[v]
                                v = later[v]
                            best[is_up, u] = max(best[is_up, u], head - less)
                        t = later[t]
                    work, early = 0, 0
                    v = first
                    while v >= 0:
                        if is_up == 1 or v <= u:
                            count = j if is_up == 0 and v == u else j + 1
                            work += count * down_time[v]
                            early += (j + 1) * before[v]
                        if is_up == 1 and v >= u:
                            work += (j if v == u else j + 1) * up_time[v]
                        v = later[v]
                    start = max(best[is_up, u] + work, work + early)
                    if is_up == 0:
                        down[u, j] = max(down[u, j], start)
                    else:
                        up[u, j] = max(up[u, j], start)
            u = later[u]


@kernel
def earlier(heads: IntArray, head: int) -> int:
    """How many of the ascending heads lie before one."""
    low = 0
    high = len(heads)
    while low < high:
        middle = (low + high) >> 1
        if heads[middle] < head:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def shared_deferral(costs: CostArrays, pending: IntArray, heads: Heads, tails: Tails, bound: IntArray) -> None:
    """Fill, for each rank of several stages, what `deferral` says for ranks of one; here in time instead of counts.

    Putting off W that a fused backward would have taken `delay` for, by the cheapest stage's exchange, costs a share of
    `delay` in more work; `delay` and that cost then run beside the way of the last gradient to stage 0.
    """
    size, times, hop, rank_of = costs.size, costs.times, costs.hop, costs.rank_of
    later, memory, forward, backward = costs.later, costs.budget, heads.forward, heads.backward
    after_backward = tails.after_backward
    anchors = np.empty(2 * size * len(rank_of), dtype=np.int64)
    removable = np.empty(2 * size * len(rank_of), dtype=np.int64)
    seen = np.zeros(len(memory), dtype=np.int64)
    for first in range(len(rank_of)):
        rank = rank_of[first]
        if seen[rank] == 1 or later[first] < 0:
            continue
        seen[rank] = 1
        drain, most, all_work, all_removable = LONG, 0, 0, 0
        dearer, per = LONG, 1  # the cheapest exchange: so much more work per so much put off
        s = first
        while s >= 0:
            i = min(times[s, 1], times[s, 2])
            whole = min(times[s, 1], times[s, 2] + times[s, 3])
            way = 0
            if s > 0:
                way = hop[s - 1] + min(times[s - 1, 1], times[s - 1, 2]) + after_backward[s - 1, 0]
            drain = min(drain, way)
            most += pending[s] * (whole - i)
            all_removable += size * (whole - i)
            more = times[s, 2] + times[s, 3] - whole
            if whole > i and (dearer == LONG or more * per < dearer * (whole - i)):
                dearer, per = more, whole - i
            s = later[s]
        if dearer == LONG:
            dearer, per = 0, 1
        count = 0
        s = first
        while s >= 0:
            for index in range(2 * size):
                head = forward[s, index] if index < size else backward[s, index - size]
                work, loose = head, 0
                t = first
                while t >= 0:
                    i = min(times[t, 1], times[t, 2])
                    whole = min(times[t, 1], times[t, 2] + times[t, 3])
                    backwards = size - earlier(backward[t], head)
                    work += (size - earlier(forward[t], head)) * times[t, 0] + backwards * whole
                    loose += backwards * (whole - i)
                    t = later[t]
                anchors[count] = work
                removable[count] = loose
                count += 1
                if loose == all_removable:
                    all_work = max(all_work, work)
            s = later[s]
        low, high = 0, most
        while low < high:
            delay = (low + high) >> 1
            last = last_end(anchors, removable, count, delay)
            cost = delay * dearer // per
            if max(last + delay, all_work) + cost >= last + drain:
                high = delay
            else:
                low = delay + 1
        least = LONG
        for delay in range(max(0, low - 1), low + 1):
            last = last_end(anchors, removable, count, delay)
            cost = delay * dearer // per
            least = min(least, max(last + max(drain, delay + cost), all_work + cost))
        bound[rank] = least


@kernel
def last_end(anchors: IntArray, removable: IntArray, count: int, delay: int) -> int:
    """The earliest end of a rank's last backward, if work that takes `delay` is put off past it."""
    end = 0
    for index in range(count):
        end = max(end, anchors[index] - min(delay, removable[index]))
    return end
