"""The cluster: devices, hosts, links, and the routes between them."""

from hops.hardware.catalog import Catalog
from hops.hardware.cluster import Cluster, Locality
from hops.hardware.devices import PRECISIONS, Device, DeviceKind, Interconnect, LinkOverride, Node, Source, Topology
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.hardware.routes import Path
from hops.hardware.tables import device_rows, interconnect_rows

__all__ = [
    "PRECISIONS",
    "Catalog",
    "Cluster",
    "Device",
    "DeviceKind",
    "Interconnect",
    "Link",
    "LinkOverride",
    "Locality",
    "Network",
    "Node",
    "Path",
    "RareDelay",
    "Route",
    "Source",
    "Topology",
    "device_rows",
    "interconnect_rows",
]
