"""Faults of the compiled engine: what they hit is lost, and done again once everything it needs is back.

The order of everything is that of the reference (`hops.engine.breakage`).
"""

# ruff: noqa: SIM110 (what is compiled loops plainly)

from hops.compiled import bare_kernel, kernel_part
from hops.engine.kernel_actions import arm_work, begin, wake, work_is_blocked
from hops.engine.kernel_links import rerate
from hops.engine.kernel_messages import arm_transfer, is_blocked, lose, next_transfer, send
from hops.engine.kernel_rows import lose_row
from hops.engine.records import (
    ALL_UP,
    AT,
    BUSY,
    BY_STOP,
    CAUSE,
    CAUSE_LINK,
    DOWN,
    DOWN_UNTIL,
    EDGE,
    EDGE_TIMER,
    FAULT,
    ITEMS_LOW,
    LEADER,
    LEFT,
    LINK_BREAKS,
    LINK_CHANGES,
    LINK_DOWN,
    MOVING,
    NONE,
    PLACE,
    PLACES,
    RANK_BREAKS,
    RANK_RETURNS,
    ROW,
    SINCE,
    TASK,
    TIED_REDUCE,
    TRAILING,
    UNTIL,
    WAITING,
    WAITS,
    WHAT,
    WHICH,
    Drawn,
    Rows,
    State,
    Tables,
    Windows,
)  # fmt: skip
from hops.engine.timers import set_timer, unset


@bare_kernel
def await_edge(windows: Windows, state: State) -> None:
    """Wait for the next moment at which things break or return."""
    edge = state.clock[EDGE]
    if edge < len(windows.edges) - 1:
        set_timer(state.timers, state.clock, len(state.ranks) + EDGE_TIMER, windows.edges[edge, AT], FAULT)


@bare_kernel
def leads(tables: Tables, state: State, rank: int) -> bool:
    """Whether a rank is at work. Of the two at the tied reduction, only the first in number counts."""
    task = state.ranks[rank, TASK]
    return task != NONE and (task != TIED_REDUCE or rank == min(tables.tied_first, tables.tied_last))


@kernel_part
def lose_work(state: State, rows: Rows, leader: int) -> None:
    """Work under way is lost; it waits to be begun again."""
    ranks, clock = state.ranks, state.clock
    unset(state.timers, clock, leader)
    for row in range(ranks[leader, ROW], ranks[leader, ROW] + (2 if ranks[leader, TASK] == TIED_REDUCE else 1)):
        lose_row(rows, clock, row)
    ranks[leader, SINCE] = WAITS


@kernel_part
def lose_all(tables: Tables, state: State, rows: Rows, over: bool) -> None:
    """What needs something that is down is lost, and waits; if the job is over, everything is lost."""
    ranks, transfers, waited_before = state.ranks, state.transfers, state.clock[PLACES]
    transfer = next_transfer(state, NONE, MOVING, TRAILING)
    while transfer != NONE:
        place = transfers[transfer, PLACE]
        if over or is_blocked(tables, state, transfer):
            lose(tables, state, rows, transfer)
            if not over:
                arm_transfer(tables, state, transfer)
        transfer = next_transfer(state, place, MOVING, TRAILING)
    transfer = NONE if over else next_transfer(state, NONE, WAITING, WAITING)
    while transfer != NONE and transfers[transfer, PLACE] < waited_before:
        arm_transfer(tables, state, transfer)
        transfer = next_transfer(state, transfers[transfer, PLACE], WAITING, WAITING)
    for rank in range(len(ranks)):
        if leads(tables, state, rank):
            leader = ranks[rank, LEADER]
            if ranks[leader, SINCE] != WAITS and (over or work_is_blocked(tables, state, leader)):
                lose_work(state, rows, leader)
            if not over:
                arm_work(tables, state, leader)


@kernel_part
def resume(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows) -> None:
    """What waits and is no longer held up goes on."""
    ranks = state.ranks
    for rank in range(len(ranks)):
        if leads(tables, state, rank):
            leader = ranks[rank, LEADER]
            if ranks[leader, SINCE] == WAITS and not work_is_blocked(tables, state, leader):
                begin(tables, drawn, windows, state, rows, leader)
    transfer = next_transfer(state, NONE, WAITING, WAITING)
    while transfer != NONE:
        place = state.transfers[transfer, PLACE]
        send(tables, drawn, state, rows, transfer)
        transfer = next_transfer(state, place, WAITING, WAITING)


@kernel_part
def is_all_up(state: State) -> bool:
    """Whether no rank and no link is down."""
    for rank in range(len(state.ranks)):
        if state.ranks[rank, DOWN]:
            return False
    for link in range(len(state.links)):
        if state.links[link, LINK_DOWN]:
            return False
    return True


@kernel_part
def happen(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows) -> None:
    """Things break, change and return at this moment, in this order; then what that hits is lost, or goes on."""
    clock, ranks, links, items = state.clock, state.ranks, state.links, windows.items
    edge = clock[EDGE]
    clock[EDGE] += 1
    at, high = windows.edges[edge, ITEMS_LOW], windows.edges[edge + 1, ITEMS_LOW]
    if tables.until_stop and at < high and items[at, WHAT] == RANK_BREAKS:
        clock[CAUSE], clock[CAUSE_LINK] = BY_STOP, NONE
        return
    low = at
    while at < high and items[at, WHAT] <= LINK_BREAKS:
        if items[at, WHAT] == RANK_BREAKS:
            ranks[items[at, WHICH], DOWN] = ranks[items[at, WHICH], BUSY] = 1
        else:
            links[items[at, WHICH], LINK_DOWN], links[items[at, WHICH], DOWN_UNTIL] = 1, items[at, UNTIL]
        at += 1
    if at > low:
        clock[ALL_UP] = 0
        lose_all(tables, state, rows, False)
    while at < high and items[at, WHAT] == LINK_CHANGES:
        link = items[at, WHICH]
        state.rates[link] = tables.full[link] * windows.parts[at]
        rerate(tables, state, link, link + 1)
        at += 1
    low = at
    while at < high:
        which = items[at, WHICH]
        if items[at, WHAT] == RANK_RETURNS:
            ranks[which, DOWN] = 0
            ranks[which, BUSY] = 1 if ranks[which, TASK] != NONE and not ranks[which, LEFT] else 0
            wake(state, which)
        else:
            links[which, LINK_DOWN] = 0
        at += 1
    clock[ALL_UP] = 1 if is_all_up(state) else 0
    if at > low:
        resume(tables, drawn, windows, state, rows)
    await_edge(windows, state)
