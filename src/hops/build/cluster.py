"""The hardware section becomes a cluster."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from hops.distributions import Distribution
from hops.hardware.catalog import Catalog
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Device, DeviceKind, Interconnect, LinkOverride, Node, Topology
from hops.hardware.network import RareDelay
from hops.spec.distributions import ConstantForm
from hops.spec.hardware import Connection, DeviceEntry, LinkEntry
from hops.spec.spec import Spec


def load_catalog(spec: Spec) -> Catalog:
    """Our catalog with the spec's own files. Raises CatalogError if one is wrong."""
    own = [Path(name) for name in spec.hardware.catalog]
    return Catalog.load(own) if own else _shipped_catalog()


@cache
def _shipped_catalog() -> Catalog:
    return Catalog.load()


def build_cluster(spec: Spec, catalog: Catalog) -> Cluster:
    """All devices, nodes and links of a spec, with the catalog's numbers where it states none."""
    hardware = spec.hardware
    devices, nodes = [], []
    kinds: dict[int, DeviceKind] = {}  # by entry of the spec
    domains = hardware.domains
    joins = None if domains is None else _optional(domains.interconnect, catalog, Topology.SWITCH)
    for number, host in enumerate(hardware.hosts()):
        entry = host.entry
        nodes.append(
            Node(
                name=host.name,
                interconnect=joins or _optional(entry.interconnect, catalog, Topology.SWITCH),
                nic=_optional(entry.nic, catalog, Topology.NETWORK),
                nics=entry.nics,
                sockets=entry.sockets,
                socket_bus=_optional(entry.socket_bus, catalog, Topology.SOCKET),
                domain="" if domains is None else f"domain{number // domains.hosts}",
            )
        )
        for device_id, device in zip(host.device_ids, host.devices, strict=True):
            if id(device) not in kinds:
                kinds[id(device)] = _device_kind(device, catalog, spec.pipeline.precision)
            devices.append(Device(id=device_id, node=host.name, kind=kinds[id(device)]))
    between = hardware.interconnect
    return Cluster(
        devices=tuple(devices),
        nodes=tuple(nodes),
        interconnect=_optional(between, catalog, Topology.NETWORK),
        links=tuple(_link(link, catalog) for link in hardware.links),
        jitter=None if between is None else _jitter(between),
        stall=None if between is None else _stall(between),
    )


def _device_kind(entry: DeviceEntry, catalog: Catalog, precision: str) -> DeviceKind:
    """The catalog's kind with what the spec states in its place."""
    return catalog.device(entry.type).with_overrides(
        rates=None if entry.peak is None else {precision: entry.peak},
        memory_bytes=entry.memory,
        memory_bandwidth=entry.memory_bandwidth,
        launch_s=entry.launch_overhead,
        layer_s=entry.layer_overhead,
        price_per_hour=entry.price_per_hour,
    )


def interconnect(connection: Connection, catalog: Catalog, topology: Topology) -> Interconnect:
    """The catalog's interconnect with what the spec states in its place, or one made of stated figures alone.

    A latency that is drawn is not part of it (0 here): it is the jitter of the messages.
    """
    if connection.name is None:
        assert connection.bandwidth is not None, "the spec's validation asks for a name or a bandwidth"
        named = Interconnect(name="stated", topology=topology, bandwidth=connection.bandwidth, latency_s=0.0)
    else:
        named = catalog.interconnect(connection.name)
        if connection.bandwidth is not None:
            named = replace(named, bandwidth=connection.bandwidth, measured=())
    latency_s = _latency(connection)
    return named if latency_s is None else replace(named, latency_s=latency_s)


def _optional(connection: Connection | None, catalog: Catalog, topology: Topology) -> Interconnect | None:
    return None if connection is None else interconnect(connection, catalog, topology)


def _link(link: LinkEntry, catalog: Catalog) -> LinkOverride:
    source, target = link.between
    named = None if link.name is None else catalog.interconnect(link.name)
    bandwidth, latency_s = link.bandwidth, _latency(link)
    if named is not None:
        bandwidth = named.bandwidth if bandwidth is None else bandwidth
        latency_s = named.latency_s if latency_s is None else latency_s
    return LinkOverride(
        source=source,
        target=target,
        bandwidth=bandwidth,
        latency_s=latency_s,
        jitter=_jitter(link),
        stall=_stall(link),
        both_ways=link.both_ways,
    )


def _latency(connection: Connection) -> float | None:
    """The fixed part of a stated latency in seconds; 0 if it is drawn, None if it is not stated."""
    if connection.latency is None:
        return None
    return connection.latency.value if isinstance(connection.latency, ConstantForm) else 0.0


def _jitter(connection: Connection) -> Distribution | None:
    """The distribution of a stated latency, if it is drawn."""
    if connection.latency is None or isinstance(connection.latency, ConstantForm):
        return None
    return connection.latency.build()


def _stall(connection: Connection) -> RareDelay | None:
    stall = connection.stall
    return None if stall is None else RareDelay(probability=stall.probability, extra=stall.extra.build())
