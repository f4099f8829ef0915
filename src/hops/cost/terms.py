"""Kernels become seconds: one function per physical term."""

from collections import Counter
from collections.abc import Callable, Iterable

from hops.cost.rates import DeviceRates
from hops.model import Gemm, Kernel, StageWork

Factor = Callable[[str], float]  # bytes moved over bytes counted of a kernel, by its name


def as_counted(_: str) -> float:
    """A kernel moves what was counted."""
    return 1.0


def gemm_seconds(gemm: Gemm, rates: DeviceRates, factor: float = 1.0) -> float:
    """Roofline with a ramp: max(flop / flop rate, bytes / bandwidth) + calls x ramp.

    Roofline: Williams et al. 2009. The ramp is Hockney's n_1/2 (Hockney 1989) as a time: at ramp x rate flops a GEMM
    reaches half of the rate.
    """
    return max(gemm.flop / rates.flop_per_s, traffic_seconds(gemm, rates, factor)) + gemm.calls * rates.gemm_ramp_s


def traffic_seconds(kernel: Kernel, rates: DeviceRates, factor: float = 1.0) -> float:
    """Bytes / bandwidth x (1 - hits + hits / cache speedup), hits being the part of the tensor still in the cache.

    A kernel reads one tensor and writes one of the same size, so the cache still holds all of it up to half of the
    cache's size, and cache / (2 x tensor) of a larger one.
    """
    seconds = factor * kernel.total_bytes / rates.bytes_per_s
    if kernel.working_set == 0 or rates.cache_bytes == 0:
        return seconds
    hits = min(1.0, rates.cache_bytes / (2 * kernel.working_set))
    return seconds * (1 - hits + hits / rates.cache_speedup)


def kernel_seconds(kernel: Kernel, rates: DeviceRates, factor: float = 1.0) -> float:
    """Time on the device of all calls of a kernel."""
    if isinstance(kernel, Gemm):
        return gemm_seconds(kernel, rates, factor if kernel.working_set else 1.0)  # dense operands are as counted
    return traffic_seconds(kernel, rates, factor)


def work_terms(kernels: Iterable[Kernel], rates: DeviceRates, factor: Factor = as_counted) -> Counter[str]:
    """Seconds on the device by term. Kernels of one stream run one after another, so times add up."""
    terms: Counter[str] = Counter()
    for kernel in kernels:
        terms[kernel.name] += kernel_seconds(kernel, rates, factor(kernel.name))  # type: ignore[assignment]
    return terms


def forward_terms(work: StageWork, rates: DeviceRates) -> dict[str, float]:
    """Seconds of F by term: what the first stage does + layers + what the last stage does + launch.

    Layers are a flow shop of two machines, host and device: with layers alike the longer machine sets the pace, and
    the other one's first or last piece adds to it (Johnson 1954). The ends are serial: the first layer waits for the
    embedding, the head for the last layer; and fetching a batch waits for everything.
    """
    layers = work_terms(work.forward.layers, rates, rates.traffic.forward)
    ends = work_terms(work.forward.ends, rates, rates.traffic.forward)
    device, host = sum(layers.values()), work.num_layers * rates.forward_layer_floor_s
    return {
        **(layers + ends),
        "fetch_and_ends": _first(work, rates.first_forward_s) + _last(work, rates.last_forward_s),
        "dispatch": _behind(device, host, work.num_layers, rates),
        "launch": rates.launch_s,
    }


def backward_terms(work: StageWork, rates: DeviceRates) -> dict[str, float]:
    """Seconds of B by term: layers and head as one flow shop, then the embedding's part, and launch.

    The host runs ahead from the start, also during the head's long kernels, so there is one maximum for both; the
    embedding's backward is the last of all. Against F the work is scaled (twice the flops), the dispatch is not.
    """
    ops = (work.recompute, work.input_backward, work.weight_backward)
    layers = work_terms((kernel for op in ops for kernel in op.layers), rates, rates.traffic.backward)
    ends = work_terms((kernel for op in ops for kernel in op.ends), rates, rates.traffic.backward)
    head = _last(work, rates.last_backward_s)
    device, host = sum(layers.values()), work.num_layers * rates.backward_layer_floor_s
    host += work.recomputed_layers * rates.forward_layer_floor_s
    on_device_too = sum(ends.values()) - ends["embedding"]
    return {
        **(layers + ends),
        "fetch_and_ends": _first(work, rates.first_backward_s) + head,
        "dispatch": _behind(device, host, work.num_layers, rates, beside=on_device_too),
        "launch": rates.launch_s,
    }


def _behind(device: float, host: float, layers: int, rates: DeviceRates, *, beside: float = 0.0) -> float:
    """Makespan of the flow shop less the device's work: what the device waits for its host.

    `beside`: other work of the device, of which the host knows nothing but that it need not wait for it.
    """
    lag = rates.dispatch_lag * min(device, host) / layers if layers else 0.0
    return max(0.0, host - device - beside) + lag


def _first(work: StageWork, seconds: float) -> float:
    return seconds if work.embedding else 0.0


def _last(work: StageWork, seconds: float) -> float:
    return seconds if work.head else 0.0
