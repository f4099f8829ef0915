"""What the fleet machine is made of: its state, the events that move it, and the wishes it answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from hops.fleet.recovery.base import AS_PLANNED, FleetLayout, Phase, Unit
from hops.fleet.time_use import TimeUse, nothing_spent

NEVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """State after `iterations`, with the times by use of then; it can be used from `usable_ns` on."""

    iterations: int = 0
    spent_ns: Mapping[TimeUse, int] = field(default_factory=nothing_spent)
    usable_ns: int = 0


# What the fleet is doing.


@dataclass(frozen=True, slots=True)
class Training:
    """Iterations run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Training stands still for a checkpoint."""

    started_ns: int
    ends_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedLinks:
    """Links of these copies carried nothing for too long; the last of them is back at `back_ns`."""

    copies: tuple[int, ...]
    back_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovering:
    """Phases of a recovery pass, one after the other.

    Attributes:
        phases: the present one and those to come; at least one.
        ends_ns: when the present one ends.
        out: units that training goes without afterwards.
        layout: how it then runs.
        places_empty: vacant places stay empty until a phase fills them with spares; else whoever comes back is awaited.
        from_checkpoint: training starts from a checkpoint, so that the next one is due an interval later.
        links: those that failed, if the transport gave up.
    """

    phases: tuple[Phase, ...]
    ends_ns: int
    out: frozenset[Unit]
    layout: FleetLayout
    places_empty: bool
    from_checkpoint: bool
    links: FailedLinks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacingLinks:
    """The hosts behind failed links are replaced, which takes no more time."""

    copies: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingLinks:
    """Everything is ready but for links that are still down."""

    ends_ns: int


Activity = Training | Saving | Recovering | ReplacingLinks | AwaitingLinks


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetState:
    """A fleet at a moment.

    Attributes:
        now_ns: time since the start of training, which is the sum of `spent_ns`.
        spent_ns: by use.
        iterations: done and not lost.
        doing: what goes on.
        layout: how the copies of the pipeline run.
        vacant: units whose places have to be filled, or gone without.
        out: units that training goes without.
        back_ns: of every unit that ever stopped, when it is repaired.
        spares: devices that stand by; repairs_ns: when broken devices come back to them, sorted.
        saved: the newest checkpoint that could be used when `written` was begun; written: the newest one.
        due_ns: when the next checkpoint is due.
        broken_off: an iteration was under way when training broke off.
        sound: the newest checkpoint from before training went wrong unnoticed; None: it did not.
        interruptions: times at which training broke off.
        lost_iterations: begun and not kept, by what broke.
    """

    now_ns: int = 0
    spent_ns: Mapping[TimeUse, int] = field(default_factory=nothing_spent)
    iterations: int = 0
    doing: Activity = field(default_factory=Training)
    layout: FleetLayout = AS_PLANNED
    vacant: frozenset[Unit] = frozenset()
    out: frozenset[Unit] = frozenset()
    back_ns: Mapping[Unit, int] = field(default_factory=dict)
    spares: int = 0
    repairs_ns: tuple[int, ...] = ()
    saved: Checkpoint = field(default_factory=Checkpoint)
    written: Checkpoint = field(default_factory=Checkpoint)
    due_ns: int = NEVER
    broken_off: bool = False
    sound: Checkpoint | None = None
    interruptions: int = 0
    lost_iterations: Mapping[str, int] = field(default_factory=dict)

    def uses(self, unit: Unit) -> bool:
        """Whether a stop of the unit would be noticed now: it is used, or is to be when the recovery has ended."""
        doing = self.doing
        if isinstance(doing, Recovering) and not doing.places_empty:
            return unit not in doing.out and unit.replica not in doing.layout.dropped
        return unit not in self.vacant and unit not in self.out and unit.replica not in self.layout.dropped

    def but(self, **changes: Any) -> "FleetState":
        """`dataclasses.replace`, in a third of the time: it happens at every event of a month."""
        new = object.__new__(FleetState)
        for name, put, value in zip(_NAMES, _PUT, _VALUES(self), strict=True):
            put(new, changes.pop(name) if name in changes else value)
        assert not changes, f"a state has no {', '.join(changes)}"
        return new

    @property
    def last_checkpoint(self) -> Checkpoint:
        """The newest one that can be used now."""
        return self.written if self.written.usable_ns <= self.now_ns else self.saved


_NAMES = tuple(each.name for each in fields(FleetState))
_VALUES = attrgetter(*_NAMES)
_PUT = [vars(FleetState)[name].__set__ for name in _NAMES]


# What happens to it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Iterations ended (0: the time counts as part of one), and took so long by use."""

    iterations: int
    spent_ns: Mapping[TimeUse, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Time has passed up to `to_ns`, and no iteration ended in it: the wished phase, part of it, or lost training."""

    to_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A unit stopped; it is repaired at `back_ns`; `what` broke, in a word."""

    unit: Unit
    back_ns: int
    what: str = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Units stopped, also such as nobody uses."""

    stops: tuple[Stop, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFailed:
    """Messages waited too long for links: the job fails."""

    links: FailedLinks


@dataclass(frozen=True, slots=True)
class LinksReplaced:
    """As was wished."""


@dataclass(frozen=True, slots=True)
class Due:
    """The time has come for what training was wished until: a return of units, or a checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStop:
    """The job is to save its state and stand still until `until_ns`."""

    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """The job hangs, and nobody restarts it before `until_ns`."""

    until_ns: int


@dataclass(frozen=True, slots=True)
class WentWrong:
    """From now on training is worth nothing, and nobody knows: a loss that will diverge, a corrupted value."""


@dataclass(frozen=True, slots=True)
class WrongNoticed:
    """Somebody sees that training went wrong."""


Event = (
    Trained | Passed | Stopped | TransportFailed | LinksReplaced | Due | PlannedStop | Hung | WentWrong | WrongNoticed
)


# What it wants next.


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """Iterations, until the first that ends at `until_ns` or later."""

    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LetPass:
    """Time, in which nobody trains, until `until_ns`."""

    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceLinks:
    """Links of these copies that are down are replaced by others that work."""

    copies: tuple[int, ...]


Wish = Train | LetPass | ReplaceLinks
