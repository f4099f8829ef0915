"""What a life came to: where its time went, what was kept and what was lost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hops.faults.plan import FaultKind
from hops.fleet.recovery.base import Unit
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.time_use import Ledger, TimeUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One life up to its horizon.

    Attributes:
        spent_ns: by cause; sums to the horizon.
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
    history: tuple[tuple[int, dict[TimeUse, int]], ...]

    @property
    def goodput(self) -> float:
        """Share of the time in which iterations that were kept ran at the pace without any fault."""
        return self.spent_ns[TimeUse.PRODUCTIVE] / self.horizon_ns

    @property
    def effective_training_time_ratio(self) -> float:
        """Share of the time in which iterations ran that were kept, slow ones in full."""
        kept = (TimeUse.PRODUCTIVE, TimeUse.SLOW, TimeUse.DEGRADED)
        return sum(self.spent_ns[cause] for cause in kept) / self.horizon_ns


NEVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State after `iterations`, with the ledger of then; usable from `usable_ns` on."""

    iterations: int = 0
    ledger: Ledger = field(default_factory=Ledger)
    usable_ns: int = 0


class Saver:
    """Decides when to save; keeps the last checkpoint that can be used. A life begins with one."""

    def __init__(self, times: RecoveryTimes) -> None:
        self._times = times
        self._saved, self._written = Checkpoint(), Checkpoint()
        self.due_ns = NEVER
        self.restarted(0)

    def restarted(self, now_ns: int) -> None:
        """Training starts from a checkpoint now."""
        self.due_ns = NEVER if self._times.interval_ns is None else now_ns + self._times.interval_ns

    def taken(self, iterations: int, ledger: Ledger, started_ns: int, now_ns: int) -> None:
        """A checkpoint was begun and training may go on now."""
        assert self._times.interval_ns is not None, "checkpoints are due only at an interval"
        usable_ns = max(now_ns, started_ns + self._times.write_ns) if self._times.asynchronous else now_ns
        self._saved = self.last(now_ns)
        self._written = Checkpoint(iterations=iterations, ledger=ledger.copy(), usable_ns=usable_ns)
        self.due_ns = max(now_ns + self._times.interval_ns, usable_ns)

    def last(self, now_ns: int) -> Checkpoint:
        """The newest checkpoint that can be used now."""
        return self._written if self._written.usable_ns <= now_ns else self._saved

    def interrupted(self, now_ns: int) -> None:
        """Something stopped: what is not wholly written is lost."""
        self._saved = self._written = self.last(now_ns)
