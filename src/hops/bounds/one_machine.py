"""What one rank's actions, with their heads and tails, say about the makespan."""

import numpy as np

from hops.arrays import IntArray
from hops.bounds.release_times import LONG, NEVER, Heads
from hops.compiled import kernel
from hops.timing.retiming import Tails
from hops.timing.stage_costs import CostArrays

NONE = -1


@kernel
def one_machine(costs: CostArrays, pending: IntArray, heads: Heads, tails: Tails, bound: IntArray) -> None:
    """Fill the preemptive one-machine bound of each rank: always run what has the longest tail (Jackson 1955).

    A backward is two jobs, I and what it costs beside (W, or the rest of B). The jobs of one stage and kind come in the
    order of both heads and tails, so that each such class has one candidate at any time.
    """
    size, times, rank_of, later = costs.size, costs.times, costs.rank_of, costs.later
    memory, forward, backward, after_forward = costs.budget, heads.forward, heads.backward, tails.after_forward
    after_backward = tails.after_backward
    stages = len(rank_of)
    for rank in range(len(memory)):
        done = np.zeros((stages, 3), dtype=np.int64)
        left = np.zeros((stages, 3), dtype=np.int64)
        cost = np.zeros((stages, 3), dtype=np.int64)
        jobs = 0
        first = NONE
        for s in range(stages - 1, -1, -1):
            if rank_of[s] == rank:
                first = s
                cost[s, 0] = times[s, 0]
                cost[s, 1] = min(times[s, 1], times[s, 2])
                cost[s, 2] = min(times[s, 1], times[s, 2] + times[s, 3]) - cost[s, 1]
                for kind in range(3):
                    left[s, kind] = cost[s, kind]
                    if cost[s, kind] == 0:
                        done[s, kind] = size
                    else:
                        jobs += size
        now = 0
        best = 0
        while jobs > 0:
            stage, which, longest, release = NONE, NONE, NONE, LONG
            s = first
            while s >= 0:
                for kind in range(3):
                    j = done[s, kind]
                    if j == size:
                        continue
                    if kind == 0:
                        head, tail = forward[s, j], after_forward[s, size - 1 - j]
                    elif kind == 1:
                        head, tail = backward[s, j], after_backward[s, size - 1 - j]
                    else:
                        head, tail = backward[s, j] + cost[s, 1], 0
                        k = size - 1 - j - pending[s]
                        if k >= 0:
                            tail = max(after_backward[s, k] + cost[s, 1], after_forward[s, k] + cost[s, 0])
                    if head > now:
                        release = min(release, head)
                    elif tail > longest:
                        stage, which, longest = s, kind, tail
                s = later[s]
            if stage == NONE:
                now = release
                continue
            step = min(left[stage, which], release - now)
            now += step
            left[stage, which] -= step
            if left[stage, which] == 0:
                left[stage, which] = cost[stage, which]
                done[stage, which] += 1
                jobs -= 1
                best = max(best, now + longest)
        bound[rank] = best


@kernel
def deferral(costs: CostArrays, pending: IntArray, heads: Heads, tails: Tails, bound: IntArray) -> None:
    """Fill, for each rank of one stage, the least makespan over all numbers k of W put off past its last backward.

    The last backward ends no earlier than the rank's work without those W allows; then the k W and the way of the last
    gradient to stage 0 run side by side. Each of the k was split, which costs I + W - B more work.
    """
    size, times, hop, rank_of = costs.size, costs.times, costs.hop, costs.rank_of
    later, memory, forward, backward = costs.later, costs.budget, heads.forward, heads.backward
    after_backward = tails.after_backward
    chunked = [False] * len(memory)
    for s in range(len(rank_of)):
        if later[s] >= 0:
            chunked[rank_of[s]] = True
    most = np.empty(size + 2, dtype=np.int64)  # by how many backwards start at or after an anchor
    for s in range(len(rank_of)):
        if chunked[rank_of[s]]:
            continue
        f, w = times[s, 0], times[s, 3]
        i = min(times[s, 1], times[s, 2])
        whole = min(times[s, 1], times[s, 2] + w)
        dearer = times[s, 2] + w - whole
        drain = 0
        if s > 0:
            drain = hop[s - 1] + min(times[s - 1, 1], times[s - 1, 2]) + after_backward[s - 1, 0]
        most[:] = NEVER
        k = 0
        for j in range(size):
            while k < size and backward[s, k] < forward[s, j]:
                k += 1
            most[size - k] = max(most[size - k], forward[s, j] + (size - j) * f + (size - k) * whole)
        k = 0
        for j in range(size):
            while k < size and forward[s, k] < backward[s, j]:
                k += 1
            most[size - j] = max(most[size - j], backward[s, j] + (size - k) * f + (size - j) * whole)
        all_work = most[size]
        fewer = NEVER
        least = LONG
        at_least = NEVER  # anchors with k backwards or more, read from the far end
        suffix = np.empty(size + 2, dtype=np.int64)
        suffix[size + 1] = NEVER
        for k in range(size, -1, -1):
            at_least = max(at_least, most[k])
            suffix[k] = at_least
        for k in range(pending[s] + 1):
            if k > 0:
                fewer = max(fewer, most[k - 1] - (k - 1) * (whole - i))
            last = max(fewer, suffix[k] - k * (whole - i))
            work = all_work + k * dearer
            least = min(least, max(last + max(drain, k * w), work))
            if work >= least:
                break
        bound[rank_of[s]] = least
