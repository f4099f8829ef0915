"""Times an order of actions, from any point on, and gives up as soon as it can't be good enough.

An order is one row of kinds (stage * 4 + op) per rank. Microbatches are implied: the j-th F of a stage is microbatch j,
and so is the j-th backward; taking turns loses nothing, because microbatches are alike.
"""

# ruff: noqa: ARG001 (every kernel takes the CostArrays)

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.timing.stage_costs import UNLIMITED


@kernel
def time_from(
    size: int,
    times: IntArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    kinds: IntArray,
    length: IntArray,
    after_forward: IntArray,
    after_backward: IntArray,
    limit: int,
    first: IntArray,
    old_forward: IntArray,
    old_backward: IntArray,
    free: IntArray,
    position: IntArray,
    forwards: IntArray,
    backwards: IntArray,
    end: IntArray,
    forward_end: IntArray,
    backward_end: IntArray,
    forward_at: IntArray,
    backward_at: IntArray,
) -> int:
    """The makespan; or UNLIMITED if it is over `limit`, or never ends.

    Before: `position` is each rank's first action to time, `free` when the rank gets there, `forwards` and `backwards`
    are how many of each stage come before; `first` (2, stages) is a copy of these two, and `old_...` (stages, size)
    hold the ends of what comes before. After: the rest is in `end` (ranks, longest) and, by stage and count, in the
    other four arrays, ends and places in the rank's order. `after_...` are the bound's tails.
    """
    ranks = len(length)
    last = len(rank_of) - 1
    left = 0
    for rank in range(ranks):
        left += length[rank] - position[rank]
    down = True
    while left > 0:
        ran = 0
        for step in range(ranks):
            rank = step if down else ranks - 1 - step
            at = position[rank]
            came = at
            now = free[rank]
            while at < length[rank]:
                kind = kinds[rank, at]
                s = kind >> 2
                op = kind & 3
                if op == 0:
                    j = forwards[s]
                    if s > 0:
                        if forwards[s - 1] <= j:
                            break
                        arrived = old_forward[s - 1, j] if j < first[0, s - 1] else forward_end[s - 1, j]
                        now = max(now, arrived + hop[s - 1])
                    now += times[s, 0]
                    if now + after_forward[s, size - 1 - j] > limit:
                        return UNLIMITED
                    forward_end[s, j] = now
                    forward_at[s, j] = at
                    forwards[s] = j + 1
                elif op == 3:
                    now += times[s, 3]
                else:
                    j = backwards[s]
                    if s < last:
                        if backwards[s + 1] <= j:
                            break
                        arrived = old_backward[s + 1, j] if j < first[1, s + 1] else backward_end[s + 1, j]
                        now = max(now, arrived + hop[s])
                    elif forwards[s] <= j:
                        break
                    now += times[s, op]
                    if op == 2 and now + after_backward[s, size - 1 - j] > limit:
                        return UNLIMITED
                    backward_end[s, j] = now
                    backward_at[s, j] = at
                    backwards[s] = j + 1
                end[rank, at] = now
                at += 1
            ran += at - came
            position[rank] = at
            free[rank] = now
        if ran == 0:
            return UNLIMITED
        left -= ran
        down = not down
    makespan = 0
    for rank in range(ranks):
        makespan = max(makespan, free[rank])
    return makespan if makespan <= limit else UNLIMITED


@kernel
def rank_is_sound(
    kinds: IntArray,
    length: int,
    limit: int,
    activation: IntArray,
    kept: IntArray,
    forwards: IntArray,
    backwards: IntArray,
    waiting: IntArray,
) -> bool:
    """Whether a rank's order keeps F before backward before W and stays within memory. The last three are scratch."""
    forwards[:] = 0
    backwards[:] = 0
    waiting[:] = 0
    held = 0
    for at in range(length):
        s = kinds[at] >> 2
        op = kinds[at] & 3
        if op == 0:
            forwards[s] += 1
            held += activation[s]
            if held > limit:
                return False
        elif op == 3:
            waiting[s] -= 1
            held -= kept[s]
            if waiting[s] < 0:
                return False
        else:
            backwards[s] += 1
            held -= activation[s]
            if backwards[s] > forwards[s]:
                return False
            if op == 2:
                waiting[s] += 1
                held += kept[s]  # may be more than I gives back, where it makes activations again
                if held > limit:
                    return False
    return True
