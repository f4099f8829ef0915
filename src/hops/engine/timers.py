"""The compiled engine's event queue: a heap of timers, each with at most one event, that can be moved and taken out."""

from hops.compiled import bare_kernel
from hops.engine.records import EVENTS, NONE, ORDER, SEQUENCE, STANDS_AT, TIME, TIMER, Ints


@bare_kernel
def put(heap: Ints, size: int, at: int, time: int, order: int, timer: int) -> None:
    """Put an event where it belongs, from `at` up or down."""
    while at > 0:  # up, while it is earlier than its parent
        parent = (at - 1) >> 1
        if heap[parent, TIME] < time or (heap[parent, TIME] == time and heap[parent, ORDER] < order):
            break
        heap[at, TIME], heap[at, ORDER], heap[at, TIMER] = heap[parent, TIME], heap[parent, ORDER], heap[parent, TIMER]
        heap[heap[at, TIMER], STANDS_AT] = at
        at = parent
    while True:  # down, while a child is earlier
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            heap[other, TIME] < heap[child, TIME]
            or (heap[other, TIME] == heap[child, TIME] and heap[other, ORDER] < heap[child, ORDER])
        ):
            child = other
        if time < heap[child, TIME] or (time == heap[child, TIME] and order < heap[child, ORDER]):
            break
        heap[at, TIME], heap[at, ORDER], heap[at, TIMER] = heap[child, TIME], heap[child, ORDER], heap[child, TIMER]
        heap[heap[at, TIMER], STANDS_AT] = at
        at = child
    heap[at, TIME], heap[at, ORDER], heap[at, TIMER] = time, order, timer
    heap[timer, STANDS_AT] = at


@bare_kernel
def set_timer(heap: Ints, clock: Ints, timer: int, time: int, late: int) -> None:
    """Let a timer go off at `time`, instead of when it was to go off before. `late`: 0, or FAULT."""
    clock[SEQUENCE] += 1
    at = heap[timer, STANDS_AT]
    if at == NONE:
        at = clock[EVENTS]
        clock[EVENTS] += 1
    put(heap, clock[EVENTS], at, time, late + clock[SEQUENCE], timer)


@bare_kernel
def unset(heap: Ints, clock: Ints, timer: int) -> None:
    """Let a timer not go off."""
    at = heap[timer, STANDS_AT]
    if at == NONE:
        return
    heap[timer, STANDS_AT] = NONE
    clock[EVENTS] -= 1
    last = clock[EVENTS]
    if at < last:
        put(heap, last, at, heap[last, TIME], heap[last, ORDER], heap[last, TIMER])
