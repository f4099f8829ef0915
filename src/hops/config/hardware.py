"""The hardware section: which devices sit in which nodes, what connects them, which rank runs where."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from hops.cluster.catalog import Catalog
from hops.config.distributions import Time
from hops.config.fields import (
    Bandwidth,
    Bytes,
    Count,
    Flag,
    FlopRate,
    InputFile,
    Name,
    Number,
    Probability,
    Seconds,
    Section,
    beside,
    known,
    problem,
    short_for,
)
from hops.cost.profile_file import shipped_profile, shipped_profiles


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
    return str(shipped_profile(name)) if name in shipped_profiles() else beside(name, info)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host of the cluster: its name, ids and types of its devices, and the entry it comes from."""

    name: str
    device_ids: tuple[str, ...]
    devices: tuple[DeviceEntry, ...]
    entry: NodeEntry


class Hardware(Section):
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
