"""Checks across the keys of the hardware section: names, ids, links, placement."""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path as File

from hops.cluster.catalog import Catalog
from hops.cluster.interconnect import Topology
from hops.config.distributions import ConstantForm
from hops.config.document import Complaint, Path
from hops.config.hardware import Connection, Hardware
from hops.cost.profile_file import shipped_profiles
from hops.errors import CatalogError
from hops.units import shown

_MOST_DEVICES = 200_000


def check_hardware(hardware: Hardware, catalog: Catalog | None) -> Iterator[Complaint]:
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
    if catalog is not None:
        yield from _topologies(hardware, catalog)


def _names(hardware: Hardware) -> Iterator[Complaint]:
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


def _placement(hardware: Hardware) -> Iterator[Complaint]:
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


def _links(hardware: Hardware) -> Iterator[Complaint]:
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


def _drawn(hardware: Hardware) -> Iterator[Complaint]:
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


def _topologies(hardware: Hardware, catalog: Catalog) -> Iterator[Complaint]:
    connections: list[tuple[Path, Connection | None, bool]] = [
        (("hardware", "interconnect"), hardware.interconnect, True)
    ]
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
