"""A fault plan is data: what breaks, from when to when, by how much. The same plan can meet any schedule."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        kind: what breaks.
        target: a device id (stop, slow) or a link's name (link-slow, link-down). Faults of hosts and NICs are drawn for
            the host or NIC, and stand here once for each device or link that they take.
        start_ns, end_ns: from when until when (repaired), nanoseconds since the start of training; end_ns > start_ns.
            A fault that is never repaired ends at `FOREVER`.
        factor: for slow, how many times longer everything takes, > 1; for link-slow, the part of the bandwidth that is
            left, between 0 and 1; 1.0 otherwise.
        cause: what it was drawn from, such as `host node3`; for reports.
    """

    kind: FaultKind
    target: str
    start_ns: int
    end_ns: int
    factor: float = 1.0
    cause: str = ""

    def __post_init__(self) -> None:
        assert 0 <= self.start_ns < self.end_ns <= FOREVER, f"a fault from {self.start_ns} to {self.end_ns} ns"
        assert is_factor(self.kind, self.factor), f"a factor of {self.factor} for {self.kind}"

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
_KEYS = ("kind", "target", "start_ns", "end_ns", "factor", "cause")
EXAMPLE = '{"kind": "stop", "target": "node0/0", "start_ns": 1000, "end_ns": 2000}'


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
    """Read a plan. Raises UsageError saying the file, the fault and what is expected."""
    path = Path(path)
    text = read_text(path, expected="a plan that `hops faults draw` wrote")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}:{error.colno}: is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        raise UsageError(f"{path}: is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("faults"), list):
        raise UsageError(f'{path}: is no fault plan: expected {{"format": "{FORMAT}", "faults": [...]}}')
    return FaultPlan.of(_fault(entry, f"{path}: faults[{index}]") for index, entry in enumerate(content["faults"]))


def read_text(path: Path, *, expected: str) -> str:
    """The content of a text file. Raises UsageError saying why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        reason = "it is not text in UTF-8"
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise UsageError(f"{path}: cannot be read: {reason}; expected {expected}")


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


def _fault(entry: object, where: str) -> Fault:
    if not isinstance(entry, dict):
        raise UsageError(f"{where}: got {entry!r}, expected a mapping such as {EXAMPLE}")
    unknown = [key for key in entry if key not in _KEYS]
    missing = [key for key in _KEYS[:4] if key not in entry]
    if unknown or missing:
        what = f"unknown key {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
        raise UsageError(f"{where}: {what}, expected {', '.join(_KEYS)}, such as {EXAMPLE}")
    full = {"factor": 1.0, "cause": "", **entry}
    kinds = [kind.value for kind in FaultKind]
    _check(full["kind"] in kinds, where, "kind", full, f"one of {', '.join(kinds)}")
    kind = FaultKind(full["kind"])
    _check(isinstance(full["target"], str) and full["target"] != "", where, "target", full, "a device id or a link")
    start, end = full["start_ns"], FOREVER if full["end_ns"] is None else full["end_ns"]
    _check(_is_time(start), where, "start_ns", full, "a whole number of at least 0, in ns")
    _check(_is_time(end) and end > start, where, "end_ns", full, "a whole number above start_ns, or null for never")
    factor = full["factor"]
    numeric = isinstance(factor, int | float) and not isinstance(factor, bool)
    needed = {FaultKind.SLOW: "more than 1", FaultKind.LINK_SLOW: "more than 0 and less than 1"}.get(kind, "1 or none")
    _check(numeric and is_factor(kind, factor), where, "factor", full, f"{needed} for {kind}")
    _check(isinstance(full["cause"], str), where, "cause", full, "text")
    return Fault(
        kind=kind, target=full["target"], start_ns=start, end_ns=end, factor=float(factor), cause=full["cause"]
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= FOREVER


def _check(ok: bool, where: str, key: str, entry: Mapping[str, Any], expected: str) -> None:
    if not ok:
        raise UsageError(f"{where}: {key}: got {entry[key]!r}, expected {expected}")
