"""The arrays that the compiled engine works on: what a run is, what is drawn for it, what breaks, and where it stands.

Iterations overlap by at most one (a rank ends an iteration after all others have begun it), so what belongs to an
iteration has two slots, taken in turn: `number & 1`. Times are ns; NONE (-1) stands for nothing. An array per kind of
thing and a column (or a row) per quantity, named here, since the time to compile grows with the number of arrays.

Lengths: r ranks, a actions, k messages, n kinds (a stage's op: 4 * stage + op), l links, t transfers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hops.program.action import Op
from hops.trace.trace import Stream

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.int8]
Floats = NDArray[np.float64]

NONE = -1
WAITS = -1  # in place of a start: it waits for what is down
FAULT = 1 << 60  # sorts fault events behind all others of the same instant
ENDLESS = 1 << 62  # later than anything

# Ops and streams as plain integers, which kernels freeze into constants
OP_W, OPTIMIZER, TIED_REDUCE, GRAD_REDUCE, HOST = (
    int(op) for op in (Op.W, Op.OPTIMIZER, Op.TIED_REDUCE, Op.GRAD_REDUCE, Op.HOST)
)
COMPUTE, MESSAGE, COLLECTIVE, HOST_STREAM, LOST = (
    int(stream) for stream in (Stream.COMPUTE, Stream.MESSAGE, Stream.COLLECTIVE, Stream.HOST, Stream.LOST)
)

# What the kernel returns
DONE, STALLED, STOPPED, FULL, NEXT_ITERATION, TOO_SHORT = range(6)

# Tables.actions: rows
KIND, MICROBATCH, NEED, BRING, PAIR = range(5)
SINGLE, OPENS, CLOSES, OPENS_COUPLE, CLOSES_COUPLE = range(5)
# Tables.kinds: columns. LOW and HIGH are a range of `crossed`
OWNER, FEEDER, TARGET, SHARED_LOW, SHARED_HIGH, ROUTE_LOW, ROUTE_HIGH = range(7)
# Tables.of_rank: columns
FIRST, BEHIND_LAST, POSTS_LOW, POSTS_HIGH, END_LOW, END_HIGH = range(6)
# Tables.posts: rows
POST_AT, POST_MESSAGE = range(2)


class Tables(NamedTuple):
    """What does not change during a run. Read-only.

    Attributes:
        actions: (4 or 5, a) rank after rank: KIND, MICROBATCH; the message that it waits for (NEED), and the one that
            its output is (BRING); where any is `paired`, whether it OPENS or CLOSES a PAIR, or a couple between calls.
        kinds: (n, 7) the rank of the stage, whose output it waits for and who gets its own (ranks; NONE: nobody, or
            itself); the links that that crosses, those of finite bandwidth and all.
        crossed: links: first all of them in order, then the ranges that LOW and HIGH point to.
        of_rank: (r + 1, 6) its actions; its posts; the links that its gradient reduction crosses. Last: those of the
            tied one.
        posts: (2, receives) rank after rank, the action that it gets to when it posts a receive, and the message;
            nothing unless messages are `posted`.
        full: (l,) bandwidth in bytes per ns; inf where it is not shared.
        most_hops: the most links of finite bandwidth that any output crosses, at least 1.
        tied_first, tied_last: the ranks of the first and the last stage.
        paired: whether any two actions are a pair; if none is, `actions` has no row PAIR (4 bytes per action).
        blocking, fused, all_directions, posted: how messages are sent (see `hops.engine.transport`).
        rest_ns: what the host takes between two entries of a rank.
        iterations: how many there are.
        until_stop: whether the first stop ends the run.
        timeout_ns: how long a transport waits for a link that is down; NONE: as long as it takes.
    """

    actions: Shorts
    kinds: Ints
    crossed: Ints
    of_rank: Ints
    posts: Shorts
    full: Floats
    most_hops: int
    tied_first: int
    tied_last: int
    paired: bool
    blocking: bool
    fused: bool
    all_directions: bool
    posted: bool
    rest_ns: int
    iterations: int
    until_stop: bool
    timeout_ns: int


# Drawn.ends: rows of a slot
GRAD_NS, OPTIMIZER_NS = range(2)
# Drawn.once: columns
TIED_NS, HOST_NS, SYNCHRONIZED, DURATION_BY_ACTION, DELAY_BY_ACTION, SIZE_BY_ACTION = range(6)


class Drawn(NamedTuple):
    """What is drawn for the two iterations that may be under way; the first index is the slot.

    Attributes:
        duration: (slots, n or a) of actions, by kind or by action.
        delay: (slots, n or a) latencies of the messages that they send, the same way.
        size: (slots, n or a) bytes of these messages, the same way.
        ends: (2, 2, r) how long gradient reduction and optimizer step take.
        once: (2, 6) how long the tied reduction and the host take, and how all this is to be read.
    """

    duration: Ints
    delay: Ints
    size: Ints
    ends: Ints
    once: Ints


# Windows.edges: columns
AT, ITEMS_LOW = range(2)
# Windows.items: columns, and what may happen to what `WHICH` says
WHAT, WHICH, UNTIL = range(3)
RANK_BREAKS, LINK_BREAKS, LINK_CHANGES, RANK_RETURNS, LINK_RETURNS = range(5)


class Windows(NamedTuple):
    """What breaks and returns until `horizon_ns`, by time. Read-only.

    Attributes:
        edges: (e + 1, 2) when things happen, and where in `items` they begin; in the order of what may happen.
        items: (i, 3) WHAT happens to WHICH rank or link; when it returns, for a link that breaks.
        parts: (i,) of its bandwidth that a link has from then on.
        pace_low: (r + l + 1,) where in the next two the paces of ranks, then links begin.
        pace_since, pace_factor: how many times longer everything takes from when on.
        horizon_ns: what happens later is not in here.
    """

    edges: Ints
    items: Ints
    parts: Floats
    pace_low: Ints
    pace_since: Ints
    pace_factor: Floats
    horizon_ns: int


# Rows: which row of which matrix a column of the trace is
ITERATION_ROW, RANK_ROW, STAGE_ROW, MICROBATCH_ROW, PEER_ROW, CLOSED_ROW = range(6)
STREAM_ROW, OP_ROW = range(2)
START_ROW, END_ROW, BYTES_ROW = range(3)


class Rows(NamedTuple):
    """The trace's columns in order of start, those of one type in one matrix, so that each is one piece of memory.

    END is NONE while a row is open, and where nothing became of it; CLOSED says which row ended first, second, ...
    """

    shorts: Shorts
    flags: Flags
    longs: Ints


# State.clock: numbers that have no better place
NOW, SEQUENCE, EVENTS, WOKEN, BATCH, NUM_ROWS, NUM_CLOSED, ENTERED, GONE, PAUSE = range(10)
FREE, IN_USE, REACH, PLACES, MARK, EDGE, ALL_UP, CAUSE, CAUSE_LINK, CAUSE_TIMER, TIME_OUT = range(10, 21)
NUM_CLOCK = 21
NO_CAUSE, BY_STOP, BY_TIMEOUT = range(3)
# State.timers: columns. One timer per rank, then these, then one per transfer
TIME, ORDER, TIMER, STANDS_AT = range(4)
EDGE_TIMER, TIMEOUT_TIMER, FIRST_TRANSFER = range(3)
# State.ranks: columns
BUSY, DOWN, LEFT, AWAKE, ITERATION, POSITION, HELD, TASK, ACTION, SINCE, ROW, LEADER = range(12)
OUTSTANDING, OFFERS, LAST_OFFER, RESTING, POSTED, WOKEN_EVEN = range(12, 18)
NUM_OF_RANK = 19
# State.transfers: columns; and what a transfer is doing
DOING, ACTION_OF, ITERATION_OF, ROW_OF, PLACE, FOLLOWING, MOVED_AT, MARKED = range(8)
OFFERED, WAITING, MOVING, TRAILING = range(4)  # posted | held up | its bytes move | its last byte is on its way
# State.moving: columns
BYTES_LEFT, RATE = range(2)
# State.hops: columns
BEFORE, BEHIND = range(2)
# State.links: columns
FIRST_HOP, LAST_HOP, COUNT, LINK_DOWN, DOWN_UNTIL = range(5)
# State.messages: rows, each for two slots
ARRIVED, WANTED = 0, 2
# State.meeting: columns
AT_TIED, AT_NORM, AT_END, AT_GONE = range(4)


class State(NamedTuple):
    """Where a run stands.

    Attributes:
        clock: (NUM_CLOCK,) numbers.
        timers: (r + 2 + t, 4) a heap of (TIME, ORDER) with the TIMER that goes off then; and for each timer where in
            the heap it STANDS_AT (NONE: it is not set).
        ranks: (r, 19) BUSY, DOWN, LEFT its iteration, AWAKE: will decide; the ITERATION and the POSITION of its next
            action; the action HELD back, which is the first of a pair; the op it is at (TASK) of which ACTION, SINCE
            when, in which ROW, and whose timer ends it (LEADER); blocking messages: transfers OUTSTANDING that it has
            posted or carries out, OFFERS to it; RESTING: its host is at work; how many receives it has POSTED; who was
            woken (not by rank, two columns in turn).
        transfers: (t, 8) messages that wait or are under way. PLACE: who began earlier to do what it does has a
            smaller one; FOLLOWING: the next offer to the same rank, or the next free place.
        moving: (t, 2) bytes that have not moved at MOVED_AT, and their rate in bytes per ns.
        hops: (t * most hops, 2) who is before and behind on a link, in order of joining; hop h of transfer t is
            t * most hops + h.
        links: (l, 5) the chain of hops on it; whether it is down, and until when.
        rates: (l,) bytes per ns that it has now.
        messages: (4, k) which have ARRIVED, which are WANTED (blocking messages: receives that are posted).
        meeting: (2 slots, 4) who waits for the tied reduction; how many are at the norm, at the end, and gone.
    """

    clock: Ints
    timers: Ints
    ranks: Ints
    transfers: Ints
    moving: Floats
    hops: Ints
    links: Ints
    rates: Floats
    messages: Flags
    meeting: Ints
