"""What happens to the whole job, in order of time: planned stops, hangs, and training that goes wrong unnoticed."""

from hops.faults.plan import FaultKind
from hops.fleet.fleet import FleetPlan
from hops.fleet.state import NEVER, Event, Hung, PlannedStop, WentWrong, WrongNoticed


class JobEvents:
    """Goes through the job's faults of a plan. A hang breaks training off, and so does whoever sees it went wrong."""

    def __init__(self, plan: FleetPlan) -> None:
        self._coming: list[tuple[int, Event]] = []  # latest first
        for fault in (each.fault for each in plan if each.fault.kind.of_job):
            match fault.kind:
                case FaultKind.PLANNED_STOP:
                    self._coming.append((fault.start_ns, PlannedStop(until_ns=fault.end_ns)))
                case FaultKind.HANG:
                    self._coming.append((fault.start_ns, Hung(until_ns=fault.end_ns)))
                case _:
                    self._coming += [(fault.start_ns, WentWrong()), (fault.end_ns, WrongNoticed())]
        self._coming.sort(key=lambda pair: pair[0], reverse=True)

    def next_break_ns(self, *, wrong: bool) -> int:
        """When training breaks off next; if it has gone wrong, that is seen."""
        return self._next_ns(Hung, WrongNoticed) if wrong else self._next_ns(Hung)

    @property
    def next_pause_ns(self) -> int:
        """When anything is next that waits for the end of an iteration."""
        return self._next_ns(PlannedStop, WentWrong)

    @property
    def next_anyway_ns(self) -> int:
        """When anything is next that comes whether or not anybody trains."""
        return self._next_ns(WentWrong, WrongNoticed)

    def take(self, now_ns: int, *, training: bool) -> Event | None:
        """The next event up to now. What would stop a job that does not train is left for later."""
        for index in range(len(self._coming) - 1, -1, -1):
            time_ns, event = self._coming[index]
            if time_ns > now_ns:
                return None
            if isinstance(event, PlannedStop | Hung) and not training:
                continue
            del self._coming[index]
            if not _too_late(time_ns, event, now_ns):
                return event
        return None

    def _next_ns(self, *kinds: type[Event]) -> int:
        return next((time_ns for time_ns, event in reversed(self._coming) if isinstance(event, kinds)), NEVER)


def _too_late(time_ns: int, event: Event, now_ns: int) -> bool:
    """A job that was not running cannot have hung; a planned stop is made up for while it lasts."""
    if isinstance(event, Hung):
        return time_ns < now_ns
    return isinstance(event, PlannedStop) and event.until_ns <= now_ns
