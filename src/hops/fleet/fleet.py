"""The fleet: every copy of the pipeline on its own devices, and what breaks in which copy when."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from hops.build.faults import build_inventory, build_plan, fault_sources
from hops.build.setup import Setup
from hops.faults.draw import draw_plans
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Data-parallel copies of one pipeline, all alike.

    Attributes:
        replicas: copies.
        devices: ids of the devices of one copy.
        device_of_rank: per rank, the index of its device.
        microbatches: per iteration and copy.
        links: names of the links that messages and reductions of one copy cross.
    """

    replicas: int
    devices: tuple[str, ...]
    device_of_rank: tuple[int, ...]
    microbatches: int = 1
    links: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, replicas: int, placement: Iterable[str], *, microbatches: int = 1, links: Iterable[str] = ()
    ) -> "Fleet":
        """From the device id of every rank."""
        placed = tuple(placement)
        devices = tuple(dict.fromkeys(placed))
        return cls(
            replicas=replicas,
            devices=devices,
            device_of_rank=tuple(devices.index(each) for each in placed),
            microbatches=microbatches,
            links=frozenset(links),
        )

    @property
    def size(self) -> int:
        """Devices of all copies."""
        return self.replicas * len(self.devices)

    def concerns(self, fault: Fault) -> bool:
        """Whether it breaks something that a copy uses, or hits the job as a whole."""
        if fault.kind.of_job:
            return True
        if fault.kind in (FaultKind.STOP, FaultKind.SLOW):
            return fault.target in self.devices
        return fault.target in self.links


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFault:
    """A fault of one copy; its target is named as in the spec."""

    replica: int
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """What breaks in the fleet, in order of (start, copy, kind, target)."""

    faults: tuple[FleetFault, ...] = ()

    @classmethod
    def of(cls, plans: Iterable[FaultPlan]) -> "FleetPlan":
        """From one plan per copy."""
        found = [FleetFault(replica=copy, fault=fault) for copy, plan in enumerate(plans) for fault in plan]
        found.sort(key=lambda each: (each.fault.start_ns, each.replica, each.fault.kind, each.fault.target))
        return cls(faults=tuple(found))

    def concerning(self, fleet: Fleet) -> "FleetPlan":
        """Without what no copy uses."""
        return FleetPlan(faults=tuple(each for each in self.faults if fleet.concerns(each.fault)))

    def __iter__(self) -> Iterator[FleetFault]:
        return iter(self.faults)

    def __len__(self) -> int:
        return len(self.faults)


def draw_fleet(setup: Setup, seed: int, horizon_ns: int) -> FleetPlan:
    """What breaks in all copies before the horizon.

    The first copy draws what `hops run` draws, and what traces and plans state befalls it, and the job; the others draw
    under names of their own, so that another number of copies moves nothing. Raises UsageError as `hops run` does.
    """
    failure = setup.spec.failure.model_copy(update={"horizon": horizon_ns / NS_PER_S})
    spec = setup.spec.model_copy(update={"failure": failure})
    inventory = build_inventory(spec, setup.network)
    first = build_plan(spec, inventory, seed=seed)
    sources = fault_sources(spec, inventory) if failure.enabled else ()
    of_copies = [source for source in sources if not source.kind.of_job]
    others = [
        [replace(source, name=f"copy {copy} {source.name}") for source in of_copies]
        for copy in range(1, spec.optimizer.data_parallel)
    ]
    return FleetPlan.of([first, *draw_plans(others, seed, failure.horizon)])
