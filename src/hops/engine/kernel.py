"""The compiled engine: one loop over events, equal to the reference in every column of the trace.

A run pauses where Python has something to do (draw the next iteration, make room), and is called again to go on.
"""

from hops.compiled import bare_kernel, kernel_part
from hops.engine.kernel_actions import end_iteration, missing, opens_pair, start, wake
from hops.engine.kernel_faults import happen
from hops.engine.kernel_messages import on_time, pass_on, post_receives, want
from hops.engine.kernel_rows import close_row
from hops.engine.records import (
    ACTION,
    AWAKE,
    BATCH,
    BEHIND_LAST,
    BUSY,
    BY_STOP,
    CAUSE,
    DONE,
    EDGE_TIMER,
    ENDLESS,
    EVENTS,
    FIRST_TRANSFER,
    FULL,
    GONE,
    HELD,
    IN_USE,
    LEFT,
    NEXT_ITERATION,
    NONE,
    NOW,
    NUM_ROWS,
    OP_W,
    OPENS_COUPLE,
    OUTSTANDING,
    PAIR,
    PAUSE,
    POSITION,
    RESTING,
    ROW,
    STALLED,
    STOPPED,
    TASK,
    TIED_REDUCE,
    TIME,
    TIMER,
    TOO_SHORT,
    WOKEN,
    WOKEN_EVEN,
    Drawn,
    Rows,
    State,
    Tables,
    Windows,
)  # fmt: skip
from hops.engine.timers import set_timer, unset

ROWS_PER_RANK = 4  # more than one event opens, apart from messages that are sent again


@bare_kernel
def rest(tables: Tables, state: State, rank: int) -> None:
    """Let the rank's host take its time."""
    state.ranks[rank, RESTING] = 1
    set_timer(state.timers, state.clock, rank, state.clock[NOW] + tables.rest_ns, 0)


@kernel_part
def end_work(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows, rank: int) -> None:
    """The timer of a rank goes off: its work ends, and the rank goes on.

    An action passes its output on; the first of a pair waits with that for the second.
    """
    ranks, clock, task = state.ranks, state.clock, state.ranks[rank, TASK]
    if ranks[rank, RESTING]:
        ranks[rank, RESTING] = 0
        if ranks[rank, HELD] == NONE:
            wake(state, rank)
        else:
            start(tables, drawn, windows, state, rows, rank, ranks[rank, POSITION])
        return
    ranks[rank, TASK] = NONE
    close_row(rows, clock, ranks[rank, ROW])
    if task > OP_W:
        other = rank
        if task == TIED_REDUCE:
            other = tables.tied_first + tables.tied_last - rank
            ranks[other, TASK] = NONE
            close_row(rows, clock, ranks[rank, ROW] + 1)
        end_iteration(tables, drawn, windows, state, rows, rank, task)
        if other != rank:
            end_iteration(tables, drawn, windows, state, rows, other, task)
        return
    action = ranks[rank, ACTION]
    ranks[rank, BUSY] = 0
    if opens_pair(tables, action):
        ranks[rank, HELD] = action
        if tables.rest_ns and tables.actions[PAIR, action] == OPENS_COUPLE:
            rest(tables, state, rank)
        else:
            start(tables, drawn, windows, state, rows, rank, action + 1)
        return
    while action != NONE:
        pass_on(tables, drawn, state, rows, rank, action)
        action = ranks[rank, HELD]
        ranks[rank, HELD] = NONE
    if tables.rest_ns and ranks[rank, POSITION] < tables.of_rank[rank, BEHIND_LAST]:
        rest(tables, state, rank)
    else:
        wake(state, rank)


@kernel_part
def decide(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows, rank: int) -> None:
    """An idle rank starts what it can."""
    ranks = state.ranks
    if ranks[rank, BUSY] or ranks[rank, LEFT] or ranks[rank, RESTING]:
        return
    if tables.posted:
        post_receives(tables, drawn, state, rows, rank)
    if ranks[rank, OUTSTANDING]:
        return
    action = ranks[rank, POSITION]
    if action == tables.of_rank[rank, BEHIND_LAST]:
        ranks[rank, LEFT] = 1
        end_iteration(tables, drawn, windows, state, rows, rank, OP_W)
        return
    lacks = missing(tables, state, rank, action)
    if lacks == NONE:
        start(tables, drawn, windows, state, rows, rank, action)
    elif tables.blocking and not tables.posted:
        want(tables, drawn, state, rows, rank, lacks)


@kernel_part
def decide_all(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows) -> None:
    """Ranks that were woken at this instant decide; who is woken by that decides in the next round."""
    clock, ranks = state.clock, state.ranks
    batch, count = clock[BATCH], clock[WOKEN]
    clock[BATCH], clock[WOKEN] = 1 - batch, 0
    for at in range(count):
        rank = ranks[at, WOKEN_EVEN + batch]
        ranks[rank, AWAKE] = 0
        decide(tables, drawn, windows, state, rows, rank)


@bare_kernel
def run_events(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows) -> int:
    """Go on until the end, or until something is up to the caller.

    Returns DONE; STALLED if ranks wait with nothing left to happen; STOPPED by a fault (`clock[CAUSE]` says how);
    FULL if rows or transfers need more room; NEXT_ITERATION if one has ended or begun; TOO_SHORT if the run reaches
    beyond the horizon of `windows`, and has to be begun anew with more of them.
    """
    clock, heap = state.clock, state.timers
    first_fault = len(state.ranks)
    first_transfer = first_fault + FIRST_TRANSFER
    room, places = rows.longs.shape[1] - ROWS_PER_RANK * len(state.ranks) - 2, len(state.transfers) - 2
    clock[PAUSE] = 0
    while clock[GONE] < tables.iterations:
        if clock[PAUSE]:
            return NEXT_ITERATION
        sent_again = clock[IN_USE] if len(windows.edges) > 1 else 0
        if clock[NUM_ROWS] + sent_again >= room or clock[IN_USE] >= places:
            return FULL
        if clock[EVENTS] and (clock[WOKEN] == 0 or heap[0, TIME] == clock[NOW]):
            if heap[0, TIME] > windows.horizon_ns:
                return TOO_SHORT
            clock[NOW] = heap[0, TIME]
            timer = heap[0, TIMER]
            unset(heap, clock, timer)
            if timer < first_fault:
                end_work(tables, drawn, windows, state, rows, timer)
            elif timer >= first_transfer:
                on_time(tables, drawn, state, rows, timer - first_transfer)
            elif timer == first_fault + EDGE_TIMER:
                happen(tables, drawn, windows, state, rows)
                if clock[CAUSE] == BY_STOP:
                    return STOPPED
            else:
                return STOPPED
        elif clock[WOKEN]:
            decide_all(tables, drawn, windows, state, rows)
        else:
            return STALLED if windows.horizon_ns >= ENDLESS else TOO_SHORT
    return DONE
