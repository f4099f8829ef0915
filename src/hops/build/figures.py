"""Figures: everything that a spec names, looked up once: devices, hosts, links and work; stated, fitted or catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hops.build.cluster import build_cluster, interconnect, load_catalog
from hops.build.groups import exchanges, standing_devices
from hops.cost.exchange import DeviceGroups
from hops.cost.fitted import catalog_rates, fitted_rates
from hops.cost.kernel_profile import KernelProfile, kernel_rates, read_any_profile
from hops.cost.profile import HardwareProfile
from hops.cost.roofline import DeviceRates
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Device, DeviceKind, Interconnect, Topology
from hops.model.implementation import (
    HostOperations,
    Implementation,
    Microbatch,
    Optimizer,
    Quantization,
    host_operations,
)
from hops.model.shards import StateShards
from hops.model.transient import NO_TRANSIENTS
from hops.model.workload import Workload
from hops.spec.pipeline import ELEMENT_BYTES
from hops.spec.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a spec comes to, before a schedule says which stage is where. Only `resolve` looks names up.

    Attributes:
        spec: where they come from.
        cluster: all devices, hosts and links, with the catalog's numbers where the spec states none.
        devices: of every rank, which stands for the group of its pipeline position.
        exchanges: how the device of every rank exchanges with its groups.
        profile: fitted figures of measured run folders; None if the spec names none.
        kernels: fitted figures of kernels on devices; None if the spec names none. It names one profile at most.
        host_kinds: kind of every host that the profile knows anything of, by the host's name.
        reduction_nic: what data-parallel copies reduce over, where it is stated.
        work: what a microbatch is and how it is computed; None where stage times are stated.
        operations: of the host, to dispatch that work; None as `work`.
        rates: what the device of every rank attains; () where stage times are stated.
    """

    spec: Spec
    cluster: Cluster
    devices: tuple[Device, ...]
    exchanges: tuple[DeviceGroups, ...]
    profile: HardwareProfile | None
    kernels: KernelProfile | None
    host_kinds: Mapping[str, str]
    reduction_nic: Interconnect | None
    work: Workload | None
    operations: HostOperations | None
    rates: tuple[DeviceRates, ...]


def resolve(spec: Spec) -> Figures:
    """Look up what a spec names. Raises CatalogError for a file that is wrong, or a device without the precision."""
    catalog = load_catalog(spec)
    cluster = build_cluster(spec, catalog)
    read = _named_profile(spec)
    profile = read if isinstance(read, HardwareProfile) else None
    between = spec.optimizer.reduction_interconnect
    nic = None if between is None else interconnect(between, catalog, Topology.NETWORK)
    kernels = read if isinstance(read, KernelProfile) else None
    work = None if spec.pipeline.model is None else workload(spec, kernels)
    known = Figures(
        spec=spec,
        cluster=cluster,
        devices=standing_devices(spec, cluster),
        exchanges=_as_fitted(exchanges(spec, cluster, nic), read),
        profile=profile,
        kernels=kernels,
        host_kinds={} if profile is None else _host_kinds(spec, cluster, profile),
        reduction_nic=nic,
        work=work,
        operations=None
        if work is None
        else host_operations(work.how, fused_optimizer=spec.optimizer.fused, experts=work.model.experts is not None),
        rates=(),
    )
    return known if work is None else replace(known, rates=_with_exchanges(rates_of(known, known.devices), known))


def _as_fitted(
    found: tuple[DeviceGroups, ...], profile: HardwareProfile | KernelProfile | None
) -> tuple[DeviceGroups, ...]:
    """The exchanges with the factors of a kernel profile; those alike share one object."""
    if not isinstance(profile, KernelProfile) or not profile.collectives:
        return found
    factors = tuple(profile.collectives.items())
    alike = {id(each): replace(each, factors=factors) for each in found}
    return tuple(alike[id(each)] for each in found)


def _with_exchanges(rates: tuple[DeviceRates, ...], known: Figures) -> tuple[DeviceRates, ...]:
    """The rates of every rank with its groups; ranks that are alike share one object."""
    alike: dict[tuple[int, int], DeviceRates] = {}
    found = []
    for each, exchange in zip(rates, known.exchanges, strict=True):
        key = (id(each), id(exchange))
        if key not in alike:
            alike[key] = replace(each, exchange=exchange) if exchange.spans else each
        found.append(alike[key])
    return tuple(found)


def _named_profile(spec: Spec) -> HardwareProfile | KernelProfile | None:
    return None if spec.hardware.profile is None else read_any_profile(Path(spec.hardware.profile))


def named_kernels(spec: Spec) -> KernelProfile | None:
    """The kernel profile that a spec names; None if it names none, or one of the other form."""
    read = _named_profile(spec)
    return read if isinstance(read, KernelProfile) else None


def workload(spec: Spec, kernels: KernelProfile | None = None) -> Workload:
    """The work of a spec that has a model; `kernels`: the profile that it names, for what it holds in memory."""
    pipeline = spec.pipeline
    assert pipeline.model is not None
    assert pipeline.sequence_length is not None, "loading a spec fills it in"
    model = pipeline.model.transformer(pipeline.sequence_length)
    how = Implementation(
        element_bytes=ELEMENT_BYTES[pipeline.precision],
        attention=pipeline.attention,
        cross_entropy=pipeline.cross_entropy,
        recompute=pipeline.recompute,
        recompute_modules=pipeline.recompute_modules,
        recompute_layers=pipeline.recompute_layers,
        recompute_unit=pipeline.recompute_unit,
        quantization=None if pipeline.quantization is None else Quantization(**pipeline.quantization.model_dump()),
        expert_capacity=pipeline.expert_capacity,
        expert_imbalance=pipeline.expert_imbalance,
        dropout=pipeline.dropout,
        fused_gradient_accumulation=pipeline.fused_gradient_accumulation,
        tensor_overlap="tensor" in spec.parallel.overlapped,
        shared_expert_overlap="expert" in spec.parallel.overlapped,
    )
    return Workload(
        model=model,
        batch=Microbatch(sequence_length=pipeline.sequence_length, samples=pipeline.microbatch_size),
        how=how,
        optimizer=_optimizer(spec, how),
        shards=spec.parallel.shards(experts=model.experts is not None),
        states=_state_shards(spec),
        transients=NO_TRANSIENTS
        if kernels is None
        else kernels.transients_on(load_catalog(spec).device(spec.hardware.nodes[0].devices[0].type).name),
    )


def _state_shards(spec: Spec) -> StateShards:
    """In how many parts copies divide what they hold between two steps.

    Where a pipeline runs many microbatches between two steps, gradients and gathered parameters are whole meanwhile.
    """
    mesh, parallel = spec.mesh(), spec.parallel
    zero = parallel.zero(distributed=spec.optimizer.distributed)
    copies = parallel.shard_group or mesh.data
    held_whole = mesh.pipeline > 1
    return StateShards.zero(min(zero, 1) if held_whole else zero, copies * mesh.context, mesh.expert_data)


def _optimizer(spec: Spec, how: Implementation) -> Optimizer:
    section = spec.optimizer
    assert section.state_bytes is not None, "loading a spec fills it in"
    named = Optimizer.named(section.kind, element_bytes=how.element_bytes, fused=section.fused)
    return replace(named, state_bytes=section.state_bytes, gradient_bytes=section.gradient_bytes)


def rates_of(known: Figures, devices: tuple[Device, ...]) -> tuple[DeviceRates, ...]:
    """What devices of the cluster attain in their hosts: by the profile if it knows the device, else by the catalog.

    The spec has a model. Raises CatalogError for a device without the precision.
    """
    stated = stated_kinds(known.spec)
    alike: dict[tuple[int, str | None], DeviceRates] = {}  # devices of one kind in hosts of one kind
    found = []
    for device in devices:
        key = (id(device.kind), stated[device.node])
        if key not in alike:
            alike[key] = _rates(known, device.kind, stated[device.node])
        found.append(alike[key])
    return tuple(found)


def _rates(known: Figures, kind: DeviceKind, stated_host: str | None) -> DeviceRates:
    precision, profile = known.spec.pipeline.precision, known.profile
    assert known.operations is not None, "rates are those of a model's work"
    if known.kernels is not None:
        return kernel_rates(kind, precision, known.operations, known.kernels)
    if profile is None or kind.name not in profile.devices:
        return catalog_rates(kind, precision, known.operations)
    host = profile.host_kind(kind.name, stated_host)
    assert host is not None, "a profile's devices have hosts"
    return fitted_rates(
        kind, precision, known.operations, profile.devices[kind.name], profile.hosts[host], profile.code
    )


def stated_kinds(spec: Spec) -> dict[str, str | None]:
    """The kind of every host by name, as far as the spec states it."""
    return {host.name: host.entry.instance_type for host in spec.hardware.hosts()}


def _host_kinds(spec: Spec, cluster: Cluster, profile: HardwareProfile) -> dict[str, str]:
    stated = stated_kinds(spec)
    kinds: dict[str, str] = {}
    for device in cluster.devices:
        kind = profile.host_kind(device.kind.name, stated[device.node])
        if kind is not None:
            kinds.setdefault(device.node, kind)
    return kinds
