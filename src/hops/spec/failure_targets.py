"""Checks of the failure section against the hardware: targets, groups, and the files it names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path as File

from hops.decode.document import Complaint, Path
from hops.errors import UsageError
from hops.faults.draw import load_availability
from hops.faults.inventory import Inventory, Site, TargetKind, targets
from hops.faults.plan import FaultKind, load_plan
from hops.spec.failure import FailureSection, FaultEntry
from hops.spec.hardware import HardwareSection
from hops.units import shown


def check_failure(failure: FailureSection, hardware: HardwareSection) -> Iterator[Complaint]:
    """Everything that the hardware tells; names of links inside hosts are known only when the cluster is built."""
    bare = inventory_of(hardware)
    in_groups = list(_groups(failure, bare))
    yield from in_groups
    inventory = bare if in_groups else inventory_of(hardware, failure)
    for index, entry in enumerate(failure.models):
        yield from _entry(entry, inventory, hardware, ("failure", "models", index))
    yield from _doubled(failure)
    yield from _files(failure, bare)


def inventory_of(hardware: HardwareSection, failure: FailureSection | None = None) -> Inventory:
    """What can break in the hardware, with the groups of the failure section, and the links of NICs only."""
    hosts = hardware.hosts()
    nics_of = {host.name: tuple(nic_names(host.name, host.entry.nics)) for host in hosts}
    nics = {nic: (f"{nic}.out", f"{nic}.in") for names in nics_of.values() for nic in names}
    return Inventory(
        kind_of={
            device: entry.type for host in hosts for device, entry in zip(host.device_ids, host.devices, strict=True)
        },
        host_of={device: host.name for host in hosts for device in host.device_ids},
        nics=nics,
        nics_of=nics_of,
        links=tuple(link for links in nics.values() for link in links),
        groups={} if failure is None else {group.name: group.members for group in failure.groups},
    )


def nic_names(host: str, nics: int) -> Iterator[str]:
    """Names of a host's NICs, as the cluster gives them."""
    yield from (f"{host}.nic{number if nics > 1 else ''}" for number in range(nics))


def sites_of(entry: FaultEntry, inventory: Inventory) -> tuple[Site, ...]:
    """What an entry means (not a preset). Raises UsageError for a name that is not known."""
    assert entry.on is not None, "validation asks for it"
    first = entry.on[0]
    if len(entry.on) == 1 and first in list(TargetKind):
        return inventory.sites(TargetKind(first), kinds=entry.only or ())
    wanted = set(entry.only or ())
    return tuple(
        site
        for site in inventory.named(entry.on)
        if not wanted or any(inventory.kind_of[device] in wanted for device in site.devices)
    )


def may_be_a_link(name: str, inventory: Inventory) -> bool:
    """Whether a name may be that of a link that only the cluster knows, such as `node0/0.nvlink4.out`."""
    return "[" in name or any(name.startswith(f"{owner}.") for owner in (*inventory.kind_of, *inventory.nics_of))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _groups(failure: FailureSection, bare: Inventory) -> Iterator[Complaint]:
    times = Counter(group.name for group in failure.groups)
    for index, group in enumerate(failure.groups):
        path = ("failure", "groups", index)
        if times[group.name] > 1:
            yield Complaint(path=(*path, "name"), what=f"the group {group.name} is there twice; rename one")
        yield from _unknown_names(group.members, bare, (*path, "members"))


def _unknown_names(names: tuple[str, ...], inventory: Inventory, path: Path) -> Iterator[Complaint]:
    for number, name in enumerate(names):
        try:
            inventory.named([name])
        except UsageError as error:
            if not may_be_a_link(name, inventory):
                family = get_close_matches(name, list(TargetKind), n=1) if len(names) == 1 else []
                hint = f"; did you mean {family[0]}?" if family else ""
                yield Complaint(path=(*path, number), what=f"{error}{hint}")


def _entry(entry: FaultEntry, inventory: Inventory, hardware: HardwareSection, path: Path) -> Iterator[Complaint]:
    types = dict.fromkeys(device.type for host in hardware.hosts() for device in host.devices)
    absent = [(number, kind) for number, kind in enumerate(entry.only or ()) if kind not in types]
    for number, kind in absent:
        what = f"no device of type {shown(kind)}, expected one of {', '.join(types)}{_did_you_mean(kind, types)}"
        yield Complaint(path=(*path, "only", number), what=what)
    if entry.preset is not None or entry.on is None:
        return
    is_family = len(entry.on) == 1 and entry.on[0] in list(TargetKind)
    unknown = [] if is_family else list(_unknown_names(entry.on, inventory, (*path, "on")))
    yield from unknown
    if not unknown and not absent:
        yield from _nothing_to_hit(entry, inventory, (*path, "on"))


def _nothing_to_hit(entry: FaultEntry, inventory: Inventory, path: Path) -> Iterator[Complaint]:
    """Targets that the kind of fault cannot hit."""
    try:
        sites = sites_of(entry, inventory)
    except UsageError:
        return  # a link inside a host, perhaps
    if not sites:
        what = f"got {', '.join(entry.on or ())}, which names nothing here; define failure.groups, or loosen only"
        yield Complaint(path=path, what=what)
    for site in sites:
        try:
            targets(site, FaultKind(entry.kind or ""))
        except UsageError as error:
            yield Complaint(path=path, what=str(error))
            return


def name_of(entry: FaultEntry) -> str:
    """What the draws of an entry depend on."""
    return entry.name or entry.preset or f"{entry.kind} {' '.join(entry.on or ())} {' '.join(entry.only or ())}".strip()


def _doubled(failure: FailureSection) -> Iterator[Complaint]:
    times = Counter(name_of(entry) for entry in failure.models)
    for index, entry in enumerate(failure.models):
        name = name_of(entry)
        if times[name] > 1:
            what = f"two models are called {shown(name)} and would draw the same; give each a name of its own"
            yield Complaint(path=("failure", "models", index), what=what)


def _files(failure: FailureSection, inventory: Inventory) -> Iterator[Complaint]:
    if failure.trace is not None:
        try:
            load_availability(File(failure.trace), inventory)
        except UsageError as error:
            yield Complaint(path=("failure", "trace"), what=str(error))
    if failure.plan is None:
        return
    try:
        plan = load_plan(File(failure.plan))
    except UsageError as error:
        yield Complaint(path=("failure", "plan"), what=str(error))
        return
    known = {*inventory.kind_of, *inventory.links}
    for fault in plan:
        if fault.kind.of_job:
            continue
        if fault.target not in known and not (fault.kind.of_link and may_be_a_link(fault.target, inventory)):
            hint = _did_you_mean(fault.target, known)
            what = f"{failure.plan}: {fault.kind} of {shown(fault.target)}, which is not in this cluster{hint}"
            yield Complaint(path=("failure", "plan"), what=what)
            return
