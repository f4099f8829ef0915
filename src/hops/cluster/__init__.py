"""The cluster: devices, hosts, links, and the routes between them."""

from hops.cluster.catalog import Catalog
from hops.cluster.cluster import Cluster, Locality
from hops.cluster.device import PRECISIONS, Device, DeviceKind
from hops.cluster.interconnect import Interconnect, Topology
from hops.cluster.network import Link, Network, Route, Stall
from hops.cluster.node import LinkOverride, Node
from hops.cluster.paths import Path
from hops.cluster.rows import device_rows, interconnect_rows
from hops.cluster.source import Source

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
    "Route",
    "Source",
    "Stall",
    "Topology",
    "device_rows",
    "interconnect_rows",
]
