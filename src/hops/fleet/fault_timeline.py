"""What is broken as time goes on: which faults last in which copy, and which devices are down until when."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from hops.faults.plan import Fault, FaultKind
from hops.fleet.fleet import Fleet, FleetFault, FleetPlan
from hops.fleet.recovery.base import Unit
from hops.fleet.state import NEVER, Stop

Uses = Callable[[Unit], bool]


class FaultTimeline:
    """Goes through a plan in order of time.

    Stops are told from all other faults, which last and slow their copy down. With `awaits_return` stops are such
    faults, too.
    """

    def __init__(self, plan: FleetPlan, fleet: Fleet, *, end_ns: int, awaits_return: bool) -> None:
        self.lasting: dict[int, list[Fault]] = {}  # by copy, those that last now
        self.changes = 0  # how often that changed
        self._devices = fleet.devices
        places = {device: place for place, device in enumerate(fleet.devices)}
        self._stops: list[tuple[int, Unit, FleetFault]] = []
        self._others: list[tuple[int, int, Fault]] = []  # start, copy, fault
        for each in plan:
            if each.fault.kind.of_job:
                continue
            fault = replace(each.fault, end_ns=max(each.fault.start_ns + 1, min(each.fault.end_ns, end_ns)))
            if fault.kind is FaultKind.STOP and not awaits_return:
                unit = Unit(each.replica, places[fault.target])
                self._stops.append((fault.start_ns, unit, FleetFault(replica=each.replica, fault=fault)))
            else:
                self._others.append((fault.start_ns, each.replica, fault))
        self._coming: dict[int, list[Fault]] = defaultdict(list)  # by copy, latest first
        for _, copy, fault in reversed(self._others):
            self._coming[copy].append(fault)
        self._next_stop = self._next_other = 0
        self._first_end_ns = NEVER  # of what lasts
        self._passed: set[int] = set()  # stops after the next one that nobody noticed

    def advance(self, now_ns: int) -> tuple[Stop, ...]:
        """Let everything happen up to now; returns the stops among it."""
        self.settle(now_ns)
        stops = []
        while self._next_stop < len(self._stops) and self._stops[self._next_stop][0] <= now_ns:
            if self._next_stop not in self._passed:
                stops.append(self._stop(self._next_stop))
            self._next_stop += 1
        return tuple(stops)

    def settle(self, now_ns: int) -> None:
        """Let everything but stops happen up to now."""
        self._end_lasting(now_ns)
        while self._next_other < len(self._others) and self._others[self._next_other][0] <= now_ns:
            _, copy, fault = self._others[self._next_other]
            self._next_other += 1
            self._coming[copy].pop()
            if fault.end_ns > now_ns:
                self.lasting.setdefault(copy, []).append(fault)
                self._first_end_ns = min(self._first_end_ns, fault.end_ns)
                self.changes += 1

    def pass_by(self, now_ns: int, uses: Uses) -> tuple[Stop, ...]:
        """Let units stop up to now that are not used: nobody notices, but they are down."""
        stops = []
        for index in range(self._next_stop, len(self._stops)):
            start, unit, _ = self._stops[index]
            if start > now_ns:
                break
            if index not in self._passed and not uses(unit):
                self._passed.add(index)
                stops.append(self._stop(index))
        return tuple(stops)

    def replace_links(self, copies: Iterable[int]) -> None:
        """Links that are down in these copies are replaced."""
        for copy in copies:
            self._keep(copy, [each for each in self.lasting.get(copy, ()) if each.kind is not FaultKind.LINK_DOWN])

    def _stop(self, index: int) -> Stop:
        _, unit, found = self._stops[index]
        self._replaced(unit)
        return Stop(unit=unit, back_ns=found.fault.end_ns, what=_named(found.fault))

    def next_stop_ns(self, uses: Uses) -> int:
        """When a unit that is used stops next."""
        for index in range(self._next_stop, len(self._stops)):
            start, unit, _ = self._stops[index]
            if index not in self._passed and uses(unit):
                return start
        return NEVER

    def next_other_ns(self, dropped: frozenset[int]) -> int:
        """When anything else begins or ends next in a copy that is not dropped."""
        coming = (self._others[index] for index in range(self._next_other, len(self._others)))
        first_ns = next((start for start, copy, _ in coming if copy not in dropped), NEVER)
        if not dropped:
            return min(first_ns, self._first_end_ns)
        ends = (fault.end_ns for copy, faults in self.lasting.items() if copy not in dropped for fault in faults)
        return min(first_ns, min(ends, default=NEVER))

    def changing(self, from_ns: int, until_ns: int) -> list[int]:
        """Copies in which something other than a stop begins, ends or blocks all messages in this time."""
        found = set()
        for copy, faults in self.lasting.items():
            if any(fault.end_ns < until_ns or blocks(fault) for fault in faults):
                found.add(copy)
        for index in range(self._next_other, len(self._others)):
            start, copy, _ = self._others[index]
            if start >= until_ns:
                break
            found.add(copy)
        return sorted(found)

    def lasting_in(self, copy: int) -> tuple[Fault, ...]:
        """Faults of a copy that last now, but for stops."""
        return tuple(self.lasting[copy]) if copy in self.lasting else ()

    def from_now(self, copy: int, now_ns: int) -> tuple[Fault, ...]:
        """Faults of a copy that last or are to come, with times counted from now."""
        faults = [*self.lasting.get(copy, ()), *reversed(self._coming[copy])]
        return tuple(
            replace(fault, start_ns=max(0, fault.start_ns - now_ns), end_ns=fault.end_ns - now_ns) for fault in faults
        )

    def _end_lasting(self, now_ns: int) -> None:
        if now_ns < self._first_end_ns:
            return
        for copy in list(self.lasting):
            self._keep(copy, [fault for fault in self.lasting[copy] if fault.end_ns > now_ns])

    def _replaced(self, unit: Unit) -> None:
        """A device that stopped comes back, or is replaced, healthy."""
        name = self._devices[unit.device]
        faults = self.lasting.get(unit.replica, [])
        self._keep(unit.replica, [each for each in faults if (each.kind, each.target) != (FaultKind.SLOW, name)])

    def _keep(self, copy: int, faults: list[Fault]) -> None:
        """These are left of what lasts in a copy."""
        if len(faults) == len(self.lasting.get(copy, ())):
            return
        self.changes += 1
        self.lasting[copy] = faults
        if not faults:
            del self.lasting[copy]
        ends = (fault.end_ns for each in self.lasting.values() for fault in each)
        self._first_end_ns = min(ends, default=NEVER)


def _named(fault: Fault) -> str:
    """What kind of thing broke: the first word of its cause, such as host."""
    words = fault.cause.split()
    return words[0] if words else "device"


def blocks(fault: Fault) -> bool:
    """Whether nothing gets past it."""
    return fault.kind in (FaultKind.STOP, FaultKind.LINK_DOWN)


def downtime_ns(plan: FleetPlan, fleet: Fleet, horizon_ns: int) -> dict[Unit, int]:
    """How long each device was down before the horizon; windows that overlap count once. Devices never down: absent."""
    place = {device: number for number, device in enumerate(fleet.devices)}
    windows: dict[Unit, list[tuple[int, int]]] = defaultdict(list)
    for each in plan:
        if each.fault.kind is FaultKind.STOP and each.fault.start_ns < horizon_ns:
            unit = Unit(each.replica, place[each.fault.target])
            windows[unit].append((each.fault.start_ns, min(each.fault.end_ns, horizon_ns)))
    return {unit: _covered(found) for unit, found in sorted(windows.items())}


def _covered(windows: Iterable[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(windows):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
