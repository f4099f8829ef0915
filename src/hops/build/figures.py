"""The fitted profile that a spec names, and what in the spec it is looked up by."""

from dataclasses import dataclass, replace
from pathlib import Path

from hops.cost.fitted import catalog_rates, fitted_rates
from hops.cost.profile import HardwareProfile, read_profile
from hops.cost.roofline import DeviceRates
from hops.hardware.cluster import Cluster
from hops.hardware.devices import Device
from hops.model.implementation import Implementation, Microbatch, Optimizer, host_operations
from hops.model.transformer import Transformer
from hops.spec.pipeline import ELEMENT_BYTES
from hops.spec.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The work of a spec with a model. `optimizer_shards`: replicas that share the optimizer's states."""

    model: Transformer
    batch: Microbatch
    how: Implementation
    optimizer: Optimizer
    optimizer_shards: int


def trained(spec: Spec) -> Trained:
    """The work of a spec that has a model."""
    pipeline = spec.pipeline
    assert pipeline.model is not None
    assert pipeline.sequence_length is not None, "loading a spec fills it in"
    how = Implementation(
        element_bytes=ELEMENT_BYTES[pipeline.precision],
        attention=pipeline.attention,
        cross_entropy=pipeline.cross_entropy,
        recompute=pipeline.recompute,
        dropout=pipeline.dropout,
        fused_gradient_accumulation=pipeline.fused_gradient_accumulation,
    )
    return Trained(
        model=pipeline.model.transformer(pipeline.sequence_length),
        batch=Microbatch(sequence_length=pipeline.sequence_length, samples=pipeline.microbatch_size),
        how=how,
        optimizer=_optimizer(spec, how),
        optimizer_shards=spec.optimizer.data_parallel if spec.optimizer.distributed else 1,
    )


def _optimizer(spec: Spec, how: Implementation) -> Optimizer:
    section = spec.optimizer
    assert section.state_bytes is not None, "loading a spec fills it in"
    named = Optimizer.named(section.kind, element_bytes=how.element_bytes, fused=section.fused)
    return replace(named, state_bytes=section.state_bytes, gradient_bytes=section.gradient_bytes)


def fitted(spec: Spec) -> HardwareProfile | None:
    """The spec's profile, if it names one. Raises CatalogError if its file is wrong."""
    name = spec.hardware.profile
    return None if name is None else read_profile(Path(name))


def stated_kinds(spec: Spec) -> dict[str, str | None]:
    """The kind of every host by name, as far as the spec states it."""
    return {host.name: host.entry.instance_type for host in spec.hardware.hosts()}


def host_kinds(spec: Spec, cluster: Cluster, profile: HardwareProfile) -> dict[str, str]:
    """The kind of every host that the profile knows anything of, by the host's name."""
    stated = stated_kinds(spec)
    kinds: dict[str, str] = {}
    for device in cluster.devices:
        kind = profile.host_kind(device.kind.name, stated[device.node])
        if kind is not None:
            kinds.setdefault(device.node, kind)
    return kinds


def device_rates(spec: Spec, device: Device) -> DeviceRates:
    """What a device in its host attains: by the spec's profile if it knows the device, else by the catalog."""
    work = trained(spec)
    operations = host_operations(work.how, fused_optimizer=spec.optimizer.fused)
    profile, precision = fitted(spec), spec.pipeline.precision
    if profile is None or device.kind.name not in profile.devices:
        return catalog_rates(device.kind, precision, operations)
    host = profile.host_kind(device.kind.name, stated_kinds(spec)[device.node])
    assert host is not None, "a profile's devices have hosts"
    return fitted_rates(
        device.kind, precision, operations, profile.devices[device.kind.name], profile.hosts[host], profile.code
    )


def scope_warnings(spec: Spec, cluster: Cluster) -> tuple[str, ...]:
    """Where a spec is far outside of what its profile was fitted on: beyond twice the range, or unseen."""
    profile = fitted(spec)
    if profile is None or spec.pipeline.model is None:
        return ()
    return (*_ranges(spec, profile), *_unseen(spec, cluster, profile))


def _ranges(spec: Spec, profile: HardwareProfile) -> list[str]:
    work, scope = trained(spec), profile.scope
    shape = spec.shape()
    seen = {
        "hidden": ([work.model.hidden], scope.hidden),
        "sequence_length": ([work.batch.sequence_length], scope.sequence_length),
        "microbatch_size": ([work.batch.samples], scope.microbatch_size),
        "vocab": ([work.model.vocab], scope.vocab),
        "head_dim": ([work.model.head_dim], scope.head_dim),
        "stages": ([shape.num_stages], scope.stages),
    }
    partition = spec.pipeline.partition
    layers = list(partition) if isinstance(partition, tuple) else [-(-work.model.layers // shape.num_stages)]
    seen["layers per stage"] = (layers, scope.layers_per_stage)
    return [
        f"profile: {name} of {value} is far from what it was fitted on ({low} to {high}): take times with care"
        for name, (values, (low, high)) in seen.items()
        for value in sorted({min(values), max(values)})
        if value > 2 * high or 2 * value < low
    ]


def _unseen(spec: Spec, cluster: Cluster, profile: HardwareProfile) -> list[str]:
    scope, pipeline = profile.scope, spec.pipeline
    found = [
        f"profile: {name} {value} was not seen, only {', '.join(known)}: times come from counts and other cases"
        for name, value, known in (
            ("attention", pipeline.attention, scope.attention),
            ("precision", pipeline.precision, scope.precision),
            ("transport", spec.hardware.transport, scope.transport),
        )
        if value not in known
    ]
    devices = sorted({device.kind.name for device in cluster.devices} - set(profile.devices))
    found += [f"profile: device {name} was not seen: the catalog's figures stand for it" for name in devices]
    stated = {kind for kind in stated_kinds(spec).values() if kind is not None} - set(profile.hosts)
    found += [f"profile: host kind {kind} was not seen: that of other hosts stands for it" for kind in sorted(stated)]
    return found
