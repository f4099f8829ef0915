"""The hardware section: which devices sit in which nodes, what connects them, which rank runs where."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path as File
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from hops.cost.profile import shipped_profile, shipped_profiles
from hops.decode.document import Complaint, Path
from hops.decode.quantities import (
    Bandwidth,
    Bytes,
    Count,
    Flag,
    FlopRate,
    Name,
    Number,
    Probability,
    Seconds,
    Section,
    problem,
    short_for,
)
from hops.errors import CatalogError
from hops.hardware.catalog import Catalog
from hops.hardware.devices import Topology
from hops.spec.context import InputFile, from_folder, known
from hops.spec.distributions import ConstantForm, Time
from hops.units import shown


class StallForm(Section):
    """Rare extra time of messages."""

    probability: Probability = Field(description="chance that a message stalls")
    extra: Time = Field(description="how much longer it then takes")


class Connection(Section):
    """An interconnect by catalog name, by figures, or by name with some figures changed."""

    name: Annotated[Name, known(Catalog.interconnect)] | None = Field(
        default=None, description="catalog name (`hops list links`)"
    )
    bandwidth: Bandwidth | None = Field(default=None, description="one direction")
    latency: Time | None = Field(default=None, description="fixed time of a message")
    stall: StallForm | None = Field(default=None, description="rare extra time")

    @model_validator(mode="after")
    def _says_something(self) -> "Connection":
        if self.name is None and self.bandwidth is None:
            raise problem("neither name nor bandwidth, expected one of them", "add bandwidth: 25 Gbit/s, for example")
        return self


ConnectionField = Annotated[Connection, short_for("name", Connection)]


class LinkEntry(Connection):
    """What connects two devices, or two nodes, in place of the default."""

    between: tuple[Name, Name] = Field(description="two device ids, or two node names")
    both_ways: Flag = Field(default=True, description="false: only from the first to the second")

    @model_validator(mode="after")
    def _says_something(self) -> "LinkEntry":
        if {self.name, self.bandwidth, self.latency, self.stall} == {None}:
            raise problem("states nothing, expected name, bandwidth, latency or stall", "add one, or remove the link")
        return self


class DeviceEntry(Section):
    """Devices of one type in a node; figures given here replace the catalog's."""

    type: Annotated[Name, known(Catalog.device)] = Field(description="catalog name (`hops list devices`)")
    count: Count = Field(default=1, description="how many of them")
    id: Name | None = Field(default=None, description="id for placement and links; default: node/number")
    memory: Bytes | None = Field(default=None, description="capacity; default: the catalog's")
    memory_bandwidth: Bandwidth | None = Field(default=None, description="default: the catalog's")
    peak: FlopRate | None = Field(
        default=None, description="dense rate at the pipeline's precision; default: the catalog's"
    )
    launch_overhead: Seconds | None = Field(default=None, description="of a kernel; default: the catalog's")
    layer_overhead: Seconds | None = Field(default=None, description="of the host, per layer; default: the catalog's")
    price_per_hour: Number | None = Field(default=None, description="money per device hour; default: the catalog's")


def _profile_file(name: str, info: ValidationInfo) -> str:
    """A shipped profile by its name, else a file beside the spec."""
    return str(shipped_profile(name)) if name in shipped_profiles() else from_folder(name, info)


ProfileFile = Annotated[Name, AfterValidator(_profile_file)]
DeviceField = Annotated[DeviceEntry, short_for("type", DeviceEntry)]


class NodeEntry(Section):
    """One host, or `count` hosts that are alike."""

    name: Name | None = Field(default=None, description="default: node0, node1, ...; with count, a number is added")
    instance_type: Name | None = Field(
        default=None,
        description="kind of host, such as g5.2xlarge, by which a profile knows it; default: one seen with its devices",
    )
    count: Count = Field(default=1, description="how many such hosts")
    devices: tuple[DeviceField, ...] = Field(min_length=1, description="what the host holds, in order")
    interconnect: ConnectionField | None = Field(
        default=None, description="between its devices; default: the catalog's peer interconnect, or bus"
    )
    nic: ConnectionField | None = Field(default=None, description="shared by its devices; default: the catalog's")
    nics: Count = Field(default=1, description="how many NICs; devices are dealt to them in equal blocks")
    sockets: Count = Field(default=1, description="how many sockets; devices are dealt to them in equal blocks")
    socket_bus: ConnectionField | None = Field(default=None, description="between its sockets; needed if several")


class DomainsSection(Section):
    """Hosts whose devices are joined by one fast network, such as 18 hosts of 4 devices (NVL72)."""

    hosts: Count = Field(description="consecutive hosts of a domain")
    interconnect: ConnectionField | None = Field(
        default=None, description="between all devices of a domain; default: the catalog's peer interconnect"
    )


class FabricSection(Section):
    """What lies between hosts: pods within which nothing blocks, and less bandwidth from one to another."""

    pod: Count = Field(description="consecutive hosts of a pod; the last one may be smaller")
    oversubscription: Annotated[float, Field(strict=True, ge=1, le=1000)] = Field(
        default=1.0, description="bandwidth of a pod's hosts over what leads out of it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host of the cluster: its name, ids and types of its devices, and the entry it comes from."""

    name: str
    device_ids: tuple[str, ...]
    devices: tuple[DeviceEntry, ...]
    entry: NodeEntry


class HardwareSection(Section):
    """Devices, nodes, links, and the rank-to-device placement."""

    catalog: tuple[InputFile, ...] = Field(default=(), description="own catalog files, beside the spec")
    profile: ProfileFile | None = Field(
        default=None, description="fitted costs: a file written by `hops calibrate`, or a shipped one: `megatron-aws`"
    )
    transport: Literal["rdma", "sockets"] = Field(
        default="rdma", description="between hosts; sockets: no faster than one core moves over TCP"
    )
    nodes: tuple[NodeEntry, ...] = Field(min_length=1, description="the hosts")
    interconnect: ConnectionField | None = Field(default=None, description="between nodes; default: their NICs")
    domains: DomainsSection | None = Field(default=None, description="fast domains larger than a host; default: none")
    fabric: FabricSection | None = Field(default=None, description="between hosts; default: it blocks nothing")
    links: tuple[LinkEntry, ...] = Field(default=(), description="connections that differ from the default")
    placement: tuple[Name, ...] | None = Field(default=None, description="device ids in rank order; default: as listed")

    def hosts(self) -> tuple[Host, ...]:
        """All hosts with names and device ids given: nodes and devices written with `count` are listed one by one."""
        hosts: list[Host] = []
        for node in self.nodes:
            for number in range(node.count):
                name = f"node{len(hosts)}" if node.name is None else node.name + (str(number) if node.count > 1 else "")
                hosts.append(_host(name, node))
        return tuple(hosts)

    def device_ids(self) -> tuple[str, ...]:
        """Ids of all devices, in the order listed."""
        return tuple(each for host in self.hosts() for each in host.device_ids)

    def ranks(self) -> tuple[str, ...]:
        """The device id of every rank: the placement, or all devices as listed."""
        return self.device_ids() if self.placement is None else self.placement


def _host(name: str, node: NodeEntry) -> Host:
    devices = tuple(entry for entry in node.devices for _ in range(entry.count))
    ids: list[str] = []
    for entry in node.devices:
        for number in range(entry.count):
            if entry.id is None:
                ids.append(f"{name}/{len(ids)}")
            else:
                ids.append(entry.id + (str(number) if entry.count > 1 else ""))
    return Host(name=name, device_ids=tuple(ids), devices=devices, entry=node)


_MOST_DEVICES = 200_000


def check_hardware(hardware: HardwareSection, catalog: Catalog | None) -> Iterator[Complaint]:
    total = sum(node.count * sum(entry.count for entry in node.devices) for node in hardware.nodes)
    if total > _MOST_DEVICES:
        what = f"got {total} devices, expected at most {_MOST_DEVICES}; for copies use optimizer.data_parallel"
        yield Complaint(path=("hardware", "nodes"), what=what)
        return
    if hardware.profile is not None and not File(hardware.profile).is_file():
        shipped = ", ".join(shipped_profiles())
        missing = f"there is no file {hardware.profile!r}"
        what = f"{missing}, expected a profile; `hops calibrate` writes one, or: {shipped}"
        yield Complaint(path=("hardware", "profile"), what=what)
    yield from _names(hardware)
    yield from _placement(hardware)
    yield from _links(hardware)
    yield from _drawn(hardware)
    yield from _domains(hardware)
    if catalog is not None:
        yield from _topologies(hardware, catalog)


def _names(hardware: HardwareSection) -> Iterator[Complaint]:
    hosts = hardware.hosts()
    nodes = {name for name, times in Counter(host.name for host in hosts).items() if times > 1}
    ids = {each for each, times in Counter(hardware.device_ids()).items() if times > 1}
    clashes = set(hardware.device_ids()) & {host.name for host in hosts}
    for index, node in enumerate(hardware.nodes):
        own = [host for host in hosts if host.entry is node]
        path = ("hardware", "nodes", index)
        for name in sorted(nodes & {host.name for host in own}):
            yield Complaint(path=(*path, "name"), what=f"the node name {name} is used twice; rename one")
        for each in sorted(
            (ids | clashes) & {each for host in own if host.name not in nodes for each in host.device_ids}
        ):
            other = "a device and a node" if each in clashes else "two devices"
            yield Complaint(
                path=(*path, "devices"), what=f"the id {each} belongs to {other}; give them ids that differ"
            )


def _placement(hardware: HardwareSection) -> Iterator[Complaint]:
    ids = hardware.device_ids()
    known = set(ids)
    if hardware.placement is not None and not hardware.placement:
        yield Complaint(path=("hardware", "placement"), what="got an empty list, expected a device id for every rank")
    rank_of: dict[str, int] = {}
    for rank, each in enumerate(hardware.placement or ()):
        path = ("hardware", "placement", rank)
        if each not in known:
            yield Complaint(path=path, what=_unknown("device id", each, ids))
        elif each in rank_of:
            what = f"the device {each} is used twice, by ranks {rank_of[each]} and {rank}, expected one rank per device"
            yield Complaint(path=path, what=what)
        rank_of.setdefault(each, rank)


def _links(hardware: HardwareSection) -> Iterator[Complaint]:
    ids = hardware.device_ids()
    nodes = tuple(host.name for host in hardware.hosts())
    known_ids, known_nodes = set(ids), set(nodes)
    stated: set[tuple[str, str]] = set()
    for index, link in enumerate(hardware.links):
        path = ("hardware", "links", index, "between")
        ends = [(end, end in known_nodes, end in known_ids) for end in link.between]
        strangers = [(n, end) for n, (end, is_node, is_device) in enumerate(ends) if not is_node and not is_device]
        for n, end in strangers:
            yield Complaint(path=(*path, n), what=_unknown("node or device id", end, (*nodes, *ids)))
        first, second = link.between
        if first == second:
            yield Complaint(path=path, what=f"got {first} at both ends, expected two different ones")
        elif not strangers and ends[0][1] != ends[1][1]:
            yield Complaint(path=path, what="got a node and a device, expected two nodes or two devices")
        pairs = {(first, second), (second, first)} if link.both_ways else {(first, second)}
        if pairs & stated:
            yield Complaint(path=path, what=f"the link between {first} and {second} is stated twice; remove one")
        stated |= pairs


def _domains(hardware: HardwareSection) -> Iterator[Complaint]:
    hosts = sum(node.count for node in hardware.nodes)
    if hardware.domains is not None and hosts % hardware.domains.hosts:
        what = f"got {hardware.domains.hosts}, expected a divisor of the {hosts} hosts; change it or hardware.nodes"
        yield Complaint(path=("hardware", "domains", "hosts"), what=what)
    if hardware.domains is not None:
        yield from steady(hardware.domains.interconnect, ("hardware", "domains", "interconnect"))


def _drawn(hardware: HardwareSection) -> Iterator[Complaint]:
    """Random latency and stalls belong to messages between nodes or over a stated link, not to a NIC or a bus."""
    for index, node in enumerate(hardware.nodes):
        for key in ("nic", "interconnect", "socket_bus"):
            yield from steady(getattr(node, key), ("hardware", "nodes", index, key))


def steady(connection: Connection | None, path: Path) -> Iterator[Complaint]:
    """Complaints about what is drawn in a connection that must not vary."""
    fix = "state it at hardware.interconnect or hardware.links, where messages vary"
    if connection is not None and connection.stall is not None:
        yield Complaint(path=(*path, "stall"), what=f"stalls cannot be stated here; {fix}")
    if connection is not None and not isinstance(connection.latency, ConstantForm | None):
        yield Complaint(path=(*path, "latency"), what=f"got a distribution, expected a fixed time; {fix}")


def _topologies(hardware: HardwareSection, catalog: Catalog) -> Iterator[Complaint]:
    connections: list[tuple[Path, Connection | None, bool]] = [
        (("hardware", "interconnect"), hardware.interconnect, True)
    ]
    if hardware.domains is not None:
        connections.append((("hardware", "domains", "interconnect"), hardware.domains.interconnect, False))
    for index, node in enumerate(hardware.nodes):
        path = ("hardware", "nodes", index)
        connections += [((*path, "nic"), node.nic, True), ((*path, "interconnect"), node.interconnect, False)]
    for place, connection, network in connections:
        if connection is None or connection.name is None:
            continue
        try:
            found = catalog.interconnect(connection.name)
        except CatalogError:
            continue  # an unknown name is complained about where it stands
        if (found.topology is Topology.NETWORK) is not network:
            wanted = "between nodes, such as infiniband-ndr" if network else "within a node, such as nvlink4"
            what = f"got {shown(connection.name)}, expected an interconnect {wanted} (`hops list links`)"
            yield Complaint(path=(*place, "name"), what=what)


def _unknown(what: str, got: str, known: Iterable[str]) -> str:
    names = list(dict.fromkeys(known))
    near = get_close_matches(got, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"unknown {what}, got {shown(got)}, expected one of {listed}{hint}"
