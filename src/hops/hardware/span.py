"""Spans: how the groups of a mesh lie on hosts and fast domains, and over which wires their members exchange."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from hops.axes import Axis
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Interconnect, Topology
from hops.hardware.mesh import Ints, Mesh

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A group on the topology: so many members inside one fast domain, so many domains.

    Attributes:
        members: of the group.
        per_domain: the most of them that are in one domain.
        domains: that they are spread over.
        inside: between members of a domain.
        outside: between domains: a NIC.
        port_bytes_per_s: what one member sends to others of its domain at most, one direction.
        nic_bytes_per_s: each member's part of the NICs of its host while all ranks there send, one direction.
        per_pod: the most members in one pod of hosts, within which the network blocks nothing.
        oversubscription: NICs of a pod's hosts over what leads out of it, where the group leaves its pod; else 1.
    """

    members: int = 1
    per_domain: int = 1
    domains: int = 1
    inside: Interconnect | None = None
    outside: Interconnect | None = None
    port_bytes_per_s: float = inf
    nic_bytes_per_s: float = inf
    per_pod: int = 1
    oversubscription: float = 1.0

    def __str__(self) -> str:
        """Such as `8 in one domain`, or `16 over 2 domains, up to 8 in each`."""
        if self.members == 1:
            return "1"
        if self.domains == 1:
            return f"{self.members} in one domain"
        return f"{self.members} over {self.domains} domains, up to {self.per_domain} in each"


ALONE = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Between hosts: pods of so many consecutive hosts (None: all), and NICs of a pod over what leads out of it."""

    pod_hosts: int | None = None
    oversubscription: float = 1.0


FLAT = Fabric()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """Where every rank of a mesh is: arrays of shape (ranks,), from 0.

    Attributes:
        device: index of its device among those listed; a copy that is elsewhere has the devices of the first one.
        host, domain: numbers that differ between hosts and between domains.
        outside: what each device of `listed` reaches other hosts by: all NICs of its host as one.
        fabric: what lies between hosts.
    """

    mesh: Mesh
    cluster: Cluster
    listed: tuple[str, ...]
    device: Ints
    host: Ints
    domain: Ints
    outside: tuple[Interconnect, ...]
    fabric: Fabric

    @classmethod
    def of(
        cls,
        mesh: Mesh,
        cluster: Cluster,
        listed: Sequence[str],
        *,
        fabric: Fabric = FLAT,
        between: Interconnect | None = None,
    ) -> "Placement":
        """The mesh on devices of these ids, those of all its ranks or of one copy, whose likes are on other hosts.

        `between`: what all hosts are joined by, in place of their NICs.
        """
        hosts = _numbered([cluster.device(each).node for each in listed])
        domains = _numbered([cluster.domain(each) for each in listed])
        if len(listed) == mesh.num_ranks:
            device = np.arange(mesh.num_ranks)
            copy = np.zeros(mesh.num_ranks, dtype=np.int64)
        else:
            copy, device = _copies(mesh)
        return cls(
            mesh=mesh,
            cluster=cluster,
            listed=tuple(listed),
            device=device,
            host=hosts[device] + copy * (hosts.max() + 1),
            domain=domains[device] + copy * (domains.max() + 1),
            outside=tuple(between or cluster.nics(each) for each in listed),
            fabric=fabric,
        )

    def spans(self, *axes: Axis, inner: int | None = None, outer: int | None = None) -> tuple[Span, ...]:
        """How the group of every pipeline position lies along the axes: the widest spread, the slowest wires.

        `inner`: cut each group into parts of so many consecutive members; `outer`: groups of one member of each of so
        many parts.
        """
        mesh = self.mesh
        groups = mesh.groups(*axes)
        if inner is not None:
            groups = groups.reshape(-1, inner)
        if outer is not None:
            groups = groups.reshape(len(groups), outer, -1).transpose(0, 2, 1).reshape(-1, outer)
        if groups.shape[1] == 1:
            return (ALONE,) * mesh.pipeline
        position = np.empty(mesh.num_ranks, dtype=np.int64)
        position[mesh.positions()] = np.arange(mesh.pipeline)[:, None]
        in_domain = _lies(self.domain[groups])
        in_pod = in_domain if self.fabric.pod_hosts is None else _lies(self.host[groups] // self.fabric.pod_hosts)
        lies, shares = np.hstack([in_domain, in_pod]), self._nic_shares()
        return tuple(self._span(groups[rows], lies[rows], shares) for rows in _rows_by(position[groups[:, 0]]))

    def _span(self, groups: Ints, lies: Ints, shares: Floats) -> Span:
        """The span of groups of one position. `lies`: per domain, domains, per pod, pods of each."""
        per_domain, domains, per_pod, pods = lies[np.lexsort((lies[:, 2], lies[:, 0], -lies[:, 3], -lies[:, 1]))[0]]
        ranks = groups.ravel()
        devices = np.unique(self.device[ranks])
        inside = min((self.cluster.inside(self.listed[each]) for each in devices), key=_bandwidth)
        ports = per_domain - 1 if inside.topology is Topology.MESH else 1  # a wire to each of the others
        leaves_pod = self.fabric.pod_hosts is not None and pods > 1
        return Span(
            members=groups.shape[1],
            per_domain=int(per_domain),
            domains=int(domains),
            inside=inside if per_domain > 1 else None,
            outside=min((self.outside[each] for each in devices), key=_bandwidth) if domains > 1 else None,
            port_bytes_per_s=inside.bandwidth * int(ports) if per_domain > 1 else inf,
            nic_bytes_per_s=float(shares[np.unique(self.host[ranks])].min()) if domains > 1 else inf,
            per_pod=int(per_pod) if leaves_pod else groups.shape[1],
            oversubscription=self.fabric.oversubscription if leaves_pod else 1.0,
        )

    def _nic_shares(self) -> Floats:
        """By host: bytes/s of all its NICs over the ranks that are on it."""
        hosts, first, ranks = np.unique(self.host, return_index=True, return_counts=True)
        shares = np.full(int(hosts.max()) + 1, inf)
        shares[hosts] = [self.outside[each].bandwidth for each in self.device[first]] / ranks
        return shares


def _bandwidth(wire: Interconnect) -> float:
    return wire.bandwidth


def _copies(mesh: Mesh) -> tuple[Ints, Ints]:
    """The copy of every rank, and its place among the ranks of one copy, in the same order without data."""
    copy, device = np.empty(mesh.num_ranks, dtype=np.int64), np.empty(mesh.num_ranks, dtype=np.int64)
    groups = mesh.groups(Axis.DATA)
    groups = groups[groups[:, 0].argsort()]
    copy[groups] = np.arange(mesh.data)[None, :]
    device[groups] = np.arange(len(groups))[:, None]
    return copy, device


def _lies(domains: Ints) -> Ints:
    """Most members in one domain, and number of domains, of every group: shape (groups, 2)."""
    lies = np.empty((len(domains), 2), dtype=np.int64)
    kinds, which = np.unique(domains - domains[:, :1], axis=0, return_inverse=True)  # most groups lie alike
    for number, kind in enumerate(kinds):
        counts = np.unique(kind, return_counts=True)[1]
        lies[which.ravel() == number] = counts.max(), len(counts)
    return lies


def _rows_by(position: Ints) -> list[Ints]:
    """Rows of every position, in the order of the positions."""
    order = np.argsort(position, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(position[order])) + 1)


def _numbered(names: Sequence[str]) -> Ints:
    """A number for each name, in the order of their first appearance."""
    number_of: dict[str, int] = {}
    return np.array([number_of.setdefault(name, len(number_of)) for name in names], dtype=np.int64)
