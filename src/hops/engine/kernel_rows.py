"""Rows of the compiled engine: opened when something starts, so they stand in order of start; settled at the end."""

# mypy: disable-error-code="no-any-return"

from hops.compiled import bare_kernel
from hops.engine.records import (
    BYTES_ROW,
    CLOSED_ROW,
    END_ROW,
    ITERATION_ROW,
    LOST,
    MESSAGE,
    MICROBATCH_ROW,
    NONE,
    NOW,
    NUM_CLOSED,
    NUM_ROWS,
    OP_ROW,
    PEER_ROW,
    RANK_ROW,
    STAGE_ROW,
    START_ROW,
    STREAM_ROW,
    Ints,
    Rows,
)  # fmt: skip


@bare_kernel
def open_row(
    rows: Rows, clock: Ints, iteration: int, rank: int, stream: int, stage: int, op: int, microbatch: int, peer: int,
    size: int,
) -> int:  # fmt: skip
    """Something starts now. Returns its row."""
    row = clock[NUM_ROWS]
    clock[NUM_ROWS] = row + 1
    shorts, longs = rows.shorts, rows.longs
    shorts[ITERATION_ROW, row] = iteration
    shorts[RANK_ROW, row] = rank
    shorts[STAGE_ROW, row] = stage
    shorts[MICROBATCH_ROW, row] = microbatch
    shorts[PEER_ROW, row] = peer
    rows.flags[STREAM_ROW, row] = stream
    rows.flags[OP_ROW, row] = op
    longs[START_ROW, row] = clock[NOW]
    longs[END_ROW, row] = NONE
    longs[BYTES_ROW, row] = size
    return row


@bare_kernel
def close_row(rows: Rows, clock: Ints, row: int) -> None:
    """It ends now."""
    rows.longs[END_ROW, row] = clock[NOW]
    rows.shorts[CLOSED_ROW, row] = clock[NUM_CLOSED]
    clock[NUM_CLOSED] += 1


@bare_kernel
def lose_row(rows: Rows, clock: Ints, row: int) -> None:
    """A fault throws it away. What started at this very moment leaves no row: it stays open."""
    if rows.longs[START_ROW, row] < clock[NOW]:
        if rows.flags[STREAM_ROW, row] != MESSAGE:
            rows.shorts[PEER_ROW, row] = NONE  # only what is done tells its pair
        rows.flags[STREAM_ROW, row] = LOST
        rows.longs[END_ROW, row] = clock[NOW]
        rows.shorts[CLOSED_ROW, row] = clock[NUM_CLOSED]
        clock[NUM_CLOSED] += 1


@bare_kernel
def copy_row(rows: Rows, source: int, to: int) -> None:
    """One row over another."""
    for column in range(len(rows.shorts)):
        rows.shorts[column, to] = rows.shorts[column, source]
    for column in range(len(rows.flags)):
        rows.flags[column, to] = rows.flags[column, source]
    for column in range(len(rows.longs)):
        rows.longs[column, to] = rows.longs[column, source]


@bare_kernel
def drop_open(rows: Rows, count: int) -> int:
    """Close up over rows of which nothing became. Returns how many are left."""
    kept = 0
    for row in range(count):
        if rows.longs[END_ROW, row] != NONE:
            if kept != row:
                copy_row(rows, row, kept)
            kept += 1
    return kept


@bare_kernel
def longest_tie(rows: Rows, count: int) -> int:
    """The most rows that start at one instant."""
    longest = since = 0
    for row in range(count):
        if rows.longs[START_ROW, row] != rows.longs[START_ROW, since]:
            since = row
        longest = max(longest, row + 1 - since)
    return longest


@bare_kernel
def is_before(rows: Rows, one: int, other: int) -> bool:
    """Order of rows of one start: end, rank, stream (lost work before lost messages), then which ended first."""
    longs, shorts, flags = rows.longs, rows.shorts, rows.flags
    if longs[END_ROW, one] != longs[END_ROW, other]:
        return longs[END_ROW, one] < longs[END_ROW, other]
    if shorts[RANK_ROW, one] != shorts[RANK_ROW, other]:
        return shorts[RANK_ROW, one] < shorts[RANK_ROW, other]
    if flags[STREAM_ROW, one] != flags[STREAM_ROW, other]:
        return flags[STREAM_ROW, one] < flags[STREAM_ROW, other]
    sent, other_sent = shorts[PEER_ROW, one] != NONE, shorts[PEER_ROW, other] != NONE
    if flags[STREAM_ROW, one] == LOST and sent != other_sent:
        return other_sent
    return shorts[CLOSED_ROW, one] < shorts[CLOSED_ROW, other]


@bare_kernel
def sort_tie(rows: Rows, since: int, length: int, order: Ints, spare: Ints) -> None:
    """Let `order` be the rows from `since` on, of one start, sorted by merging runs of 1, 2, 4, ... rows."""
    for at in range(length):
        order[at] = since + at
    width = 1
    while width < length:
        for low in range(0, length, 2 * width):
            middle, high = min(low + width, length), min(low + 2 * width, length)
            left, right = low, middle
            for at in range(low, high):
                if left < middle and (right >= high or not is_before(rows, order[right], order[left])):
                    spare[at] = order[left]
                    left += 1
                else:
                    spare[at] = order[right]
                    right += 1
        for at in range(length):
            order[at] = spare[at]
        width *= 2


@bare_kernel
def arrange_tie(rows: Rows, since: int, length: int, order: Ints, free: int) -> None:
    """Bring rows into `order`, cycle by cycle; row `free` is not in use."""
    for at in range(length):
        if order[at] == since + at:
            continue
        copy_row(rows, since + at, free)
        to = at
        while order[to] != since + at:
            source = order[to]
            copy_row(rows, source, since + to)
            order[to] = since + to
            to = source - since
        copy_row(rows, free, since + to)
        order[to] = since + to


@bare_kernel
def settle(rows: Rows, count: int, order: Ints, spare: Ints) -> None:
    """Sort rows, which stand by start, by (start, end, rank, stream). `order`, `spare`: as long as the longest tie."""
    starts = rows.longs
    since = 0
    while since < count:
        behind = since + 1
        in_order = True
        while behind < count and starts[START_ROW, behind] == starts[START_ROW, since]:
            in_order = in_order and is_before(rows, behind - 1, behind)
            behind += 1
        if not in_order:
            sort_tie(rows, since, behind - since, order, spare)
            arrange_tie(rows, since, behind - since, order, count)
        since = behind
