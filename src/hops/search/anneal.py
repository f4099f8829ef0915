"""Annealing on the critical path: change an action that nothing can be gained without, keep what is not much worse."""

from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.search.starts import ROUGHNESS
from hops.timing.critical_path import CriticalPath, advance, below, critical_path, index_at
from hops.timing.order_rows import OrderRows
from hops.timing.retiming import Tails, blank_mark, blank_times, retime, row_peak
from hops.timing.stage_costs import UNLIMITED, CostArrays

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
    # Split: in 30% of the tries of a B; a third of the W go to the end.
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
    # Fuse: in 30% of the tries of an I, half with the stage's next W and half with its last.
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
    # Shift by 1 or 2 places, by up to 6, or by any number; a shift over actions of its own kind changes nothing.
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


class Cooling(NamedTuple):
    """How long an annealing goes on, and what it accepts.

    Attributes:
        goal: stop at this makespan (ns).
        work: stop after so much of it; one action timed is 1.
        threshold: how much longer (ns) an order may get by one change at first; falls to 0 with the work that is left.
        state: of the random sequence.
    """

    goal: int
    work: int
    threshold: int
    state: int


@kernel
def anneal(costs: CostArrays, tails: Tails, cooling: Cooling, rows: OrderRows) -> int:
    """Improve the order in place until the work is done or it meets the goal; returns the makespan.

    Work counts actions timed, whether or not a change is kept; what else a change takes is counted by sizes, in the
    measured proportion. Changes are kept as in `tune`.
    """
    size, work = costs.size, cooling.work
    state = cooling.state
    stages = len(costs.rank_of)
    ranks, longest = rows.kinds.shape
    order = OrderRows(rows.kinds.copy(), rows.length.copy())
    saved = np.empty(longest, dtype=np.int64)
    path = CriticalPath(np.empty(ranks * longest, dtype=np.int64), np.empty(ranks * longest, dtype=np.int64))
    old, new = blank_times(costs), blank_times(costs)
    since, now, scratch = blank_mark(costs), blank_mark(costs), blank_mark(costs)
    waiting = np.zeros(stages, dtype=np.int64)
    # Unpacked before the loop, since a look into a record counts references (see timing.list_schedule).
    kinds, length = order
    path_rank, path_at = path
    old_end, old_forward_end, old_backward_end, old_forward_at, old_backward_at = old
    new_end, new_forward_end, new_backward_end, new_forward_at, new_backward_at = new
    first_at, free, forwards, backwards = since
    reached, rank_of = now.at, costs.rank_of
    current = retime(costs, order, tails, since, old, now, old, UNLIMITED)
    best = current
    total = 0
    for rank in range(ranks):
        total += length[rank]
    spent = total
    count = 0  # actions on the critical path; 0: it is not known
    while spent < work and best > cooling.goal:
        if count == 0:
            state = advance(state)
            count = critical_path(costs, order, old, state, path)
            spent += count
        # Change the order at an action of the critical path.
        state = advance(state)
        chosen = below(state, count)
        rank = path_rank[chosen]
        old_length = length[rank]
        saved[:old_length] = kinds[rank, :old_length]
        state = advance(state)
        changed, length[rank] = move(kinds[rank], old_length, path_at[chosen], state)
        state = advance(advance(advance(state)))
        if changed == NO_MOVE:
            kinds[rank, :old_length] = saved[:old_length]
            length[rank] = old_length
            spent += 8 + (old_length >> 2)
            continue
        # Time what is after the change. What ends before the first changed action's start stays as it is.
        makespan = UNLIMITED
        spent += 8 + (old_length >> 1)
        if row_peak(costs, order, rank, scratch, waiting) < UNLIMITED:
            drawn = below(state, ROUGHNESS)
            allowed = max(0, cooling.threshold * (work - spent) // work) * drawn // ROUGHNESS * drawn // ROUGHNESS
            start = 0
            if changed > 0:
                start = old_end[rank, changed - 1]
            for r in range(ranks):
                at = changed
                if r != rank:
                    at = index_at(old_end[r], start, length[r])
                first_at[r] = at
                free[r] = old_end[r, at - 1] if at > 0 else 0
            for s in range(stages):
                forwards[s] = index_at(old_forward_at[s], first_at[rank_of[s]], size)
                backwards[s] = index_at(old_backward_at[s], first_at[rank_of[s]], size)
            makespan = retime(costs, order, tails, since, old, now, new, current + allowed)
            spent += 3 * (ranks + stages)
            for r in range(ranks):
                spent += reached[r] - first_at[r]
        if makespan == UNLIMITED:
            kinds[rank, :old_length] = saved[:old_length]
            length[rank] = old_length
            continue
        # Keep it: what was timed anew becomes what is known.
        current = makespan
        count = 0
        spent += total >> 3
        for r in range(ranks):
            at = first_at[r]
            old_end[r, at : length[r]] = new_end[r, at : length[r]]
        for s in range(stages):
            j, k = forwards[s], backwards[s]
            old_forward_end[s, j:] = new_forward_end[s, j:]
            old_forward_at[s, j:] = new_forward_at[s, j:]
            old_backward_end[s, k:] = new_backward_end[s, k:]
            old_backward_at[s, k:] = new_backward_at[s, k:]
        if makespan < best:
            best = makespan
            rows.kinds[:], rows.length[:] = kinds, length
    return best
