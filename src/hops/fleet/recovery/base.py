"""A recovery policy says what happens after devices stopped: which phases pass, and how training goes on."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from hops.errors import HopsError, UsageError
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
    """Time in which nobody trains.

    Attributes:
        cause: what the time is spent on.
        fills: at its end, spare or repaired devices stand in all vacant places.
        saves: at its end, a checkpoint of the present state is written.
    """

    cause: TimeUse
    length_ns: int
    fills: bool = False
    saves: bool = False


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
    """One way to recover, made anew for every simulated training run; what it answers depends on what it is told only.

    Made from what recovery costs, the fleet, and `seconds`: the mean iteration time of a pipeline, None if it cannot
    run. A policy with parameters of its own takes them after these three, by name; a spec states them beside its name.

    Attributes:
        times, fleet, seconds: what it was made from.
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


def ask_to_react(policy: RecoveryPolicy, situation: Situation) -> Reaction:
    """What the policy does about vacant units. Raises UsageError if it fails, or answers what cannot be."""
    return _checked(policy, "react", situation, _answer(policy, "react", situation))


def ask_to_rejoin(policy: RecoveryPolicy, situation: Situation) -> Reaction:
    """What it does about units that came back. Raises UsageError as above; None is no answer if it left any out."""
    return _checked(policy, "rejoin", situation, _answer(policy, "rejoin", situation))


def _answer(policy: RecoveryPolicy, method: str, situation: Situation) -> object:
    try:
        return policy.react(situation) if method == "react" else policy.rejoin(situation)
    except HopsError:
        raise
    except Exception as error:
        raise UsageError(f"{_said(policy, method, situation)} failed: {type(error).__name__}: {error}") from error


def _checked(policy: RecoveryPolicy, method: str, situation: Situation, answer: object) -> Reaction:
    said = _said(policy, method, situation)
    if not isinstance(answer, Reaction):
        raise UsageError(f"{said} gave {answer!r}, expected a Reaction")
    negative = [phase for phase in answer.phases if phase.length_ns < 0]
    if negative:
        raise UsageError(f"{said} gave {negative[0]!r}, expected phases of at least 0 ns")
    strange = answer.out - situation.out - situation.vacant
    if strange:
        raise UsageError(
            f"{said} goes without {sorted(strange)}, which are there; expected units that are out or vacant"
        )
    if situation.vacant - answer.out and not any(phase.fills for phase in answer.phases):
        raise UsageError(
            f"{said} leaves {sorted(situation.vacant - answer.out)} vacant; fill them in a phase, or list them in out"
        )
    return answer


def _said(policy: RecoveryPolicy, method: str, situation: Situation) -> str:
    kind = type(policy)
    return f"recovery policy {kind.__module__}.{kind.__qualname__}: {method} at {situation.now_ns / 1e9:g} s"


RECOVERIES: Registry[RecoveryPolicy] = Registry(family="recovery policy", group="hops.recovery")
