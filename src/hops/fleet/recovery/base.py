"""A recovery policy says what happens after devices stopped: which phases pass, and how training goes on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from hops.fleet.fleet import Fleet
from hops.fleet.recovery_times import RecoveryTimes
from hops.fleet.time_use import TimeUse
from hops.registry import Registry


class Unit(NamedTuple):
    """One device of the fleet: which copy of the pipeline it is in, and its place there."""

    replica: int
    device: int  # index into Fleet.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A pipeline that differs from the spec's, because others' work came to it or devices are missing.

    Attributes:
        extra: per rank, microbatches of other copies that it takes besides its own; () is none.
        microbatches: per iteration; None is the spec's.
        without: indices of devices that are missing; the stages are cut anew for what is left.
    """

    extra: tuple[int, ...] = ()
    microbatches: int | None = None
    without: tuple[int, ...] = ()


PLAIN = Variant()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLayout:
    """How the copies of the pipeline run: all as `common`, some otherwise, some not at all."""

    common: Variant = PLAIN
    special: Mapping[int, Variant] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()


AS_PLANNED = FleetLayout()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a policy knows when it is asked.

    Attributes:
        now_ns: time since the start of training.
        vacant: units whose places have to be filled, or gone without; what just stopped is among them.
        out: units that training has been going without.
        back_ns: when each unit that is down is repaired.
        free: spare devices that stand by; repairs_ns: when broken devices come back to them, sorted.
    """

    now_ns: int
    vacant: frozenset[Unit] = frozenset()
    out: frozenset[Unit] = frozenset()
    back_ns: Mapping[Unit, int] = field(default_factory=dict)
    free: int = 0
    repairs_ns: tuple[int, ...] = ()

    def filled_at(self, count: int) -> int:
        """When `count` devices are there to fill places."""
        missing = count - self.free
        return self.now_ns if missing <= 0 else max(self.now_ns, self.repairs_ns[missing - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Time in which nobody trains. `fills`: at its end, spare or repaired devices stand in all vacant places."""

    cause: TimeUse
    length_ns: int
    fills: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What happens next. If another device stops before the last phase has ended, the policy is asked again.

    Attributes:
        phases: pass one after the other.
        rollback: training goes on from the last checkpoint, not from the last iteration that ended.
        out: units that training then goes without.
    """

    phases: tuple[Phase, ...]
    rollback: bool
    out: frozenset[Unit] = frozenset()


class RecoveryPolicy(ABC):
    """One way to recover. Made anew for every simulated life.

    Made from what recovery costs, the fleet, and `seconds`: the mean iteration time of a pipeline, None if it cannot
    run.

    Attributes:
        awaits_return: a stop is part of its iteration, which goes on when the device is back (the engine does it).
        keeps_spares: spare devices stand by and are paid for.
    """

    awaits_return: ClassVar[bool] = False
    keeps_spares: ClassVar[bool] = False

    def __init__(self, times: RecoveryTimes, fleet: Fleet, seconds: Callable[[Variant], float | None]) -> None:
        self.times, self.fleet, self.seconds = times, fleet, seconds

    @abstractmethod
    def react(self, situation: Situation) -> Reaction:
        """What to do now that the vacant units are gone. At its end every vacant unit is filled or out."""

    def rejoin(self, situation: Situation) -> Reaction | None:
        """What to do at the end of an iteration after units that are out came back; None: nothing."""
        return None

    def layout(self, out: frozenset[Unit]) -> FleetLayout:
        """How the copies run without these units."""
        assert not out, "only policies that go on without devices leave any out"
        return AS_PLANNED

    def from_checkpoint(self, situation: Situation, filled_ns: int) -> tuple[Phase, ...]:
        """Detection, the wait for devices until `filled_ns`, restart, reading of the state."""
        wait_ns = max(0, filled_ns - situation.now_ns - self.times.detection_ns)
        return (
            Phase(cause=TimeUse.DETECTION, length_ns=self.times.detection_ns),
            Phase(cause=TimeUse.WAITING, length_ns=wait_ns, fills=True),
            Phase(cause=TimeUse.RESTART, length_ns=self.times.restart_ns),
            Phase(cause=TimeUse.RELOAD, length_ns=self.times.reload_ns),
        )


RECOVERIES: Registry[RecoveryPolicy] = Registry(family="recovery policy", group="hops.recovery")
