"""Kernels become seconds: one function per physical term."""

from collections import Counter
from collections.abc import Iterable

from hops.cost.rates import DeviceRates
from hops.model import Gemm, Kernel, StageWork


def gemm_seconds(gemm: Gemm, rates: DeviceRates) -> float:
    """Roofline with a ramp: calls x max(flop / flop rate + ramp, bytes / bandwidth).

    Roofline: Williams et al. 2009. The ramp is Hockney's n_1/2 (Hockney 1989) as a time: at ramp x rate flops a GEMM
    reaches half of the rate.
    """
    compute = gemm.flop / gemm.calls / rates.flop_per_s + rates.gemm_ramp_s
    return max(gemm.calls * compute, traffic_seconds(gemm, rates))


def traffic_seconds(kernel: Kernel, rates: DeviceRates) -> float:
    """Bytes / bandwidth x (1 - hits + hits / cache speedup), hits being the part of the tensor still in the cache.

    A tensor up to the cache's size is found there by the next kernel; one of twice the size is gone before it is read
    again (least recently used goes first); linear in between.
    """
    hits = min(1.0, max(0.0, 2 - kernel.working_set / rates.cache_bytes)) if _may_hit(kernel, rates) else 0.0
    return kernel.total_bytes / rates.bytes_per_s * (1 - hits + hits / rates.cache_speedup)


def _may_hit(kernel: Kernel, rates: DeviceRates) -> bool:
    return kernel.working_set > 0 and rates.cache_bytes > 0


def kernel_seconds(kernel: Kernel, rates: DeviceRates) -> float:
    """Time on the device of all calls of a kernel."""
    return gemm_seconds(kernel, rates) if isinstance(kernel, Gemm) else traffic_seconds(kernel, rates)


def work_terms(kernels: Iterable[Kernel], rates: DeviceRates) -> Counter[str]:
    """Seconds on the device by term. Kernels of one stream run one after another, so times add up."""
    terms: Counter[str] = Counter()
    for kernel in kernels:
        terms[kernel.name] += kernel_seconds(kernel, rates)  # type: ignore[assignment]
    return terms


def forward_terms(work: StageWork, rates: DeviceRates) -> dict[str, float]:
    """Seconds of F by term: load the batch + max(layers, their dispatch) + max(ends, their dispatch) + launch.

    The host dispatches kernels ahead of the device, so each part takes the longer of both. The model's ends add to the
    layers: the loss cannot start before the last layer has run, and its dispatch follows theirs.
    """
    layers = work_terms(work.forward.layers, rates)
    ends = work_terms(work.forward.ends, rates)
    waiting = _waiting(layers, work.num_layers * rates.forward_layer_floor_s) + _waiting(ends, _end_floor(work, rates))
    loads = rates.batch_load_s if work.embedding or work.head else 0.0
    return {**(layers + ends), "batch_load": loads, "dispatch": waiting, "launch": rates.launch_s}


def backward_terms(work: StageWork, rates: DeviceRates) -> dict[str, float]:
    """Seconds of B by term: max(recompute, I and W on the device, dispatch of all) + launch.

    The host runs ahead from the start, also during the head's long kernels, so there is one maximum for all. Against F
    the work is scaled (twice the flops) and the dispatch is not.
    """
    kernels = work.recompute.kernels + work.input_backward.kernels + work.weight_backward.kernels
    terms = work_terms(kernels, rates)
    layers = work.num_layers * rates.backward_layer_floor_s + work.recomputed_layers * rates.forward_layer_floor_s
    return {**terms, "dispatch": _waiting(terms, layers + _end_floor(work, rates)), "launch": rates.launch_s}


def _waiting(terms: Counter[str], floor_s: float) -> float:
    """What the device waits for the host: how much longer dispatch takes than the work."""
    return max(0.0, floor_s - sum(terms.values()))


def _end_floor(work: StageWork, rates: DeviceRates) -> float:
    embedding = rates.embedding_floor_s if work.embedding else 0.0
    return embedding + (rates.head_floor_s if work.head else 0.0)
