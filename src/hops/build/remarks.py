"""Remarks on a spec: what its open keys come to, and where it is far from what its profile was fitted on."""

from collections.abc import Iterator
from itertools import islice

from hops.build.cluster import build_cluster, load_catalog
from hops.build.costs import partition
from hops.build.figures import Figures, resolve, stated_kinds
from hops.cost.profile import HardwareProfile, Scope
from hops.hardware.cluster import Cluster
from hops.hardware.devices import DeviceKind
from hops.model.workload import Workload
from hops.program.shape import Shape
from hops.spec.hardware import DeviceEntry
from hops.spec.spec import Spec
from hops.units import format_bandwidth, format_bytes, format_compute, format_time

Path = tuple[str | int, ...]


def inferred(spec: Spec) -> dict[Path, str]:
    """Path of a key to what stands there in effect: layers of `even` and `balanced`, the catalog's numbers.

    What a fitted profile decides is left out.
    """
    return dict([*_layers(spec), *_devices(spec, build_cluster(spec, load_catalog(spec)))])


def _layers(spec: Spec) -> Iterator[tuple[Path, str]]:
    if spec.pipeline.model is None or isinstance(spec.pipeline.partition, tuple):
        return
    layers = partition(resolve(spec), spec.shape()).layers
    yield ("pipeline", "partition"), f"[{', '.join(map(str, layers))}]"


def _devices(spec: Spec, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    hosts = iter(spec.hardware.hosts())
    for number, node in enumerate(spec.hardware.nodes):
        first, *_ = islice(hosts, node.count)
        where: Path = ("hardware", "nodes", number)
        if node.nic is None:
            yield (*where, "nic"), cluster.nic(first.device_ids[0]).name
        ids = iter(first.device_ids)
        for place, entry in enumerate(node.devices):
            device_id, *_ = islice(ids, entry.count)
            for key, text in _figures(spec, entry, cluster.device(device_id).kind):
                yield (*where, "devices", place, key), text


def _figures(spec: Spec, entry: DeviceEntry, kind: DeviceKind) -> Iterator[tuple[str, str]]:
    precision, fitted = spec.pipeline.precision, spec.hardware.profile is not None
    if entry.memory is None:
        yield "memory", format_bytes(kind.memory_bytes)
    if entry.memory_bandwidth is None:
        yield "memory_bandwidth", format_bandwidth(kind.memory_bandwidth)
    if entry.peak is None and precision in kind.rates:
        yield "peak", format_compute(kind.rate(precision))
    if entry.launch_overhead is None and not fitted:
        yield "launch_overhead", format_time(kind.launch_s)
    if entry.layer_overhead is None and not fitted:
        yield "layer_overhead", f"{format_time(kind.operation_s)} per operation"
    if entry.price_per_hour is None:
        yield "price_per_hour", f"{kind.price_per_hour:g}"


def reduction_warnings(spec: Spec, shape: Shape) -> tuple[str, ...]:
    """Copies whose stated times say nothing of gradients reduce nothing, which nobody may have meant."""
    times, section = spec.pipeline.stage_times, spec.optimizer
    unstated = times is not None and "gradients" not in times.model_fields_set
    copies = section.data_parallel * shape.copies
    if not unstated or not section.enabled or copies == 1 or section.gradient_reduction == "none":
        return ()
    where = "optimizer.data_parallel" if section.data_parallel > 1 else "pipeline.schedule"
    silent = (
        f"{where}: {copies} copies reduce nothing, since pipeline.stage_times state no "
        "gradients; state their bytes per stage, or gradients: 0 B"
    )
    return (silent,)


def scope_warnings(known: Figures, shape: Shape) -> tuple[str, ...]:
    """Where a spec is far outside of what its profile was fitted on: beyond twice the range, or unseen."""
    if known.profile is None or known.work is None:
        return ()
    scope, spec = known.profile.scope, known.spec
    return (*_ranges(spec, known.work, shape, scope), *_unseen(spec, known.cluster, known.profile))


def _ranges(spec: Spec, work: Workload, shape: Shape, scope: Scope) -> list[str]:
    seen = {
        "hidden": ([work.model.hidden], scope.hidden),
        "sequence_length": ([work.batch.sequence_length], scope.sequence_length),
        "microbatch_size": ([work.batch.samples], scope.microbatch_size),
        "vocab": ([work.model.vocab], scope.vocab),
        "head_dim": ([work.model.head_dim], scope.head_dim),
        "stages": ([shape.stages_per_copy], scope.stages),
    }
    partition = spec.pipeline.partition
    layers = list(partition) if isinstance(partition, tuple) else [-(-work.model.layers // shape.stages_per_copy)]
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
