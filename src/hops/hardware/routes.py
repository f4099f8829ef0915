"""Paths: the links, latency and disturbances of a message from one device to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from hops.distributions import Distribution
from hops.hardware.devices import Device, Interconnect, LinkOverride, Node, Topology
from hops.hardware.network import Link, RareDelay


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """What a message crosses, in order; no links between ranks on one device."""

    links: tuple[Link, ...] = ()
    latency_s: float = 0.0
    jitter: Distribution | None = None
    stall: RareDelay | None = None

    @property
    def bandwidth(self) -> float:
        """Bytes/s of a message that is alone on the path."""
        return min((link.bandwidth for link in self.links), default=inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a device is in its node: at which socket, and which of the node's NICs it uses."""

    device: Device
    node: Node
    nic: Interconnect
    nic_index: int
    socket: int

    def nic_port(self, direction: str) -> Link:
        number = self.nic_index if self.node.nics > 1 else ""
        return Link(name=f"{self.node.name}.nic{number}.{direction}", bandwidth=self.nic.bandwidth)

    def port(self, interconnect: Interconnect, direction: str) -> Link:
        return Link(name=f"{self.device.id}.{interconnect.name}.{direction}", bandwidth=interconnect.bandwidth)


def path_between_nodes(
    source: Endpoint, target: Endpoint, fabric: Interconnect | None, stated: LinkOverride | None
) -> Path:
    """Out through the source's NIC, over a stated link if there is one, in through the target's NIC.

    An interconnect's latency is from end to end, so without a fabric each of the two NICs brings half of its own.
    """
    latency_s = fabric.latency_s if fabric else (source.nic.latency_s + target.nic.latency_s) / 2
    out, into = source.nic_port("out"), target.nic_port("in")
    if stated is None:
        return Path(links=(out, into), latency_s=latency_s)
    return _stated_path((out, *_stated_link(source, target, stated), into), latency_s, stated)


def have_ports_alike(places: Sequence[Endpoint]) -> bool:
    """Whether each device of a node has one port out and one port in for all others, and nothing else is crossed."""
    node = places[0].node
    if node.sockets > 1 or len({(place.device.kind.peer, place.device.kind.bus) for place in places}) > 1:
        return False
    kind = places[0].device.kind
    return (node.interconnect or kind.peer or kind.bus).topology is not Topology.MESH


def path_inside_node(source: Endpoint, target: Endpoint, stated: LinkOverride | None) -> Path:
    """Over a stated link if there is one, else over the node's own interconnect or the one inferred."""
    inferred = _inferred_inside(source, target)
    if stated is None:
        return inferred
    return _stated_path(_stated_link(source, target, stated) or inferred.links, inferred.latency_s, stated)


def _stated_path(links: tuple[Link, ...], latency_s: float, stated: LinkOverride) -> Path:
    return Path(
        links=links,
        latency_s=latency_s if stated.latency_s is None else stated.latency_s,
        jitter=stated.jitter,
        stall=stated.stall,
    )


def _stated_link(source: Endpoint, target: Endpoint, stated: LinkOverride) -> tuple[Link, ...]:
    if stated.bandwidth is None:
        return ()
    of_devices = {source.device.id, target.device.id} == {stated.source, stated.target}
    ends = (source.device.id, target.device.id) if of_devices else (source.node.name, target.node.name)
    return (Link(name=f"link[{ends[0]}->{ends[1]}]", bandwidth=stated.bandwidth),)


def _inferred_inside(source: Endpoint, target: Endpoint) -> Path:
    node = source.node
    peer = source.device.kind.peer
    if node.interconnect is not None:
        out, into = node.interconnect, node.interconnect
    elif peer is not None and target.device.kind.peer == peer:
        out, into = peer, peer
    else:
        out, into = source.device.kind.bus, target.device.kind.bus
    if out.topology is Topology.MESH:
        name = f"{node.name}.{out.name}[{source.device.id}->{target.device.id}]"
        return Path(links=(Link(name=name, bandwidth=out.bandwidth),), latency_s=out.latency_s)
    ports = source.port(out, "out"), target.port(into, "in")
    latency_s = (out.latency_s + into.latency_s) / 2
    if out.topology is Topology.SWITCH or source.socket == target.socket:
        return Path(links=ports, latency_s=latency_s)
    bus = node.socket_bus
    assert bus is not None, "the cluster has checked that a node with several sockets has a bus between them"
    name = f"{node.name}.{bus.name}[{source.socket}->{target.socket}]"
    crossing = Link(name=name, bandwidth=bus.bandwidth)
    return Path(links=(ports[0], crossing, ports[1]), latency_s=latency_s + bus.latency_s)
