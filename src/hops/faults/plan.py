"""A fault plan is data: what breaks, from when to when, by how much. The same plan can meet any schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What breaks."""

    STOP = "stop"  # a device dies: what it was doing is lost, and what it held
    SLOW = "slow"  # a device computes slower
    LINK_SLOW = "link-slow"  # a link has less bandwidth
    LINK_DOWN = "link-down"  # a link carries nothing


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


FOREVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Faults in order of (start, kind, target, end)."""

    faults: tuple[Fault, ...] = ()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)

    def __bool__(self) -> bool:
        return bool(self.faults)
