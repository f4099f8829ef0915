"""What can break in a cluster, by name: devices, hosts, NICs, links, and groups of them that break together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from zlib import crc32

from hops.errors import UsageError
from hops.faults.plan import FaultKind

_MOST_NAMED = 12


class TargetKind(StrEnum):
    """All targets of one sort."""

    DEVICES = "devices"
    HOSTS = "hosts"
    NICS = "nics"
    LINKS = "links"
    GROUPS = "groups"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Something that breaks as a whole.

    Attributes:
        name: as the inventory knows it.
        number: its place among its family (of a link: made from its name); with the seed it says what is drawn for it.
        family: what it is.
        devices: ids of the devices that break with it.
        links: names of the links that break with it.
    """

    name: str
    number: int
    family: TargetKind
    devices: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        """For reports, such as `host node3`."""
        return "job" if self.family is TargetKind.JOB else f"{self.family.removesuffix('s')} {self.name}"


THE_JOB = Site(name="job", number=0, family=TargetKind.JOB)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """Everything that can break. (Without slots, since what is found by name is kept.)

    Attributes:
        kind_of: kind (catalog name) of every device, by id, in the order of the cluster.
        host_of: host of every device, by id.
        nics: the links of every NIC, by its name, such as `node0.nic`.
        nics_of: NICs of every host.
        links: names of all links that messages or reductions cross.
        groups: what breaks together: names of hosts, devices, NICs or links, by the name of the group.
    """

    kind_of: Mapping[str, str]
    host_of: Mapping[str, str]
    nics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nics_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def sites(self, family: TargetKind, *, kinds: Sequence[str] = ()) -> tuple[Site, ...]:
        """All of a family; with `kinds`, only those with a device of such a kind."""
        makers = {
            TargetKind.DEVICES: self._devices,
            TargetKind.HOSTS: self._hosts,
            TargetKind.NICS: self._nics,
            TargetKind.LINKS: self._links,
            TargetKind.GROUPS: self._groups,
            TargetKind.JOB: self._job,
        }
        wanted = set(kinds)
        return tuple(
            site
            for site in makers[family]()
            if not wanted or any(self.kind_of[device] in wanted for device in site.devices)
        )

    def named(self, names: Iterable[str]) -> tuple[Site, ...]:
        """The sites of these names. Raises UsageError, with the nearest name, for one that is not known.

        A name that several families use is the first one's, in the order of Family.
        """
        return tuple(self._find(name) for name in names)

    def _find(self, name: str) -> Site:
        if name not in self._bare and name in self.groups:
            return self._group(list(self.groups).index(name), name)
        return self._found(name, [*self._bare, *self.groups])

    def _found(self, name: str, known: Sequence[str]) -> Site:
        if name in self._bare:
            return self._bare[name]
        near = get_close_matches(name, known, n=1)
        shown = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"unknown target {name!r}: {hint}known are {shown}")

    @cached_property
    def _bare(self) -> dict[str, Site]:
        """Everything but groups and the job, by name."""
        found: dict[str, Site] = {}
        for family in TargetKind:
            if family not in (TargetKind.GROUPS, TargetKind.JOB):
                for site in self.sites(family):
                    found.setdefault(site.name, site)
        return found

    def _devices(self) -> list[Site]:
        return [
            Site(name=device, number=number, family=TargetKind.DEVICES, devices=(device,))
            for number, device in enumerate(self.kind_of)
        ]

    def _hosts(self) -> list[Site]:
        members: dict[str, list[str]] = {}
        for device, host in self.host_of.items():
            members.setdefault(host, []).append(device)
        return [
            Site(
                name=host,
                number=number,
                family=TargetKind.HOSTS,
                devices=tuple(devices),
                links=tuple(link for nic in self.nics_of.get(host, ()) for link in self.nics[nic]),
            )
            for number, (host, devices) in enumerate(members.items())
        ]

    def _nics(self) -> list[Site]:
        return [
            Site(name=nic, number=number, family=TargetKind.NICS, links=links)
            for number, (nic, links) in enumerate(self.nics.items())
        ]

    def _links(self) -> list[Site]:
        """Numbered by name, since which links there are depends on the placement of ranks."""
        return [
            Site(name=link, number=crc32(link.encode()), family=TargetKind.LINKS, links=(link,)) for link in self.links
        ]

    def _groups(self) -> list[Site]:
        return [self._group(number, name) for number, name in enumerate(self.groups)]

    def _job(self) -> list[Site]:
        return [THE_JOB]

    def _group(self, number: int, name: str) -> Site:
        members = [self._found(member, list(self._bare)) for member in self.groups[name]]
        return Site(
            name=name,
            number=number,
            family=TargetKind.GROUPS,
            devices=tuple(dict.fromkeys(device for site in members for device in site.devices)),
            links=tuple(dict.fromkeys(link for site in members for link in site.links)),
        )


def targets(site: Site, kind: FaultKind) -> tuple[str, ...]:
    """What a fault of this kind hits of a site. Raises UsageError if there is nothing."""
    if kind.of_job:
        if site.family is not TargetKind.JOB:
            raise UsageError(f"a fault of kind {kind} happens to the whole job, but got {site.cause}; write on: job")
        return (site.name,)
    if site.family is TargetKind.JOB:
        raise UsageError(f"a fault of kind {kind} cannot happen to the job; name devices, hosts or links")
    found = site.links if kind.of_link else site.devices
    if not found:
        what = "link" if kind.of_link else "device"
        fix = "use stop or slow" if kind.of_link else "use link-down or link-slow"
        raise UsageError(f"{site.cause} has no {what} for a fault of kind {kind}; {fix}, or other targets")
    return found
