"""Nodes and stated links: what a user says about hosts beyond the devices that are in them."""

from dataclasses import dataclass

from hops.cluster.interconnect import Interconnect
from hops.cluster.network import Stall
from hops.draws import Distribution


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
    """

    name: str
    interconnect: Interconnect | None = None
    nic: Interconnect | None = None
    nics: int = 1
    sockets: int = 1
    socket_bus: Interconnect | None = None


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
    stall: Stall | None = None
    both_ways: bool = True
