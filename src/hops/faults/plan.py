"""A fault plan is data: what breaks, from when to when, by how much. The same plan can meet any schedule."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from hops.decode.decode import LARGEST_DATA, Where, decode_json, read_text
from hops.decode.quantities import Instant, Name
from hops.errors import UsageError
from hops.files import atomic_write


class FaultKind(StrEnum):
    """What breaks."""

    STOP = "stop"  # a device dies: what it was doing is lost, and what it held
    SLOW = "slow"  # a device computes slower
    LINK_SLOW = "link-slow"  # a link has less bandwidth
    LINK_DOWN = "link-down"  # a link carries nothing
    PLANNED_STOP = "planned-stop"  # the job saves its state and stands still, for maintenance
    HANG = "hang"  # the job stands still until a person notices and kills it
    ROLL_BACK = "roll-back"  # training goes wrong (a loss spike, NaN), which is noticed at the end

    @property
    def of_link(self) -> bool:
        """Whether the target is a link; else it is a device."""
        return self in (FaultKind.LINK_SLOW, FaultKind.LINK_DOWN)

    @property
    def of_job(self) -> bool:
        """Whether it happens to the job as a whole; else to a device or a link."""
        return self in (FaultKind.PLANNED_STOP, FaultKind.HANG, FaultKind.ROLL_BACK)


FOREVER = 1 << 62


def _never(end: object) -> object:
    """In files, what is never repaired ends at null."""
    return FOREVER if end is None else end


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        kind: what breaks.
        target: a device id (stop, slow), a link's name (link-slow, link-down), or `job` (the others). Faults of hosts
            and NICs are drawn for the host or NIC, and stand here once for each device or link that they take.
        start_ns, end_ns: from when until when (repaired), nanoseconds since the start of training; end_ns > start_ns.
            A fault that is never repaired ends at `FOREVER`.
        factor: for slow, how many times longer everything takes, > 1; for link-slow, the part of the bandwidth that is
            left, between 0 and 1; 1.0 otherwise.
        cause: what it was drawn from, such as `host node3`; for reports.
    """

    kind: FaultKind
    target: Name
    start_ns: Instant
    end_ns: Annotated[Instant, BeforeValidator(_never)]
    factor: float = 1.0
    cause: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.start_ns < self.end_ns <= FOREVER:
            raise UsageError(
                f"end_ns: got {self.end_ns}, expected more than start_ns, {self.start_ns}, or null for never"
            )
        if not is_factor(self.kind, self.factor):
            needed = {FaultKind.SLOW: "more than 1", FaultKind.LINK_SLOW: "more than 0 and less than 1"}
            expected = needed.get(self.kind, "1 or none")
            raise UsageError(f"factor: got {self.factor:g}, expected {expected} for {self.kind}")

    @property
    def order(self) -> tuple[int, str, str, int]:
        """What plans are sorted by."""
        return self.start_ns, self.kind, self.target, self.end_ns


def is_factor(kind: FaultKind, factor: float) -> bool:
    """Whether a fault of this kind can have this factor."""
    if kind is FaultKind.SLOW:
        return 1 < factor < float("inf")
    return 0 < factor < 1 if kind is FaultKind.LINK_SLOW else factor == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Faults in order of (start, kind, target, end)."""

    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> "FaultPlan":
        """Any faults, put in order."""
        return cls(faults=tuple(sorted(faults, key=lambda fault: fault.order)))

    def of_hardware(self) -> "FaultPlan":
        """Without what happens to the job as a whole, which no engine runs."""
        return FaultPlan(faults=tuple(fault for fault in self.faults if not fault.kind.of_job))

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)

    def __bool__(self) -> bool:
        return bool(self.faults)

    def during(self, start_ns: int, end_ns: int) -> "FaultPlan":
        """The faults that last at some time from `start_ns` to before `end_ns`."""
        return FaultPlan(
            faults=tuple(fault for fault in self.faults if fault.start_ns < end_ns and fault.end_ns > start_ns)
        )

    def begun_by(self, time_ns: int) -> tuple[Fault, ...]:
        """The faults that begin at `time_ns` or earlier."""
        return self.faults[: bisect_right(self.faults, time_ns, key=lambda fault: fault.start_ns)]

    def from_now(self, now_ns: int) -> "FaultPlan":
        """The plan with `now_ns` as time 0: what is repaired by then is left out, what lasts then starts at 0."""
        return FaultPlan.of(
            replace(
                fault,
                start_ns=max(0, fault.start_ns - now_ns),
                end_ns=FOREVER if fault.end_ns >= FOREVER else fault.end_ns - now_ns,
            )
            for fault in self.faults
            if fault.end_ns > now_ns
        )


NO_FAULTS = FaultPlan()


FORMAT = "hops-faults/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What a file of a plan holds."""

    format: Literal["hops-faults/1"]
    faults: tuple[Fault, ...]


def save_plan(plan: FaultPlan, path: Path | str) -> None:
    """Write a plan; `load_plan` gives back an equal one. Raises UsageError if the file cannot be written."""
    with atomic_write(Path(path)) as out:
        out.write(plan_to_json(plan))


def plan_to_json(plan: FaultPlan) -> str:
    """The text of the file. `end_ns` null: never repaired; `factor` and `cause` only where they say something."""
    lines = ",\n".join(f"    {json.dumps(_entry(fault), ensure_ascii=False)}" for fault in plan)
    body = f"[\n{lines}\n  ]" if lines else "[]"
    return f'{{\n  "format": "{FORMAT}",\n  "faults": {body}\n}}\n'


def load_plan(path: Path | str) -> FaultPlan:
    """Read a plan. Raises UsageError with everything that is wrong: place, fault, and what is expected."""
    expected = "a plan that `hops faults draw` wrote"
    text = read_text(Path(path), error=UsageError, expected=expected, largest=LARGEST_DATA)
    return FaultPlan.of(decode_json(PlanFile, text, Where(name=str(path))).faults)


def _entry(fault: Fault) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "kind": str(fault.kind),
        "target": fault.target,
        "start_ns": fault.start_ns,
        "end_ns": None if fault.end_ns >= FOREVER else fault.end_ns,
    }
    if fault.factor != 1.0:
        entry["factor"] = fault.factor
    if fault.cause:
        entry["cause"] = fault.cause
    return entry
