"""Messages of the compiled engine: offered, sent, held up, lost, delivered; overlapped or as a rendezvous.

The order of everything is that of the reference (`hops.engine.transport`).
"""

from hops.compiled import bare_kernel, kernel_part
from hops.engine.kernel_actions import arm, is_cut, next_receiver, wake
from hops.engine.kernel_links import join, leave
from hops.engine.kernel_rows import close_row, lose_row, open_row
from hops.engine.records import (
    ACTION_OF,
    ALL_UP,
    ARRIVED,
    BRING,
    BUSY,
    DELAY_BY_ACTION,
    DOING,
    DOWN,
    FEEDER,
    FIRST_TRANSFER,
    FOLLOWING,
    FREE,
    IN_USE,
    ITERATION,
    ITERATION_OF,
    KIND,
    LAST_OFFER,
    MARKED,
    MESSAGE,
    MICROBATCH,
    MOVING,
    NEED,
    NONE,
    NOW,
    OFFERED,
    OFFERS,
    OUTSTANDING,
    OWNER,
    PLACE,
    PLACES,
    POSITION,
    POST_AT,
    POST_MESSAGE,
    POSTED,
    POSTS_HIGH,
    POSTS_LOW,
    REACH,
    ROUTE_HIGH,
    ROUTE_LOW,
    ROW_OF,
    SHARED_HIGH,
    SHARED_LOW,
    SIZE_BY_ACTION,
    TARGET,
    TRAILING,
    WAITING,
    WANTED,
    Drawn,
    Rows,
    State,
    Tables,
)  # fmt: skip
from hops.engine.timers import set_timer, unset


@bare_kernel
def do_next(state: State, transfer: int, doing: int) -> None:
    """What a transfer does from now on; it comes after those that did so before."""
    state.transfers[transfer, DOING] = doing
    state.transfers[transfer, PLACE] = state.clock[PLACES]
    state.clock[PLACES] += 1


@bare_kernel
def deliver(tables: Tables, state: State, rows: Rows, transfer: int) -> None:
    """A message is there: the receiver, if it is idle, decides; after a rendezvous both ends are free."""
    transfers, ranks, clock = state.transfers, state.ranks, state.clock
    close_row(rows, clock, transfers[transfer, ROW_OF])
    action = transfers[transfer, ACTION_OF]
    kind = tables.actions[KIND, action]
    state.messages[ARRIVED + (transfers[transfer, ITERATION_OF] & 1), tables.actions[BRING, action]] = 1
    transfers[transfer, DOING] = NONE
    transfers[transfer, FOLLOWING] = clock[FREE]
    clock[FREE] = transfer
    clock[IN_USE] -= 1
    target = tables.kinds[kind, TARGET]
    if not ranks[target, BUSY]:
        wake(state, target)
    if tables.blocking:
        for end in (OWNER, TARGET):
            rank = tables.kinds[kind, end]
            ranks[rank, OUTSTANDING] -= 1
            if not ranks[rank, OUTSTANDING]:
                wake(state, rank)


@bare_kernel
def trail(tables: Tables, drawn: Drawn, state: State, rows: Rows, transfer: int) -> None:
    """No byte of a message is on a link any more: what is left is its latency."""
    action, slot = state.transfers[transfer, ACTION_OF], state.transfers[transfer, ITERATION_OF] & 1
    delay = drawn.delay[slot, action if drawn.once[slot, DELAY_BY_ACTION] else tables.actions[KIND, action]]
    if delay == 0:
        deliver(tables, state, rows, transfer)
        return
    state.transfers[transfer, DOING] = TRAILING
    timer = len(state.ranks) + FIRST_TRANSFER + transfer
    set_timer(state.timers, state.clock, timer, state.clock[NOW] + delay, 0)


@bare_kernel
def is_blocked(tables: Tables, state: State, transfer: int) -> bool:
    """Whether the sender, the receiver or a link between them is down."""
    kind = tables.actions[KIND, state.transfers[transfer, ACTION_OF]]
    ends = tables.kinds
    if state.ranks[ends[kind, OWNER], DOWN] or state.ranks[ends[kind, TARGET], DOWN]:
        return True
    return is_cut(tables, state, ends[kind, ROUTE_LOW], ends[kind, ROUTE_HIGH])


@bare_kernel
def arm_transfer(tables: Tables, state: State, transfer: int) -> None:
    """Let the job fail if a link of its route is down for too long."""
    kind = tables.actions[KIND, state.transfers[transfer, ACTION_OF]]
    timer = len(state.ranks) + FIRST_TRANSFER + transfer
    arm(tables, state, timer, tables.kinds[kind, ROUTE_LOW], tables.kinds[kind, ROUTE_HIGH])


@bare_kernel
def send(tables: Tables, drawn: Drawn, state: State, rows: Rows, transfer: int) -> None:
    """Send a message that waits, unless something on its way is down."""
    transfers, clock = state.transfers, state.clock
    if not clock[ALL_UP] and is_blocked(tables, state, transfer):
        arm_transfer(tables, state, transfer)
        return
    do_next(state, transfer, MOVING)
    action = transfers[transfer, ACTION_OF]
    kind = tables.actions[KIND, action]
    slot = transfers[transfer, ITERATION_OF] & 1
    size = drawn.size[slot, action if drawn.once[slot, SIZE_BY_ACTION] else kind]
    transfers[transfer, ROW_OF] = open_row(
        rows, clock, transfers[transfer, ITERATION_OF], tables.kinds[kind, OWNER], MESSAGE, kind >> 2, kind & 3,
        tables.actions[MICROBATCH, action], tables.kinds[kind, TARGET], size,
    )  # fmt: skip
    if size and tables.kinds[kind, SHARED_LOW] < tables.kinds[kind, SHARED_HIGH]:
        join(tables, state, transfer, size)
    else:
        trail(tables, drawn, state, rows, transfer)


@kernel_part
def on_time(tables: Tables, drawn: Drawn, state: State, rows: Rows, transfer: int) -> None:
    """The timer of a transfer goes off: its last byte has left, or it is there."""
    if state.transfers[transfer, DOING] == MOVING:
        leave(tables, state, transfer)
        trail(tables, drawn, state, rows, transfer)
    else:
        deliver(tables, state, rows, transfer)


@bare_kernel
def lose(tables: Tables, state: State, rows: Rows, transfer: int) -> None:
    """A message under way is lost; it waits to be sent again."""
    unset(state.timers, state.clock, len(state.ranks) + FIRST_TRANSFER + transfer)
    if state.transfers[transfer, DOING] == MOVING:
        leave(tables, state, transfer)
    lose_row(rows, state.clock, state.transfers[transfer, ROW_OF])
    do_next(state, transfer, WAITING)


@bare_kernel
def next_transfer(state: State, after: int, low: int, high: int) -> int:
    """The first transfer behind place `after` that does something from `low` to `high`; NONE: there is none."""
    transfers, found = state.transfers, NONE
    for transfer in range(state.clock[REACH]):
        doing, place = transfers[transfer, DOING], transfers[transfer, PLACE]
        if low <= doing <= high and place > after and (found == NONE or place < transfers[found, PLACE]):
            found = transfer
    return found


# Rendezvous


@bare_kernel
def match(tables: Tables, drawn: Drawn, state: State, rows: Rows, rank: int) -> None:
    """Start the transfers to `rank` that both sides have posted."""
    ranks, transfers = state.ranks, state.transfers
    before, offer = NONE, ranks[rank, OFFERS]
    while offer != NONE:
        behind = transfers[offer, FOLLOWING]
        wanted = WANTED + (transfers[offer, ITERATION_OF] & 1)
        message = tables.actions[BRING, transfers[offer, ACTION_OF]]
        if not state.messages[wanted, message] and not tables.all_directions:
            before, offer = offer, behind
            continue
        if state.messages[wanted, message]:
            state.messages[wanted, message] = 0
        else:
            ranks[rank, OUTSTANDING] += 1
        if before == NONE:
            ranks[rank, OFFERS] = behind
        else:
            transfers[before, FOLLOWING] = behind
        if behind == NONE:
            ranks[rank, LAST_OFFER] = before
        do_next(state, offer, WAITING)
        send(tables, drawn, state, rows, offer)
        offer = behind


@bare_kernel
def want(tables: Tables, drawn: Drawn, state: State, rows: Rows, rank: int, message: int) -> None:
    """Post a receive; the rank is busy until it is there."""
    state.messages[WANTED + (state.ranks[rank, ITERATION] & 1), message] = 1
    state.ranks[rank, OUTSTANDING] += 1
    match(tables, drawn, state, rows, rank)


@kernel_part
def post_receives(tables: Tables, drawn: Drawn, state: State, rows: Rows, rank: int) -> None:
    """Post the receives that are due when the rank gets to its next action."""
    ranks, low = state.ranks, tables.of_rank[rank, POSTS_LOW]
    while low + ranks[rank, POSTED] < tables.of_rank[rank, POSTS_HIGH]:
        post = low + ranks[rank, POSTED]
        if tables.posts[POST_AT, post] > ranks[rank, POSITION]:
            return
        ranks[rank, POSTED] += 1
        if tables.blocking:
            want(tables, drawn, state, rows, rank, tables.posts[POST_MESSAGE, post])
            continue
        state.messages[WANTED + (ranks[rank, ITERATION] & 1), tables.posts[POST_MESSAGE, post]] = 1
        match(tables, drawn, state, rows, rank)


@kernel_part
def offer_output(tables: Tables, drawn: Drawn, state: State, rows: Rows, transfer: int) -> None:
    """Post a send, and with it the receive from the same peer that is fused with it."""
    ranks, transfers, kinds = state.ranks, state.transfers, tables.kinds
    kind = tables.actions[KIND, transfers[transfer, ACTION_OF]]
    source, target = kinds[kind, OWNER], kinds[kind, TARGET]
    if tables.blocking:
        ranks[source, OUTSTANDING] += 1
    if tables.fused and not tables.all_directions:
        action = next_receiver(tables, state, source)
        if action != NONE and kinds[tables.actions[KIND, action], FEEDER] == target:
            want(tables, drawn, state, rows, source, tables.actions[NEED, action])
    transfers[transfer, DOING] = OFFERED
    last = ranks[target, LAST_OFFER]
    if last == NONE:
        ranks[target, OFFERS] = transfer
    else:
        transfers[last, FOLLOWING] = transfer
    ranks[target, LAST_OFFER] = transfer
    match(tables, drawn, state, rows, target)


@kernel_part
def pass_on(tables: Tables, drawn: Drawn, state: State, rows: Rows, rank: int, action: int) -> None:
    """Give an action's output to the rank that needs it."""
    if tables.actions[BRING, action] == NONE:
        return
    transfers, clock = state.transfers, state.clock
    transfer = clock[FREE]
    clock[FREE] = transfers[transfer, FOLLOWING]
    clock[IN_USE] += 1
    clock[REACH] = max(clock[REACH], transfer + 1)
    transfers[transfer, ACTION_OF], transfers[transfer, ITERATION_OF] = action, state.ranks[rank, ITERATION]
    transfers[transfer, FOLLOWING] = transfers[transfer, MARKED] = NONE
    if tables.blocking or tables.posted:
        offer_output(tables, drawn, state, rows, transfer)
    else:
        do_next(state, transfer, WAITING)
        send(tables, drawn, state, rows, transfer)
