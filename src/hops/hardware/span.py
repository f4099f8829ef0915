"""Spans: how the groups of a mesh lie on hosts and fast domains, and over which wires their members exchange."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from hops.axes import Axis
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Interconnect, Topology
from hops.hardware.mesh import Ints, Mesh


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
    """

    members: int = 1
    per_domain: int = 1
    domains: int = 1
    inside: Interconnect | None = None
    outside: Interconnect | None = None
    port_bytes_per_s: float = inf
    nic_bytes_per_s: float = inf

    def __str__(self) -> str:
        """Such as `8 in 1 domain`, `64 = 64 x 1`, `16 = 2 x 8`."""
        if self.members == 1:
            return "1"
        if self.domains == 1:
            return f"{self.members} in one domain"
        return f"{self.members} over {self.domains} domains, up to {self.per_domain} in each"


ALONE = Span()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """Where every rank of a mesh is: arrays of shape (ranks,), from 0.

    Attributes:
        device: index of its device among those listed; a copy that is elsewhere has the devices of the first one.
        host, domain: numbers that differ between hosts and between domains.
    """

    mesh: Mesh
    cluster: Cluster
    listed: tuple[str, ...]
    device: Ints
    host: Ints
    domain: Ints

    @classmethod
    def of(cls, mesh: Mesh, cluster: Cluster, listed: Sequence[str]) -> "Placement":
        """The mesh on devices of these ids, those of all its ranks or of one copy, whose likes are on other hosts."""
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
        )

    def spans(self, *axes: Axis, groups_of: int | None = None) -> tuple[Span, ...]:
        """How the group of every pipeline position lies along the axes: the widest spread, the slowest wires.

        `groups_of`: cut each group into consecutive parts of so many members (shards held by fewer than all copies).
        """
        mesh = self.mesh
        groups = mesh.groups(*axes)
        if groups_of is not None:
            groups = groups.reshape(-1, groups_of)
        if groups.shape[1] == 1:
            return (ALONE,) * mesh.pipeline
        position = np.empty(mesh.num_ranks, dtype=np.int64)
        position[mesh.positions()] = np.arange(mesh.pipeline)[:, None]
        lies = _lies(self.domain[groups])
        nics = self._nic_shares()
        return tuple(self._span(groups[rows], lies[rows], nics) for rows in _rows_by(position[groups[:, 0]]))

    def _span(self, groups: Ints, lies: Ints, nics: dict[int, float]) -> Span:
        """The span of groups of one position."""
        per_domain, domains = (int(each) for each in lies[np.lexsort((lies[:, 0], -lies[:, 1]))[0]])
        ranks = groups.ravel()
        wires = [self.cluster.inside(self.listed[each]) for each in np.unique(self.device[ranks])]
        inside = min(wires, key=_port_rate)
        ports = per_domain - 1 if inside.topology is Topology.MESH else 1  # a wire to each of the others
        outside = min(
            (self.cluster.nic(self.listed[each]) for each in np.unique(self.device[ranks])),
            key=lambda nic: nic.bandwidth,
        )
        return Span(
            members=groups.shape[1],
            per_domain=per_domain,
            domains=domains,
            inside=inside if per_domain > 1 else None,
            outside=outside if domains > 1 else None,
            port_bytes_per_s=inside.bandwidth * ports if per_domain > 1 else inf,
            nic_bytes_per_s=min(nics[int(host)] for host in np.unique(self.host[ranks])) if domains > 1 else inf,
        )

    def _nic_shares(self) -> dict[int, float]:
        """By host: bytes/s of all its NICs over the ranks that are on it."""
        first: dict[int, int] = {}
        for rank, host in enumerate(self.host.tolist()):
            first.setdefault(host, rank)
        ranks = np.bincount(self.host)
        return {
            host: self.cluster.nics(self.listed[self.device[rank]]).bandwidth / int(ranks[host])
            for host, rank in first.items()
        }


def _port_rate(wire: Interconnect) -> float:
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
