"""Replays an order under other durations: as it stands, or as priorities of ranks that take what is there."""

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.distributions import FloatArray

LOOK_AHEAD = 24  # places past the first open one in which a rank looks for something it could run
NONE = -1


@kernel
def replay(
    size: int,
    durations: FloatArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    kinds: IntArray,
    length: IntArray,
    look_ahead: int,
) -> float:
    """The makespan (ns) with durations (stages, 4 ops, size); inf if it gets stuck.

    An idle rank runs the first action of its list that is open and ready, at most `look_ahead` places past the first
    open one (0: the list as it stands), starting a forward only if memory allows it, and the same microbatch in the
    rank's later stages.
    """
    stages = len(rank_of)
    ranks = len(memory)
    longest = kinds.shape[1]
    which = np.zeros((ranks, longest), dtype=np.int64)
    is_done = np.zeros((ranks, longest), dtype=np.int64)
    arrived = np.full((2, stages, size), np.inf)
    arrived[0, 0, :] = 0.0
    ended = np.full((stages, size), np.inf)  # of I, for its W
    reserve = np.zeros(stages, dtype=np.int64)
    for s in range(stages - 1, -1, -1):
        if later[s] >= 0:
            reserve[s] = reserve[later[s]] + activation[later[s]]
    counts = np.zeros((3, stages), dtype=np.int64)
    splits = np.zeros((stages, size), dtype=np.int64)
    for rank in range(ranks):
        for at in range(length[rank]):
            s, op = kinds[rank, at] >> 2, kinds[rank, at] & 3
            if op == 0:
                which[rank, at] = counts[0, s]
                counts[0, s] += 1
            elif op == 3:
                which[rank, at] = splits[s, counts[2, s]]
                counts[2, s] += 1
            else:
                which[rank, at] = counts[1, s]
                counts[1, s] += 1
        for s in range(stages):
            if rank_of[s] == rank:
                split = 0
                for at in range(length[rank]):
                    if kinds[rank, at] == s * 4 + 2:
                        splits[s, split] = which[rank, at]
                        split += 1
                split = 0
                for at in range(length[rank]):
                    if kinds[rank, at] == s * 4 + 3:
                        which[rank, at] = splits[s, split]
                        split += 1
    first = np.zeros(ranks, dtype=np.int64)
    held = np.zeros(ranks, dtype=np.int64)
    free = np.zeros(ranks)
    due = np.zeros(ranks)
    makespan = 0.0
    while True:
        rank = 0
        for r in range(1, ranks):
            if due[r] < due[rank]:
                rank = r
        now = due[rank]
        if now == np.inf:
            break
        chosen = NONE
        soon = np.inf
        at = first[rank]
        stop = min(length[rank], at + look_ahead + 1)
        while at < stop and chosen < 0:
            if is_done[rank, at] == 0:
                s, op, j = kinds[rank, at] >> 2, kinds[rank, at] & 3, which[rank, at]
                ready = np.inf
                if op == 0:
                    room = reserve[s] if at > first[rank] else 0
                    if held[rank] + activation[s] + room <= memory[rank]:
                        ready = arrived[0, s, j]
                elif op == 3:
                    ready = ended[s, j]
                else:
                    ready = arrived[1, s, j]
                if ready <= now:
                    chosen = at
                else:
                    soon = min(soon, ready)
            at += 1
        if chosen < 0:
            due[rank] = soon
            continue
        s, op, j = kinds[rank, chosen] >> 2, kinds[rank, chosen] & 3, which[rank, chosen]
        end = now + durations[s, op, j]
        is_done[rank, chosen] = 1
        while first[rank] < length[rank] and is_done[rank, first[rank]] == 1:
            first[rank] += 1
        free[rank] = end
        due[rank] = end if first[rank] < length[rank] else np.inf
        makespan = max(makespan, end)
        target = NONE
        if op == 0:
            held[rank] += activation[s]
            if s < stages - 1:
                target = s + 1
                arrived[0, target, j] = end + hop[s]
            else:
                arrived[1, s, j] = end
        elif op == 3:
            held[rank] -= kept[s]
        else:
            held[rank] -= activation[s]
            if op == 2:
                held[rank] += kept[s]
                ended[s, j] = end
            if s > 0:
                target = s - 1
                arrived[1, target, j] = end + hop[target]
        if target >= 0:
            r = rank_of[target]
            if r != rank and first[r] < length[r]:
                message = hop[s] if op == 0 else hop[target]
                due[r] = min(due[r], max(free[r], end + message))
    for rank in range(ranks):
        if first[rank] < length[rank]:
            return np.inf
    return makespan
