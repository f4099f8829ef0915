"""A device's clock: actions follow each other on it without gaps, whatever the software around them takes.

A real device is given work ahead of time, so that the host's own delays vanish behind what runs. Here a rank sleeps
until its action is over by this clock, and the next begins then, although the process wakes up a little later. Delays
are made up for as long as they are shorter than what follows. An action whose process comes to it more than TOLERANCE
after its time is over is late: then the clock is set to the present, and the iteration is not clean.
"""

import time
from collections.abc import Callable

TOLERANCE_NS = 2_000_000


class DeviceClock:
    """Nanoseconds of the machine's monotonic clock, which all its processes share."""

    def __init__(self, now: Callable[[], int] = time.monotonic_ns, sleep: Callable[[float], None] = time.sleep) -> None:
        self._now, self._sleep = now, sleep
        self.free_ns = 0  # when the last action ended
        self.next_ns = 0  # when the next may begin: then the host has prepared it
        self.woke_ns = 0  # when the process had done the last action
        self.late = 0
        self.worst_ns = 0

    def begin(self, start_ns: int) -> None:
        """Start an iteration at that time; the clock is free from then on."""
        self.free_ns = self.next_ns = start_ns
        self.late = self.worst_ns = 0

    def end(self) -> None:
        """End the iteration: no action follows that could make up for a last one that was done too late."""
        behind = self.woke_ns - self.free_ns
        self.worst_ns = max(self.worst_ns, behind)
        self.late += behind > TOLERANCE_NS

    def run(self, ready_ns: int, duration_ns: int, host_ns: int = 0) -> tuple[int, int]:
        """Run an action whose input is there at `ready_ns`; gives its start and end on this clock.

        `host_ns`: for how long the next one cannot begin after it.
        """
        start = max(self.next_ns, ready_ns)
        end = start + duration_ns
        behind = self._now() - end
        if behind < 0:
            self._sleep(-behind * 1e-9)
        self.worst_ns = max(self.worst_ns, behind)
        if behind > TOLERANCE_NS:
            self.late += 1
            end += behind
        self.free_ns, self.next_ns, self.woke_ns = end, end + host_ns, self._now()
        return start, end
