"""Devices: what a kind of device can do, and a device of that kind in a node."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hops.distributions import Distribution
from hops.errors import CatalogError
from hops.hardware.network import RareDelay


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document, where it is found, and its date (year and month, `2024-09`; empty if unknown)."""

    document: str
    url: str = ""
    date: str = ""


STATED = Source(document="stated by the user")


class Topology(StrEnum):
    """Which messages share a link of an interconnect.

    SWITCH: each device has one port out and one port in to a switch that blocks nothing (NVLink through NVSwitch).
    MESH: a wire of its own for every ordered pair of devices (Infinity Fabric).
    ROOT: as SWITCH, but the switch is the socket's root complex; between sockets the socket bus is crossed (PCIe).
    SOCKET: one link per ordered pair of sockets, shared by everything that crosses (UPI).
    NETWORK: each host has one port out and one port in, its NIC, shared by its devices (InfiniBand, Ethernet).
    """

    SWITCH = "switch"
    MESH = "mesh"
    ROOT = "root"
    SOCKET = "socket"
    NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class InSwitch:
    """All-reduces that a switch adds up itself, where it can (NVLink SHARP).

    Attributes:
        share: of a port's bandwidth at which the bytes of an all-reduce go through it.
        members: the fewest for which that is used.
    """

    share: float
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRate:
    """A measured all-reduce of so many members: seconds = latency + 2 (members - 1) / members x bytes / rate."""

    members: int
    latency_s: float
    bus_bytes_per_s: float


COLLECTIVE_SHARE = 0.8
"""Of a port's bandwidth that rings reach where nothing is measured: NCCL counts 20 of 25 GB/s per NVLink (Volta and
Ampere), 20.6 of 25 (Hopper), 12 of 15.75 on PCIe 3 x16 (src/graph/topo.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """One kind of interconnect.

    Attributes:
        bandwidth: bytes/s of one direction of one link or port.
        latency_s: seconds from one end to the other, for one message.
        collective_share: of the bandwidth that rings of collectives reach.
        in_switch: what the switch adds up; None: nothing.
        measured: all-reduces by members, where they are measured: not monotone where wires are few.
        sources: where each number is from, by its key in the catalog file.
    """

    name: str
    topology: Topology
    bandwidth: float
    latency_s: float
    collective_share: float = COLLECTIVE_SHARE
    in_switch: InSwitch | None = None
    measured: tuple[GroupRate, ...] = ()
    title: str = ""
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False, repr=False)


PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKind:
    """What a vendor's sheet says of a device.

    Attributes:
        rates: peak dense FLOP/s of each precision that the device has (never with sparsity).
        memory_bytes: capacity.
        memory_bandwidth: bytes/s of its own memory.
        launch_s: seconds to launch one kernel.
        operation_s: seconds of the host to dispatch one operation of the framework.
        layer_s: seconds of the host to dispatch one transformer layer, where a user states it; None: its operations.
        cache_bytes: last-level cache (L2); 0: not modelled.
        bus: what connects it to its host (PCIe).
        peer: what connects it to its own kind in the same host, if anything does (NVLink).
        nic: the typical NIC of a host of such devices.
        price_per_hour: typical price in USD.
        power_w: power limit of the board in watts.
        sources: where each number is from, by its key in the catalog file (`memory`, `peak.bf16`).
    """

    name: str
    rates: Mapping[str, float]
    memory_bytes: int
    memory_bandwidth: float
    launch_s: float
    operation_s: float
    bus: Interconnect
    nic: Interconnect
    peer: Interconnect | None = None
    layer_s: float | None = None
    cache_bytes: int = 0
    price_per_hour: float
    power_w: float
    title: str = ""
    vendor: str = ""
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False, repr=False)

    def rate(self, precision: str) -> float:
        """Peak dense FLOP/s of a precision. Raises CatalogError, with those it has, if the device lacks it."""
        if precision not in self.rates:
            had = ", ".join(name for name in PRECISIONS if name in self.rates)
            raise CatalogError(
                f"device {self.name!r} has no {precision}: got precision {precision!r}, expected one of {had}; "
                f"choose one of these, or a device that has {precision}"
            )
        return self.rates[precision]

    def with_overrides(
        self,
        *,
        rates: Mapping[str, float] | None = None,
        memory_bytes: int | None = None,
        memory_bandwidth: float | None = None,
        launch_s: float | None = None,
        layer_s: float | None = None,
        price_per_hour: float | None = None,
        power_w: float | None = None,
    ) -> "DeviceKind":
        """The same kind with some numbers stated by the user (`rates` adds to or replaces single precisions)."""
        stated = {
            "memory": ("memory_bytes", memory_bytes),
            "memory_bandwidth": ("memory_bandwidth", memory_bandwidth),
            "launch_overhead": ("launch_s", launch_s),
            "layer_overhead": ("layer_s", layer_s),
            "price": ("price_per_hour", price_per_hour),
            "power": ("power_w", power_w),
        }
        changed = {key: pair for key, pair in stated.items() if pair[1] is not None}
        new_rates = dict(rates or {})
        sources = [*changed, *(f"peak.{precision}" for precision in new_rates)]
        if not sources:
            return self
        return replace(
            self,
            rates={**self.rates, **new_rates},
            sources={**self.sources, **dict.fromkeys(sources, STATED)},
            **dict(changed.values()),  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of some kind in a node. Overrides of the user are already in its kind (`with_overrides`)."""

    id: str
    node: str
    kind: DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host. Everything that is None is inferred from the kinds of its devices.

    Attributes:
        interconnect: between its devices; inferred: their peer interconnect (NVLink) if both have the same, else
            the bus of each (PCIe).
        nic: one of its NICs; inferred: the cluster's interconnect, else the fastest of what is typical for its devices.
        nics: how many NICs it has; its devices, in order, are dealt to them in equal blocks.
        sockets: how many sockets it has; its devices, in order, are dealt to them in equal blocks.
        socket_bus: between its sockets; needed if it has several.
        domain: the fast domain that it shares with other nodes, whose devices reach each other over their peer
            interconnect; empty: its devices alone are one.
    """

    name: str
    interconnect: Interconnect | None = None
    nic: Interconnect | None = None
    nics: int = 1
    sockets: int = 1
    socket_bus: Interconnect | None = None
    domain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOverride:
    """What a user states of the way between two nodes or two devices. What is None stays as inferred.

    Attributes:
        source, target: both names of nodes, or both ids of devices. Of a pair of devices counts before nodes.
        bandwidth: bytes/s of a link that all messages of this pair share. Inside a node it replaces ports and
            buses; between nodes it lies between the two NICs.
        latency_s: seconds, in place of the inferred latency of the whole way.
        jitter: extra latency drawn per message, seconds.
        stall: rare extra time.
        both_ways: whether the same holds from target to source, on a link of its own.
    """

    source: str
    target: str
    bandwidth: float | None = None
    latency_s: float | None = None
    jitter: Distribution | None = None
    stall: RareDelay | None = None
    both_ways: bool = True
