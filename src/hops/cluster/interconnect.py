"""Interconnects: what connects devices, who shares it, how fast one direction is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hops.cluster.source import Source


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
class Interconnect:
    """One kind of interconnect.

    Attributes:
        bandwidth: bytes/s of one direction of one link or port.
        latency_s: seconds from one end to the other, for one message.
        sources: where each number is from, by its key in the catalog file.
    """

    name: str
    topology: Topology
    bandwidth: float
    latency_s: float
    title: str = ""
    aliases: tuple[str, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict, compare=False, repr=False)
