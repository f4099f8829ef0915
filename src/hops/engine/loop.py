"""One heap, one total order: FINISH, then FAULT, then DECIDE, then first scheduled first.

An event is (time in ns, order, handler, arguments). Deciding is not an event: handlers wake ranks, and woken
ranks decide when nothing else is left at that instant. So a rank sees everything that happened at `now`.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

_FAULT = 1 << 60  # sorts fault events behind all others of the same instant


class Loop:
    """The event loop. `decide` is called with each woken rank, once per waking."""

    __slots__ = ("_awake", "_heap", "_order", "_woken", "decide", "now")

    def __init__(self, num_ranks: int) -> None:
        self.now = 0
        self.decide: Callable[[int], None]
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self._woken: list[int] = []
        self._awake = bytearray(num_ranks)

    def at(self, time_ns: int, handler: Callable[..., None], *arguments: Any) -> None:
        """Call `handler(*arguments)` at `time_ns`, among the FINISH events of that instant."""
        self._order += 1
        heappush(self._heap, (time_ns, self._order, handler, arguments))

    def fault_at(self, time_ns: int, handler: Callable[..., None], *arguments: Any) -> None:
        """Call `handler(*arguments)` at `time_ns`, after the FINISH events of that instant."""
        self._order += 1
        heappush(self._heap, (time_ns, _FAULT + self._order, handler, arguments))

    def wake(self, rank: int) -> None:
        """Let the rank decide at this instant, after everything else."""
        if not self._awake[rank]:
            self._awake[rank] = 1
            self._woken.append(rank)

    def run(self) -> None:
        """Handle events until none is left and no rank is awake."""
        heap = self._heap
        while heap or self._woken:
            while heap and (heap[0][0] == self.now or not self._woken):
                self.now, _, handler, arguments = heappop(heap)
                handler(*arguments)
            woken, self._woken = self._woken, []
            for rank in woken:
                self._awake[rank] = 0
                self.decide(rank)
