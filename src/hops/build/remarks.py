"""What a spec leaves open and where that comes out, as remarks beside its keys."""

from collections.abc import Iterator
from itertools import islice

from hops.build.cluster import build_cluster
from hops.build.costs import partition, stage_rates
from hops.build.figures import trained
from hops.hardware.cluster import Cluster
from hops.hardware.devices import DeviceKind
from hops.spec.hardware import DeviceEntry
from hops.spec.spec import Spec
from hops.units import format_bandwidth, format_bytes, format_compute, format_time

Path = tuple[str | int, ...]


def inferred(spec: Spec) -> dict[Path, str]:
    """Path of a key to what stands there in effect: layers of `even` and `balanced`, the catalog's numbers.

    What a fitted profile decides is left out.
    """
    cluster = build_cluster(spec)
    return dict([*_layers(spec, cluster), *_devices(spec, cluster)])


def _layers(spec: Spec, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    if spec.pipeline.model is None or isinstance(spec.pipeline.partition, tuple):
        return
    layers = partition(spec, trained(spec), stage_rates(spec, spec.shape(), cluster)).layers
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
