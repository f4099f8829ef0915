"""What a simulated training run came to: where its time went, what was kept and what was lost."""

from collections.abc import Mapping
from dataclasses import dataclass

from hops.faults.plan import FaultKind
from hops.fleet.recovery.base import Unit
from hops.fleet.time_use import TimeUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One training run on the fleet, up to its horizon.

    Attributes:
        spent_ns: by use; sums to the horizon.
        iterations: kept at the end.
        interruptions: times at which training broke off (stops during a recovery count).
        lost_iterations: by what broke; those begun and not kept.
        faults: of things in use, by kind.
        downtime_ns: per device that was down.
        touched_iterations: how many went through the engine one by one.
        history: (time, spent so far) at every event.
    """

    horizon_ns: int
    spent_ns: Mapping[TimeUse, int]
    iterations: int
    interruptions: int
    lost_iterations: Mapping[str, int]
    faults: Mapping[FaultKind, int]
    downtime_ns: Mapping[Unit, int]
    touched_iterations: int
    history: tuple[tuple[int, Mapping[TimeUse, int]], ...]

    @property
    def goodput(self) -> float:
        """Share of the time in which iterations that were kept ran as fast as without any fault."""
        return self.spent_ns[TimeUse.PRODUCTIVE] / self.horizon_ns

    @property
    def effective_training_time_ratio(self) -> float:
        """Share of the time in which iterations ran that were kept, slow ones in full."""
        kept = (TimeUse.PRODUCTIVE, TimeUse.SLOW, TimeUse.DEGRADED)
        return sum(self.spent_ns[use] for use in kept) / self.horizon_ns
