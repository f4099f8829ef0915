"""The failure section becomes what breaks in a run: models are drawn, traces and plans read, links looked up."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hops.build.cluster import build_cluster, load_catalog
from hops.build.figures import Figures
from hops.engine.settings import Faults
from hops.errors import UsageError
from hops.faults.draw import FaultSource, draw_plan, load_availability
from hops.faults.inventory import Inventory
from hops.faults.plan import NO_FAULTS, FaultKind, FaultPlan, load_plan
from hops.faults.presets import PRESETS, model_of
from hops.hardware.network import Network
from hops.spec.failure import FaultEntry
from hops.spec.failure_targets import inventory_of, name_of, sites_of
from hops.spec.spec import Spec
from hops.units import NS_PER_S, format_time, to_ns


def build_faults(known: Figures) -> Faults:
    """What a plan's targets mean in a run; the plan itself is empty yet."""
    timeout_s = known.spec.failure.link_timeout
    return Faults(
        devices=tuple(device.id for device in known.devices),
        reduction_links=_reduction_links(known),
        link_timeout_ns=None if timeout_s is None else to_ns(timeout_s),
    )


def build_inventory(spec: Spec, network: Network) -> Inventory:
    """What can break: devices, hosts, NICs, groups, and all links that ranks or NICs use."""
    bare = inventory_of(spec.hardware, spec.failure)
    return replace(bare, links=tuple(dict.fromkeys([*(link.name for link in network.links), *bare.links])))


def build_plan(spec: Spec, inventory: Inventory, *, seed: int | None = None) -> FaultPlan:
    """Everything that the section says breaks, drawn with the spec's seed or another. Empty if it is not enabled.

    Raises UsageError for a link that is not in the cluster.
    """
    failure = spec.failure
    if not failure.enabled:
        return NO_FAULTS
    number = spec.simulation.seed if seed is None else seed
    drawn = draw_plan(fault_sources(spec, inventory), number, failure.horizon)
    stated = [] if failure.plan is None else [_known(load_plan(Path(failure.plan)), inventory, failure.plan)]
    replayed = [] if failure.trace is None else [load_availability(Path(failure.trace), inventory)]
    return FaultPlan.of(fault for plan in (drawn, *stated, *replayed) for fault in plan)


def draw_faults(spec: Spec, *, seed: int | None = None) -> FaultPlan:
    """The plan of a spec, as if its failure section were enabled, for all devices and not only those in use.

    Raises UsageError for a link that is not in the cluster.
    """
    enabled = spec.model_copy(update={"failure": spec.failure.model_copy(update={"enabled": True})})
    network = build_cluster(spec, load_catalog(spec)).network(spec.ranks())
    return build_plan(enabled, build_inventory(enabled, network), seed=seed)


def check_horizon(spec: Spec, end_ns: int) -> None:
    """Raises UsageError if a run went on beyond the time for which its faults were drawn."""
    failure = spec.failure
    if failure.enabled and failure.models and end_ns > failure.horizon * NS_PER_S:
        raise UsageError(
            f"the run lasts {format_time(end_ns / NS_PER_S)}, but faults are drawn until "
            f"{format_time(failure.horizon)}; raise failure.horizon"
        )


def fault_sources(spec: Spec, inventory: Inventory) -> tuple[FaultSource, ...]:
    """What may break, by the models of the section. Raises UsageError for a link that is not in the cluster."""
    found: list[FaultSource] = []
    for index, entry in enumerate(spec.failure.models):
        try:
            found += _sources_of(entry, inventory)
        except UsageError as error:
            raise UsageError(f"failure.models[{index}]: {error}") from None
    return tuple(found)


def _sources_of(entry: FaultEntry, inventory: Inventory) -> Iterator[FaultSource]:
    name = name_of(entry)
    if entry.preset is None:
        assert entry.kind is not None, "validation asks for it"
        factor = None if entry.factor is None else entry.factor.build()
        sites = sites_of(entry, inventory)
        yield FaultSource(name=name, kind=FaultKind(entry.kind), sites=sites, model=entry.fault_model(), factor=factor)
        return
    for part in PRESETS[entry.preset].parts:
        model, factor = model_of(part, entry.repair_time())
        sites = inventory.sites(part.family, kinds=entry.only or ())
        yield FaultSource(name=f"{name} {part.what}", kind=part.kind, sites=sites, model=model, factor=factor)


def _known(plan: FaultPlan, inventory: Inventory, path: str) -> FaultPlan:
    """The plan, if all its links are in the cluster."""
    for fault in plan:
        if fault.kind.of_link:
            try:
                inventory.named([fault.target])
            except UsageError as error:
                raise UsageError(f"{path}: {error}") from None
    return plan


def _reduction_links(known: Figures) -> tuple[tuple[str, ...], ...]:
    """The links of the NIC of every rank, over which its gradients are reduced."""
    section = known.spec.optimizer
    if section.data_parallel == 1 or not section.enabled:
        return ()
    return tuple(known.cluster.nic_links(device.id) for device in known.devices)
