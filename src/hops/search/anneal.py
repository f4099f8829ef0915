"""Annealing on the critical path: change an action that nothing can be gained without, keep what is not much worse."""

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.builders import counted
from hops.program.program import Program
from hops.program.shape import Shape
from hops.search.starts import ROUGHNESS
from hops.timing.critical_path import advance, below, critical_path, index_at
from hops.timing.retiming import rank_is_sound, time_from
from hops.timing.stage_costs import UNLIMITED

NO_MOVE = -1


@kernel
def move(row: IntArray, length: int, at: int, state: int) -> tuple[int, int]:
    """Change a rank's order at a place at random: the first place that changed (NO_MOVE: none), and the new length.

    Splitting leaves the I in the B's place and puts the W at the end or anywhere after; fusing takes the stage's next
    or last W. Shifts are mostly short; W are moved by shifts as well.
    """
    kind = row[at]
    op = kind & 3
    draw = below(state, 100)
    state = advance(state)
    if op == 1 and draw < 30:
        place = length
        if below(state, 3) > 0:
            state = advance(state)
            place = at + 1 + below(state, length - at)
        for q in range(length, place, -1):
            row[q] = row[q - 1]
        row[place] = kind + 2
        row[at] = kind + 1
        return at, length + 1
    if op == 2 and draw < 30:
        place = NO_MOVE
        if below(state, 2) == 0:
            for q in range(at + 1, length):
                if row[q] == kind + 1:
                    place = q
                    break
        else:
            for q in range(length - 1, at, -1):
                if row[q] == kind + 1:
                    place = q
                    break
        if place == NO_MOVE:
            return NO_MOVE, length
        row[at] = kind - 1
        for q in range(place, length - 1):
            row[q] = row[q + 1]
        return at, length - 1
    reach = length
    if draw % 10 < 5:
        reach = 2
    elif draw % 10 < 8:
        reach = 6
    distance = 1 + below(state, reach)
    state = advance(state)
    same = True
    if below(state, 2) == 0:
        place = max(0, at - distance)
        for q in range(at, place, -1):
            same = same and row[q - 1] == kind
            row[q] = row[q - 1]
        row[place] = kind
        return NO_MOVE if same else place, length
    place = min(length - 1, at + distance)
    for q in range(at, place):
        same = same and row[q + 1] == kind
        row[q] = row[q + 1]
    row[place] = kind
    return NO_MOVE if same else at, length


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


def order_of(program: Program, kinds: IntArray, length: IntArray) -> None:
    """Fill `kinds` (ranks, longest) and `length` (ranks,) from a program; microbatches are forgotten."""
    for rank, row in enumerate(program.split(program.kind)):
        kinds[rank, : len(row)] = row
        length[rank] = len(row)


def program_of(shape: Shape, kinds: IntArray, length: IntArray) -> Program:
    """The program of an order: each stage takes its forwards, backwards and the W of its split backwards in turn."""
    return counted(shape, [row[:actions] for row, actions in zip(kinds, length.tolist(), strict=True)])
