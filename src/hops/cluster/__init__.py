"""The cluster: devices, hosts, links, and the routes between them."""

from hops.cluster.network import Link, Network, Route, Stall

__all__ = ["Link", "Network", "Route", "Stall"]
