"""What one change would cost: the same run with a device slower, a link slower or a link down, per schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hops.build.faults import build_inventory
from hops.build.prepared import PreparedRun, checked
from hops.build.setup import build
from hops.errors import DoesNotFitError, SpecError, UnitError, UsageError
from hops.faults.inventory import Inventory, targets
from hops.faults.plan import FOREVER, NO_FAULTS, Fault, FaultKind, FaultPlan
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import Spec
from hops.units import TIME, to_ns

USUAL_DOWN = "1 s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is changed, by the name of a device, host, NIC or link.

    Attributes:
        slow: how many times longer everything takes, > 1.
        slow_links: the part of the bandwidth that is left, between 0 and 1.
        down_s: for how long nothing passes, from the start of the run.
    """

    slow: Mapping[str, float]
    slow_links: Mapping[str, float]
    down_s: Mapping[str, float]

    def plan(self, inventory: Inventory) -> FaultPlan:
        """The changes as faults. Raises UsageError, with the nearest name, for one that is not known."""
        faults = [
            *_faults(inventory, "--slow", self.slow, FaultKind.SLOW),
            *_faults(inventory, "--slow-link", self.slow_links, FaultKind.LINK_SLOW),
        ]
        for name, seconds in self.down_s.items():
            down = _faults(inventory, "--down", {name: 1.0}, FaultKind.LINK_DOWN)
            faults += [replace(fault, end_ns=max(1, to_ns(seconds))) for fault in down]
        return FaultPlan.of(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Times of one schedule, in ms: an iteration as it is and changed (means), and all iterations together."""

    schedule: str
    iteration_ms: float
    changed_iteration_ms: float
    run_ms: float
    changed_run_ms: float

    @property
    def longer(self) -> float:
        """By how much of its time a run gets longer."""
        return self.changed_run_ms / self.run_ms - 1


def parse_changes(slow: Sequence[str], slow_links: Sequence[str], down: Sequence[str]) -> Changes:
    """Changes from `NAME=FACTOR`, `NAME=PART` and `NAME[=TIME]`. Raises UsageError, saying the right form."""
    if not slow and not slow_links and not down:
        raise UsageError("nothing is changed: add --slow DEVICE=1.1, --slow-link LINK=0.5 or --down LINK=2s")
    return Changes(
        slow={name: _factor(name, text) for name, text in (_pair("--slow", each) for each in slow)},
        slow_links={name: _part(name, text) for name, text in (_pair("--slow-link", each) for each in slow_links)},
        down_s={name: _time(name, text) for name, text in (_pair("--down", each, USUAL_DOWN) for each in down)},
    )


def what_if(spec: Spec, changes: Changes, schedules: Sequence[str]) -> tuple[dict[str, WhatIf], dict[str, str]]:
    """Every schedule with and without the changes; those that cannot run, with the reason.

    The failure section is left aside. Raises UsageError for an unknown name, or if no schedule can run.
    """
    sound = spec.model_copy(update={"failure": spec.failure.model_copy(update={"enabled": False})})
    found: dict[str, WhatIf] = {}
    refused: dict[str, str] = {}
    for name in schedules:
        try:
            pipeline = checked(build(_under(sound, name)))
        except (DoesNotFitError, SpecError, UsageError) as error:
            refused[name] = str(error)
            continue
        found[name] = _compare(name, pipeline, changes.plan(build_inventory(sound, pipeline.setup.network)))
    if not found:
        raise UsageError("none of the schedules can run\n" + "\n".join(f"{n}: {why}" for n, why in refused.items()))
    return found, refused


def _compare(name: str, pipeline: PreparedRun, plan: FaultPlan) -> WhatIf:
    setup = pipeline.setup
    iterations, seed = setup.spec.simulation.iterations, setup.spec.simulation.seed
    usual = pipeline.lengths_ns(iterations, seed, NO_FAULTS)
    changed = pipeline.lengths_ns(iterations, seed, plan)
    return WhatIf(
        schedule=name,
        iteration_ms=float(usual.mean()) / 1e6,
        changed_iteration_ms=float(changed.mean()) / 1e6,
        run_ms=float(usual.sum()) / 1e6,
        changed_run_ms=float(changed.sum()) / 1e6,
    )


def _under(spec: Spec, schedule: str) -> Spec:
    if schedule == spec.pipeline.schedule.name:
        return spec
    pipeline = spec.pipeline.model_copy(update={"schedule": ScheduleChoice(name=schedule)})
    return spec.model_copy(update={"pipeline": pipeline})


def _faults(inventory: Inventory, option: str, named: Mapping[str, float], kind: FaultKind) -> list[Fault]:
    try:
        return [
            Fault(kind=kind, target=target, start_ns=0, end_ns=FOREVER, factor=factor)
            for name, factor in named.items()
            for site in inventory.named([name])
            for target in targets(site, kind)
        ]
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def _pair(option: str, text: str, default: str = "") -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    if equals:
        return name, value
    if not default:
        raise UsageError(f"{option}: got {text!r}, expected a name and a number, such as node0/0=1.1")
    return text, default


def _factor(name: str, text: str) -> float:
    return _number("--slow", name, text, "how many times longer everything takes, more than 1", low=1.0, high=1e6)


def _part(name: str, text: str) -> float:
    return _number("--slow-link", name, text, "the part of the bandwidth that is left, between 0 and 1", low=0, high=1)


def _number(option: str, name: str, text: str, meaning: str, *, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = low
    if not low < value < high:
        raise UsageError(f"{option} {name}: got {text!r}, expected {meaning}")
    return value


def _time(name: str, text: str) -> float:
    try:
        return TIME.parse(text)
    except UnitError as error:
        raise UsageError(f"--down {name}: {error}") from None
