"""The critical path of a timed order: a chain of actions without slack that ends with the makespan."""

from typing import NamedTuple

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.timing.order_rows import OrderRows
from hops.timing.retiming import OrderTimes
from hops.timing.stage_costs import CostArrays


class CriticalPath(NamedTuple):
    """The rank, and the place in its row, of each action of a path; shape (all places,)."""

    rank: IntArray
    at: IntArray


@kernel
def advance(state: int) -> int:
    """The next state of the minimal standard generator (Park and Miller 1988); states are 1 to 2^31 - 2."""
    return state * 48271 % 2147483647


@kernel
def below(state: int, bound: int) -> int:
    """A number from 0 to bound - 1, of a state's higher bits."""
    return (state >> 4) % bound


@kernel
def critical_path(costs: CostArrays, rows: OrderRows, timed: OrderTimes, state: int, path: CriticalPath) -> int:
    """Fill the path, last action first, and return its length. Of ranks that end last, it ends on the first.

    Where both the rank and a message bind, the state's number decides which way to go.
    """
    size, times, each, hop, rank_of = costs.size, costs.times, costs.each, costs.each_hop, costs.rank_of
    uneven = 1 if each.shape[2] > 1 else 0
    kinds, length = rows
    end, forward_end, backward_end, forward_at, backward_at = timed
    path_rank, path_at = path
    rank = 0
    for r in range(1, len(length)):
        if end[r, length[r] - 1] > end[rank, length[rank] - 1]:
            rank = r
    at = length[rank] - 1
    count = 0
    while True:
        path_rank[count] = rank
        path_at[count] = at
        count += 1
        s = kinds[rank, at] >> 2
        op = kinds[rank, at] & 3
        j = 0
        if op == 0:
            j = index_at(forward_at[s], at, size)
        elif op < 3:
            j = index_at(backward_at[s], at, size)
        start = end[rank, at] - (times[s, op] if op == 3 else each[s, op, j * uneven])
        waits = at > 0 and end[rank, at - 1] + costs.gap == start
        source = -1
        source_at = 0
        if op == 0 and s > 0:
            if forward_end[s - 1, j] + hop[s - 1, j * uneven] == start:
                source = rank_of[s - 1]
                source_at = forward_at[s - 1, j]
        elif 0 < op < 3 and s < len(rank_of) - 1 and backward_end[s + 1, j] + hop[s, j * uneven] == start:
            source = rank_of[s + 1]
            source_at = backward_at[s + 1, j]
        if waits and source >= 0:
            state = advance(state)
            waits = below(state, 2) == 0
        if waits:
            at -= 1
        elif source >= 0:
            rank = source
            at = source_at
        else:
            return count


@kernel
def index_at(places: IntArray, at: int, size: int) -> int:
    """How many of the first `size` ascending places lie before `at`."""
    low = 0
    high = size
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < at:
            low = middle + 1
        else:
            high = middle
    return low
