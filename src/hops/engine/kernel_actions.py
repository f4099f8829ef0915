"""Ranks of the compiled engine: they take actions, spend time on them, and go through the end of an iteration.

The order of everything is that of the reference (`hops.engine.reference`), so that both write the same trace.
"""

# ruff: noqa: PLR1714, SIM102, SIM109, SIM110 (what is compiled compares and loops plainly)
# mypy: disable-error-code="no-any-return"

import numpy as np

from hops.compiled import bare_kernel, kernel_part
from hops.engine.kernel_rows import open_row
from hops.engine.records import (
    ACTION,
    ALL_UP,
    ARRIVED,
    AT_END,
    AT_GONE,
    AT_NORM,
    AT_TIED,
    AWAKE,
    BATCH,
    BEHIND_LAST,
    BRING,
    BUSY,
    BY_TIMEOUT,
    CAUSE,
    CAUSE_LINK,
    CAUSE_TIMER,
    CLOSES,
    COLLECTIVE,
    COMPUTE,
    DOWN,
    DOWN_UNTIL,
    DURATION_BY_ACTION,
    END_HIGH,
    END_LOW,
    ENDLESS,
    ENTERED,
    FAULT,
    FIRST,
    GONE,
    GRAD_NS,
    GRAD_REDUCE,
    HOST,
    HOST_NS,
    HOST_STREAM,
    ITERATION,
    KIND,
    LEADER,
    LEFT,
    LINK_DOWN,
    MICROBATCH,
    NEED,
    NONE,
    NOW,
    OP_W,
    OPENS,
    OPENS_COUPLE,
    OPTIMIZER,
    OPTIMIZER_NS,
    PAIR,
    PAUSE,
    POSITION,
    POSTED,
    ROW,
    SINCE,
    SINGLE,
    SYNCHRONIZED,
    TASK,
    TIED_NS,
    TIED_REDUCE,
    TIME_OUT,
    TIMEOUT_TIMER,
    WAITS,
    WOKEN,
    WOKEN_EVEN,
    Drawn,
    Rows,
    State,
    Tables,
    Windows,
)  # fmt: skip
from hops.engine.timers import set_timer


@bare_kernel
def wake(state: State, rank: int) -> None:
    """Let the rank decide at this instant, after everything else."""
    clock, ranks = state.clock, state.ranks
    if not ranks[rank, AWAKE]:
        ranks[rank, AWAKE] = 1
        ranks[clock[WOKEN], WOKEN_EVEN + clock[BATCH]] = rank
        clock[WOKEN] += 1


# Work: an action, or a part of an iteration's end


@kernel_part
def slowed_end(tables: Tables, windows: Windows, state: State, leader: int, start: int, length: int) -> int:
    """When work ends that goes at the slowest of the paces of its ranks and links at each instant.

    The integral of 1/factor from start to end is the length; the end is rounded to the nearest nanosecond.
    """
    num_ranks, task = len(state.ranks), state.ranks[leader, TASK]
    workers = 2 if task == TIED_REDUCE else 1
    row = num_ranks if task == TIED_REDUCE else leader
    links_low = tables.of_rank[row, END_LOW]
    links = tables.of_rank[row, END_HIGH] - links_low if task == TIED_REDUCE or task == GRAD_REDUCE else 0
    now, left = start, float(length)
    while True:
        factor, until = 0.0, ENDLESS
        for each in range(workers + links):
            if each >= workers:
                target = num_ranks + tables.crossed[links_low + each - workers]
            elif workers == 1:
                target = leader
            else:
                target = tables.tied_first if each == 0 else tables.tied_last
            low, high = windows.pace_low[target], windows.pace_low[target + 1]
            if low == high:
                continue  # it is never slow
            behind = high
            while high - low > 1:  # the last pace that holds by now
                middle = (low + high) >> 1
                if windows.pace_since[middle] <= now:
                    low = middle
                else:
                    high = middle
            factor = max(factor, windows.pace_factor[low])
            if low + 1 < behind:
                until = min(until, windows.pace_since[low + 1])
        if factor == 0.0:
            return start + length
        if left * factor <= until - now:
            return now + int(np.rint(left * factor))
        left -= (until - now) / factor
        now = until


@bare_kernel
def is_cut(tables: Tables, state: State, low: int, high: int) -> bool:
    """Whether one of the links (a range of `crossed`) is down."""
    for at in range(low, high):
        if state.links[tables.crossed[at], LINK_DOWN]:
            return True
    return False


@bare_kernel
def work_is_blocked(tables: Tables, state: State, leader: int) -> bool:
    """Whether a rank or a link that work needs is down."""
    ranks = state.ranks
    task, row = ranks[leader, TASK], leader
    if task == TIED_REDUCE:
        row = len(ranks)
        if ranks[tables.tied_first, DOWN] or ranks[tables.tied_last, DOWN]:
            return True
    if task == TIED_REDUCE or task == GRAD_REDUCE:
        if is_cut(tables, state, tables.of_rank[row, END_LOW], tables.of_rank[row, END_HIGH]):
            return True
    return ranks[leader, DOWN] == 1


@bare_kernel
def arm(tables: Tables, state: State, timer: int, low: int, high: int) -> None:
    """Let the job fail if one of these links stays down for longer than the transport of what waits for it does.

    What is armed fails for certain, since it cannot start while its link is down; so the earliest is all there is.
    """
    clock = state.clock
    at_ns = clock[NOW] + tables.timeout_ns
    if tables.timeout_ns == NONE or (clock[CAUSE] == BY_TIMEOUT and clock[TIME_OUT] <= at_ns):
        return
    first = NONE
    for at in range(low, high):
        link = tables.crossed[at]
        stays = state.links[link, LINK_DOWN] and state.links[link, DOWN_UNTIL] > at_ns
        if stays and (first == NONE or link < first):
            first = link
    if first != NONE:
        clock[CAUSE], clock[CAUSE_LINK], clock[CAUSE_TIMER], clock[TIME_OUT] = BY_TIMEOUT, first, timer, at_ns
        set_timer(state.timers, clock, len(state.ranks) + TIMEOUT_TIMER, at_ns, FAULT)


@bare_kernel
def arm_work(tables: Tables, state: State, leader: int) -> None:
    """The same for the links that work crosses."""
    task = state.ranks[leader, TASK]
    if task == TIED_REDUCE or task == GRAD_REDUCE:
        row = len(state.ranks) if task == TIED_REDUCE else leader
        arm(tables, state, leader, tables.of_rank[row, END_LOW], tables.of_rank[row, END_HIGH])


@bare_kernel
def begin(tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows, leader: int) -> None:
    """Start a rank's work, or let it wait for what is down. The tied reduction is the work of two, led by one."""
    ranks, clock = state.ranks, state.clock
    if not clock[ALL_UP] and work_is_blocked(tables, state, leader):
        arm_work(tables, state, leader)
        return
    now, task, number = clock[NOW], ranks[leader, TASK], ranks[leader, ITERATION]
    slot = number & 1
    stream, stage, microbatch, peer = COLLECTIVE, NONE, NONE, NONE
    if task <= OP_W:
        action = ranks[leader, ACTION]
        kind, microbatch = tables.actions[KIND, action], tables.actions[MICROBATCH, action]
        stage = kind >> 2
        if tables.paired and SINGLE < tables.actions[PAIR, action] <= CLOSES:
            peer = leader
        stream = COMPUTE
        length = drawn.duration[slot, action if drawn.once[slot, DURATION_BY_ACTION] else kind]
    elif task == OPTIMIZER:
        stream = COMPUTE
        length = drawn.ends[slot, OPTIMIZER_NS, leader]
    elif task == HOST:
        stream = HOST_STREAM
        length = drawn.once[slot, HOST_NS]
    elif task == GRAD_REDUCE:
        length = drawn.ends[slot, GRAD_NS, leader]
    else:
        length = drawn.once[slot, TIED_NS]
    row = open_row(rows, clock, number, leader, stream, stage, task, microbatch, peer, 0)
    if task == TIED_REDUCE:
        other = tables.tied_first + tables.tied_last - leader
        open_row(rows, clock, number, other, stream, stage, task, microbatch, NONE, 0)
    ranks[leader, SINCE], ranks[leader, ROW] = now, row
    end = now + length
    if len(windows.pace_since):
        end = slowed_end(tables, windows, state, leader, now, length)
    set_timer(state.timers, clock, leader, end, 0)


@bare_kernel
def start(
    tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows, rank: int, action: int
) -> None:  # fmt: skip
    """Take an action and begin it now."""
    ranks = state.ranks
    ranks[rank, BUSY] = 1
    ranks[rank, POSITION] = action + 1
    ranks[rank, ACTION] = action
    ranks[rank, TASK], ranks[rank, LEADER], ranks[rank, SINCE] = tables.actions[KIND, action] & 3, rank, WAITS
    begin(tables, drawn, windows, state, rows, rank)


@bare_kernel
def opens_pair(tables: Tables, action: int) -> bool:
    """Whether an action is the first of a pair, or of a couple between calls."""
    if not tables.paired:
        return False
    return tables.actions[PAIR, action] == OPENS or tables.actions[PAIR, action] == OPENS_COUPLE


@kernel_part
def missing(tables: Tables, state: State, rank: int, action: int) -> int:
    """The message that an action (a pair: one of both) still waits for; NONE: it can start."""
    arrived = ARRIVED + (state.ranks[rank, ITERATION] & 1)
    need = tables.actions[NEED, action]
    if need != NONE and not state.messages[arrived, need]:
        return need
    if opens_pair(tables, action):
        need = tables.actions[NEED, action + 1]
        if need != NONE and not state.messages[arrived, need]:
            return need
    return NONE


@kernel_part
def next_receiver(tables: Tables, state: State, rank: int) -> int:
    """The action for which the rank receives a message before it sends again; NONE: there is none."""
    arrived, sends = ARRIVED + (state.ranks[rank, ITERATION] & 1), False
    for action in range(state.ranks[rank, POSITION], tables.of_rank[rank, BEHIND_LAST]):
        need = tables.actions[NEED, action]
        if need != NONE and not state.messages[arrived, need]:
            return action
        sends = sends or tables.actions[BRING, action] != NONE
        if sends and not opens_pair(tables, action):  # a pair takes the inputs of both before it sends
            return NONE
    return NONE


# The end of an iteration


@kernel_part
def go_on(tables: Tables, state: State, rank: int) -> None:
    """The rank is through with its iteration, and begins the next one."""
    clock, ranks, meeting = state.clock, state.ranks, state.meeting
    number = ranks[rank, ITERATION] + 1
    was, slot = 1 - (number & 1), number & 1
    meeting[was, AT_GONE] += 1
    if meeting[was, AT_GONE] == len(ranks):
        clock[GONE] += 1
        clock[PAUSE] = 1  # somebody may want to know
    if number == tables.iterations:
        return
    if clock[ENTERED] < number:  # it is the first to do so, and the iteration that was in this slot is over
        clock[ENTERED] = number
        clock[PAUSE] = 1  # it is to be drawn
        for message in range(state.messages.shape[1]):
            state.messages[ARRIVED + slot, message] = 0
        meeting[slot, AT_TIED] = NONE
        meeting[slot, AT_NORM] = meeting[slot, AT_END] = meeting[slot, AT_GONE] = 0
    ranks[rank, ITERATION] = number
    ranks[rank, POSITION] = tables.of_rank[rank, FIRST]
    ranks[rank, POSTED] = ranks[rank, LEFT] = 0
    wake(state, rank)


@bare_kernel
def end_iteration(
    tables: Tables, drawn: Drawn, windows: Windows, state: State, rows: Rows, rank: int, done: int
) -> None:  # fmt: skip
    """Go on at the end of an iteration until something takes time, or others are to be waited for.

    `done` is what the rank did last: an action, then GRAD_REDUCE, TIED_REDUCE, OPTIMIZER, HOST. Synchronized ranks meet
    before the last two, and then all go on.
    """
    ranks, meeting, once = state.ranks, state.meeting, drawn.once
    num_ranks, slot = len(ranks), ranks[rank, ITERATION] & 1
    while True:
        low, high = rank, rank + 1
        if done <= OP_W:
            part = GRAD_REDUCE
        elif done == GRAD_REDUCE:
            part = TIED_REDUCE
            if once[slot, TIED_NS] and (rank == tables.tied_first or rank == tables.tied_last):
                leader = meeting[slot, AT_TIED]
                if leader == NONE:
                    meeting[slot, AT_TIED] = rank
                    return
                ranks[rank, TASK], ranks[rank, LEADER] = part, leader
                low, high = leader, leader + 1
        elif done != HOST:
            part, place = (OPTIMIZER, AT_NORM) if done == TIED_REDUCE else (HOST, AT_END)
            meeting[slot, place] += 1
            if once[slot, SYNCHRONIZED]:
                if meeting[slot, place] < num_ranks:
                    return
                low, high = 0, num_ranks
        else:
            go_on(tables, state, rank)
            return
        at_once = 0  # how many it takes no time
        for each in range(low, high):
            if part == GRAD_REDUCE:
                length = drawn.ends[slot, GRAD_NS, each]
            elif part == OPTIMIZER:
                length = drawn.ends[slot, OPTIMIZER_NS, each]
            elif part == HOST:
                length = once[slot, HOST_NS]
            else:
                length = once[slot, TIED_NS] if ranks[rank, TASK] == TIED_REDUCE else 0
            if length:
                ranks[each, TASK], ranks[each, LEADER], ranks[each, SINCE] = part, each, WAITS
                begin(tables, drawn, windows, state, rows, each)
            elif part == HOST:
                go_on(tables, state, each)
            else:
                at_once += 1
        if at_once == 0:
            return
        if part == OPTIMIZER:
            meeting[slot, AT_END] += at_once - 1  # the last one is counted when it goes on
        done = part
