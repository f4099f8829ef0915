"""A cluster: devices in nodes, and the way from any device to any other."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import permutations
from math import inf

from hops.distributions import Distribution
from hops.errors import UsageError
from hops.hardware.catalog import unknown
from hops.hardware.devices import Device, Interconnect, LinkOverride, Node, Topology
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.hardware.routes import Endpoint, Path, have_ports_alike, path_between_nodes, path_inside_node


class Locality(StrEnum):
    """How near two devices are."""

    SAME_DEVICE = "same device"
    SAME_SOCKET = "same socket"
    SAME_NODE = "same node"
    CROSS_NODE = "cross node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Devices, the nodes they are in, and what connects them.

    Attributes:
        devices: ids are unique. A node that only devices mention has everything inferred.
        nodes: what is stated of nodes.
        interconnect: between nodes, a fabric that blocks nothing: NICs that are not stated run at its bandwidth,
            stated ones at no more, and its latency is that of every way between nodes. None: the NICs decide.
        links: what is stated of single pairs.
        jitter, stall: of every message between nodes.

    Raises UsageError for names that are unknown, doubled or ambiguous, and for unfit interconnects.
    """

    devices: tuple[Device, ...]
    nodes: tuple[Node, ...] = ()
    interconnect: Interconnect | None = None
    links: tuple[LinkOverride, ...] = ()
    jitter: Distribution | None = None
    stall: RareDelay | None = None
    _places: Mapping[str, Endpoint] = field(init=False, repr=False, compare=False)
    _overrides: Mapping[tuple[str, str], LinkOverride] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_unique("device", (device.id for device in self.devices))
        _check_unique("node", (node.name for node in self.nodes))
        _check_topology("interconnect of the cluster", self.interconnect, Topology.NETWORK)
        members: dict[str, list[Device]] = {}
        for device in self.devices:
            members.setdefault(device.node, []).append(device)
        for node in self.nodes:
            _check_node(node, members)
        _check_domains(self.nodes, members)
        _check_names(members)
        overrides = _directed(self.links, members)
        object.__setattr__(self, "_overrides", overrides)
        object.__setattr__(self, "_places", self._place_all(members, _fastest_links(overrides.values(), members)))

    def device(self, device_id: str) -> Device:
        """The device of that id. Raises UsageError, with the nearest id, if there is none."""
        return self._place(device_id).device

    def nic(self, device_id: str) -> Interconnect:
        """The NIC that a device's messages leave its host by. Raises UsageError for an unknown id."""
        return self._place(device_id).nic

    def nics(self, device_id: str) -> Interconnect:
        """All NICs of a device's host as one. Raises UsageError for an unknown id."""
        place = self._place(device_id)
        return replace(place.nic, bandwidth=place.nic.bandwidth * place.node.nics)

    def inside(self, device_id: str) -> Interconnect:
        """What connects a device to the others of its domain. Raises UsageError for an unknown id."""
        place = self._place(device_id)
        return place.node.interconnect or place.device.kind.peer or place.device.kind.bus

    def domain(self, device_id: str) -> str:
        """The fast domain of a device: its node where that shares none. Raises UsageError for an unknown id."""
        node = self._place(device_id).node
        return node.domain or node.name

    def nic_links(self, device_id: str) -> tuple[str, str]:
        """Names of the links out of and into the NIC of a device. Raises UsageError for an unknown id."""
        place = self._place(device_id)
        return place.nic_port("out").name, place.nic_port("in").name

    def locality(self, source_id: str, target_id: str) -> Locality:
        """How near two devices are. Raises UsageError for an unknown id."""
        source, target = self._place(source_id), self._place(target_id)
        if source is target:
            return Locality.SAME_DEVICE
        if source.node.name != target.node.name:
            return Locality.CROSS_NODE
        return Locality.SAME_SOCKET if source.socket == target.socket else Locality.SAME_NODE

    def route(self, source_id: str, target_id: str) -> Path:
        """What a message from one device to another crosses. Raises UsageError for an unknown id."""
        source, target = self._place(source_id), self._place(target_id)
        if source is target:
            return Path()
        stated = self._overrides.get((source_id, target_id))
        if source.node.name == target.node.name:
            return path_inside_node(source, target, stated)
        stated = stated or self._overrides.get((source.node.name, target.node.name))
        if stated is None and source.node.domain and source.node.domain == target.node.domain:
            return path_inside_node(source, target, None)
        path = path_between_nodes(source, target, self.interconnect, stated)
        return replace(
            path,
            jitter=self.jitter if path.jitter is None else path.jitter,
            stall=self.stall if path.stall is None else path.stall,
        )

    def network(self, placement: Sequence[str]) -> Network:
        """The network of ranks 0, 1, ... on the devices of these ids: all links between them, routes found when used.

        Links have the order in which all pairs of ranks, one after another, would come upon them. Ranks on one device
        have a route without links and latency. Raises UsageError for an unknown id.
        """
        index_of: dict[Link, int] = {}
        for pair in self._first_uses(placement):
            for link in self.route(*pair).links:
                index_of.setdefault(link, len(index_of))
        return Network(links=tuple(index_of), routes=RoutesOnDemand(self, tuple(placement), index_of))

    def _first_uses(self, placement: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Pairs of device ids, source after source, without those that certainly cross no link for the first time.

        Between nodes a message crosses the source's NIC, the target's NIC and what is stated between the two; inside a
        node of devices alike, the ports of both. So a source needs to go to one other node, to NICs that nothing has
        entered yet, to the first of its own node (which itself goes to all), and along what is stated.
        """
        places = {device_id: self._place(device_id) for device_id in placement}
        if any(place.node.domain for place in places.values()):  # which nodes it leaves by its NIC is not alike
            yield from permutations(places, 2)
            return
        of_node: dict[str, list[str]] = {}
        new_nic: dict[tuple[str, int], str] = {}  # the first device behind each NIC that nothing has entered
        for device_id, place in places.items():
            of_node.setdefault(place.node.name, []).append(device_id)
            new_nic.setdefault((place.node.name, place.nic_index), device_id)
        alike = {node for node, ids in of_node.items() if have_ports_alike([places[each] for each in ids])}
        named = defaultdict[str, list[str]](list, {device_id: [device_id] for device_id in places} | of_node)
        stated = defaultdict[str, list[str]](list)  # by device or node, where links lead
        for (source, target), link in self._overrides.items():
            if link.bandwidth is not None:
                stated[source] += named[target]
                alike -= {places[source].node.name} if source in places else set()
        first_of_nodes = [ids[0] for ids in of_node.values()][:2]
        rank_of = {device_id: rank for rank, device_id in enumerate(places)}
        for source, place in places.items():
            node = place.node.name
            inside = of_node[node][:1] if node in alike and source != of_node[node][0] else of_node[node]
            outside = [each for each in first_of_nodes if places[each].node.name != node][:1]
            outside += [device_id for (name, _), device_id in new_nic.items() if name != node]
            new_nic = {port: device_id for port, device_id in new_nic.items() if port[0] == node}
            targets = {*inside, *outside, *stated[source], *stated[node]} - {source}
            yield from ((source, target) for target in sorted(targets, key=rank_of.__getitem__))

    def _place(self, device_id: str) -> Endpoint:
        if device_id not in self._places:
            raise UsageError(unknown("device", device_id, self._places))
        return self._places[device_id]

    def _place_all(self, members: Mapping[str, list[Device]], fastest: Mapping[str, float]) -> dict[str, Endpoint]:
        stated = {node.name: node for node in self.nodes}
        places = {}
        for name, devices in members.items():
            node = stated[name] if name in stated else Node(name=name)
            nic = self._nic(node, devices, fastest[name])
            for index, device in enumerate(devices):
                places[device.id] = Endpoint(
                    device=device,
                    node=node,
                    nic=nic,
                    nic_index=index * node.nics // len(devices),
                    socket=index * node.sockets // len(devices),
                )
        return places

    def _nic(self, node: Node, devices: Sequence[Device], fastest_stated_link: float) -> Interconnect:
        """A NIC of the node. One that nobody stated is at least as fast as a link that somebody stated."""
        if node.nic is not None:
            fabric = node.nic.bandwidth if self.interconnect is None else self.interconnect.bandwidth
            return replace(node.nic, bandwidth=min(node.nic.bandwidth, fabric))
        typical = max((device.kind.nic for device in devices), key=lambda nic: nic.bandwidth)
        nic = self.interconnect or typical
        return replace(nic, bandwidth=max(nic.bandwidth, fastest_stated_link))


class RoutesOnDemand(Mapping[tuple[int, int], Route]):
    """The route of every ordered pair of ranks, found when it is asked for: a thousand ranks have a million pairs."""

    def __init__(self, cluster: Cluster, placement: tuple[str, ...], index_of: dict[Link, int]) -> None:
        self._cluster = cluster
        self._placement = placement
        self._index_of = index_of
        self._found: dict[tuple[str, str], Route] = {}

    def __getitem__(self, pair: tuple[int, int]) -> Route:
        if pair not in self:
            raise KeyError(pair)
        ends = (self._placement[pair[0]], self._placement[pair[1]])
        if ends not in self._found:
            path = self._cluster.route(*ends)
            links = tuple(self._index_of[link] for link in path.links)
            self._found[ends] = Route(links=links, latency_s=path.latency_s, jitter=path.jitter, stall=path.stall)
        return self._found[ends]

    def __contains__(self, pair: object) -> bool:
        ranks = range(len(self._placement))
        return (
            isinstance(pair, tuple) and len(pair) == 2 and pair[0] in ranks and pair[1] in ranks and pair[0] != pair[1]
        )

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return permutations(range(len(self._placement)), 2)

    def __len__(self) -> int:
        return len(self._placement) * (len(self._placement) - 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._placement)} ranks)"


def _fastest_links(links: Iterable[LinkOverride], members: Mapping[str, list[Device]]) -> dict[str, float]:
    """Per node, bytes/s of the fastest link that is stated between it and another node; 0 if there is none."""
    fastest = dict.fromkeys(members, 0.0)
    node_of = {device.id: device.node for devices in members.values() for device in devices}
    node_of |= {name: name for name in members}
    for link in links:
        ends = (node_of[link.source], node_of[link.target])
        if link.bandwidth is not None and ends[0] != ends[1]:
            for node in ends:
                fastest[node] = max(fastest[node], link.bandwidth)
    return fastest


def _directed(
    links: Iterable[LinkOverride], members: Mapping[str, list[Device]]
) -> dict[tuple[str, str], LinkOverride]:
    device_ids = [device.id for devices in members.values() for device in devices]
    directed: dict[tuple[str, str], LinkOverride] = {}
    for link in links:
        _check_link(link, device_ids, members)
        ends = (link.source, link.target)
        for pair in (ends, ends[::-1]) if link.both_ways else (ends,):
            if pair in directed:
                raise UsageError(
                    f"link from {pair[0]!r} to {pair[1]!r} is stated twice: keep one, or set both_ways: false"
                )
            directed[pair] = link
    return directed


def _check_link(link: LinkOverride, device_ids: Iterable[str], node_names: Iterable[str]) -> None:
    if link.bandwidth is not None and not link.bandwidth > 0:
        raise UsageError(
            f"link {link.source!r} to {link.target!r}: got a bandwidth of {link.bandwidth} B/s, expected more than 0"
        )
    if link.latency_s is not None and not 0 <= link.latency_s < inf:
        raise UsageError(
            f"link {link.source!r} to {link.target!r}: got a latency of {link.latency_s} s, expected at least 0"
        )
    ends = {link.source, link.target}
    if len(ends) == 1:
        raise UsageError(f"link from {link.source!r} to itself: expected two different nodes or two different devices")
    if ends <= set(device_ids) or ends <= set(node_names):
        return
    known = [*device_ids, *node_names]
    for end in (link.source, link.target):
        if end not in known:
            raise UsageError(f"link {link.source!r} to {link.target!r}: {unknown('node or device', end, known)}")
    raise UsageError(
        f"link {link.source!r} to {link.target!r}: got a node and a device, expected two nodes or two devices"
    )


def _check_unique(family: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(f"{family} {name!r} is there {count} times: give each {family} a name of its own")


def _check_names(members: Mapping[str, list[Device]]) -> None:
    for devices in members.values():
        for device in devices:
            if device.id in members and (device.id != device.node or len(devices) > 1):
                raise UsageError(f"{device.id!r} is both a node and a device: rename one, or a link to it is ambiguous")


def _check_node(node: Node, members: Mapping[str, list[Device]]) -> None:
    if node.name not in members:
        raise UsageError(f"node {node.name!r} has no device: {unknown('node', node.name, members)}")
    for count, what in ((node.nics, "NICs"), (node.sockets, "sockets")):
        if count < 1:
            raise UsageError(f"node {node.name!r}: got {count} {what}, expected at least 1")
    inside = (Topology.SWITCH, Topology.MESH, Topology.ROOT)
    _check_topology(f"interconnect of node {node.name!r}", node.interconnect, *inside)
    _check_topology(f"NIC of node {node.name!r}", node.nic, Topology.NETWORK)
    _check_topology(f"socket bus of node {node.name!r}", node.socket_bus, Topology.SOCKET)
    if node.sockets > 1 and node.socket_bus is None:
        raise UsageError(f"node {node.name!r} has {node.sockets} sockets and no socket bus: state one, such as upi")


def _check_domains(nodes: Iterable[Node], members: Mapping[str, list[Device]]) -> None:
    wires: dict[str, dict[str, str]] = {}  # by domain: name of what joins its devices, and a node that has it
    for node in nodes:
        for device in members[node.name] if node.domain else ():
            joins = node.interconnect or device.kind.peer
            if joins is None:
                raise UsageError(
                    f"node {node.name!r} is in the domain {node.domain!r}, but nothing joins {device.kind.name} across "
                    "hosts: state the interconnect of the domain, such as nvlink5"
                )
            wires.setdefault(node.domain, {}).setdefault(joins.name, node.name)
    for domain, found in wires.items():
        if len(found) > 1:
            got = " and ".join(f"{wire} ({node})" for wire, node in found.items())
            raise UsageError(f"domain {domain!r}: got {got}, expected one interconnect; state that of the domain")


def _check_topology(what: str, interconnect: Interconnect | None, *allowed: Topology) -> None:
    if interconnect is not None and interconnect.topology not in allowed:
        expected = " or ".join(allowed)
        raise UsageError(
            f"{what}: got {interconnect.name!r} of topology {interconnect.topology}, expected topology {expected}"
        )
