"""The fitted profile that a spec names, and what in the spec it is looked up by."""

from pathlib import Path

from hops.api.trained import trained
from hops.cluster import Cluster, Device
from hops.config import Spec
from hops.cost import DeviceRates, HardwareProfile, catalog_rates, fitted_rates
from hops.cost.profile_file import read_profile
from hops.model import host_operations


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
