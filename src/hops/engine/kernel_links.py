"""Links of the compiled engine: messages share a link's bandwidth equally, and are re-rated when one joins or leaves.

The reference, `hops.engine.links`, says why. A link's messages are a chain in order of joining, so that both engines
re-rate in the same order, and events of one instant come in the same order, too.
"""

from math import ceil

from hops.compiled import bare_kernel, kernel_part
from hops.engine.records import (
    ACTION_OF,
    BEFORE,
    BEHIND,
    BYTES_LEFT,
    COUNT,
    DOING,
    FIRST_HOP,
    FIRST_TRANSFER,
    KIND,
    LAST_HOP,
    MARK,
    MARKED,
    MOVED_AT,
    MOVING,
    NONE,
    NOW,
    RATE,
    SHARED_HIGH,
    SHARED_LOW,
    State,
    Tables,
)  # fmt: skip
from hops.engine.timers import set_timer

ROUNDING_NS = 1e-6  # a finish computed this close above a whole nanosecond is that nanosecond


@bare_kernel
def rerate(tables: Tables, state: State, low: int, high: int) -> None:
    """Give every message on these links (a range of `crossed`) its present rate and finish."""
    clock, transfers, moving, links = state.clock, state.transfers, state.moving, state.links
    crossed, kinds = tables.crossed, tables.kinds
    now = clock[NOW]
    clock[MARK] += 1
    for at in range(low, high):
        hop = links[crossed[at], FIRST_HOP]
        while hop != NONE:
            transfer = hop // tables.most_hops
            hop = state.hops[hop, BEHIND]
            if transfers[transfer, MARKED] == clock[MARK]:
                continue  # it was met on another link
            transfers[transfer, MARKED] = clock[MARK]
            kind = tables.actions[KIND, transfers[transfer, ACTION_OF]]
            link = crossed[kinds[kind, SHARED_LOW]]
            rate = state.rates[link] / links[link, COUNT]
            for each in range(kinds[kind, SHARED_LOW] + 1, kinds[kind, SHARED_HIGH]):
                link = crossed[each]
                rate = min(rate, state.rates[link] / links[link, COUNT])
            if rate == moving[transfer, RATE]:
                continue
            moving[transfer, BYTES_LEFT] -= (now - transfers[transfer, MOVED_AT]) * moving[transfer, RATE]
            moving[transfer, RATE] = rate
            transfers[transfer, MOVED_AT] = now
            end = now + max(0, ceil(moving[transfer, BYTES_LEFT] / rate - ROUNDING_NS))
            set_timer(state.timers, clock, len(state.ranks) + FIRST_TRANSFER + transfer, end, 0)


@kernel_part
def join(tables: Tables, state: State, transfer: int, size: int) -> None:
    """Bytes begin to move."""
    transfers, links, hops = state.transfers, state.links, state.hops
    kind = tables.actions[KIND, transfers[transfer, ACTION_OF]]
    low, high = tables.kinds[kind, SHARED_LOW], tables.kinds[kind, SHARED_HIGH]
    transfers[transfer, DOING] = MOVING
    transfers[transfer, MOVED_AT] = state.clock[NOW]
    state.moving[transfer, BYTES_LEFT] = size
    state.moving[transfer, RATE] = 0.0
    for at in range(low, high):
        link, hop = tables.crossed[at], transfer * tables.most_hops + at - low
        last = links[link, LAST_HOP]
        hops[hop, BEFORE], hops[hop, BEHIND] = last, NONE
        if last == NONE:
            links[link, FIRST_HOP] = hop
        else:
            hops[last, BEHIND] = hop
        links[link, LAST_HOP] = hop
        links[link, COUNT] += 1
    rerate(tables, state, low, high)


@bare_kernel
def leave(tables: Tables, state: State, transfer: int) -> None:
    """Bytes no longer move."""
    links, hops = state.links, state.hops
    kind = tables.actions[KIND, state.transfers[transfer, ACTION_OF]]
    low, high = tables.kinds[kind, SHARED_LOW], tables.kinds[kind, SHARED_HIGH]
    for at in range(low, high):
        link, hop = tables.crossed[at], transfer * tables.most_hops + at - low
        before, behind = hops[hop, BEFORE], hops[hop, BEHIND]
        if before == NONE:
            links[link, FIRST_HOP] = behind
        else:
            hops[before, BEHIND] = behind
        if behind == NONE:
            links[link, LAST_HOP] = before
        else:
            hops[behind, BEFORE] = before
        links[link, COUNT] -= 1
    rerate(tables, state, low, high)
