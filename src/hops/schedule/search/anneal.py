"""Annealing on the critical path: change an action that nothing can be gained without, keep what is not much worse."""

import numpy as np

from hops.schedule.coded import IntArray
from hops.schedule.instance import UNLIMITED
from hops.schedule.jit import kernel
from hops.schedule.search.chance import advance, below
from hops.schedule.search.critical import critical_path, index_at
from hops.schedule.search.moves import NO_MOVE, move
from hops.schedule.search.timing import rank_is_sound, time_from
from hops.schedule.search.tune import ROUGHNESS


@kernel
def anneal(
    size: int,
    times: IntArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    after_forward: IntArray,
    after_backward: IntArray,
    bound: int,
    work: int,
    threshold: int,
    state: int,
    kinds: IntArray,
    length: IntArray,
) -> int:
    """Improve the order in place until so much work is done or it meets `bound`; returns the makespan.

    Work counts actions timed, whether or not a change is kept; what else a change takes is counted by sizes, in the
    measured proportion. Changes are kept as in `tune`.
    """
    stages = len(rank_of)
    ranks, longest = kinds.shape
    row_length = length.copy()
    order = kinds.copy()
    saved = np.empty(longest, dtype=np.int64)
    path_rank = np.empty(ranks * longest, dtype=np.int64)
    path_at = np.empty(ranks * longest, dtype=np.int64)
    end, new_end = np.zeros((ranks, longest), dtype=np.int64), np.zeros((ranks, longest), dtype=np.int64)
    # by stage and count: ends of forwards and backwards, and their places
    forward_end, backward_end = np.zeros((stages, size), dtype=np.int64), np.zeros((stages, size), dtype=np.int64)
    forward_at, backward_at = np.zeros((stages, size), dtype=np.int64), np.zeros((stages, size), dtype=np.int64)
    new_forward_end, new_backward_end = forward_end.copy(), backward_end.copy()
    new_forward_at, new_backward_at = forward_at.copy(), backward_at.copy()
    first_at = np.zeros(ranks, dtype=np.int64)
    first = np.zeros((2, stages), dtype=np.int64)
    free = np.zeros(ranks, dtype=np.int64)
    position = np.zeros(ranks, dtype=np.int64)
    forwards, backwards = np.zeros(stages, dtype=np.int64), np.zeros(stages, dtype=np.int64)
    waiting = np.zeros(stages, dtype=np.int64)
    current = time_from(
        size, times, hop, rank_of, later, activation, kept, memory, order, row_length, after_forward, after_backward,
        UNLIMITED, first, forward_end, backward_end, free, position, forwards, backwards, end, forward_end,
        backward_end, forward_at, backward_at,
    )  # fmt: skip
    best = current
    total = 0
    for rank in range(ranks):
        total += length[rank]
    spent = total
    count = 0
    while spent < work and best > bound:
        if count == 0:
            state = advance(state)
            count = critical_path(
                size, times, hop, rank_of, later, activation, kept, memory, order, row_length, end, forward_end,
                backward_end, forward_at, backward_at, state, path_rank, path_at,
            )  # fmt: skip
            spent += count
        state = advance(state)
        chosen = below(state, count)
        rank = path_rank[chosen]
        old_length = row_length[rank]
        saved[:old_length] = order[rank, :old_length]
        state = advance(state)
        changed, row_length[rank] = move(order[rank], old_length, path_at[chosen], state)
        state = advance(advance(advance(state)))
        if changed == NO_MOVE:
            order[rank, :old_length] = saved[:old_length]
            row_length[rank] = old_length
            spent += 8 + (old_length >> 2)
            continue
        new = UNLIMITED
        spent += 8 + (old_length >> 1)
        if rank_is_sound(order[rank], row_length[rank], memory[rank], activation, kept, forwards, backwards, waiting):
            drawn = below(state, ROUGHNESS)
            allowed = max(0, threshold * (work - spent) // work) * drawn // ROUGHNESS * drawn // ROUGHNESS
            # What ends before the first changed action's start stays as it is.
            since = 0
            if changed > 0:
                since = end[rank, changed - 1]
            for r in range(ranks):
                at = changed
                if r != rank:
                    at = index_at(end[r], since, row_length[r])
                first_at[r] = at
                position[r] = at
                free[r] = end[r, at - 1] if at > 0 else 0
            for s in range(stages):
                forwards[s] = index_at(forward_at[s], first_at[rank_of[s]], size)
                backwards[s] = index_at(backward_at[s], first_at[rank_of[s]], size)
                first[0, s] = forwards[s]
                first[1, s] = backwards[s]
            new = time_from(
                size, times, hop, rank_of, later, activation, kept, memory, order, row_length, after_forward,
                after_backward, current + allowed, first, forward_end, backward_end, free, position, forwards,
                backwards, new_end, new_forward_end, new_backward_end, new_forward_at, new_backward_at,
            )  # fmt: skip
            spent += 3 * (ranks + stages)
            for r in range(ranks):
                spent += position[r] - first_at[r]
        if new == UNLIMITED:
            order[rank, :old_length] = saved[:old_length]
            row_length[rank] = old_length
            continue
        current = new
        count = 0
        spent += total >> 3
        for r in range(ranks):
            end[r, first_at[r] : row_length[r]] = new_end[r, first_at[r] : row_length[r]]
        for s in range(stages):
            forward_end[s, first[0, s] :] = new_forward_end[s, first[0, s] :]
            forward_at[s, first[0, s] :] = new_forward_at[s, first[0, s] :]
            backward_end[s, first[1, s] :] = new_backward_end[s, first[1, s] :]
            backward_at[s, first[1, s] :] = new_backward_at[s, first[1, s] :]
        if new < best:
            best = new
            kinds[:] = order
            length[:] = row_length
    return best
