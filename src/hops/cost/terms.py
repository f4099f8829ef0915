"""Kernels become seconds: one function per physical term."""

from collections import Counter
from collections.abc import Iterable

from hops.cost.rates import DeviceRates
from hops.model import Gemm, Kernel, OpWork, Pass


def gemm_seconds(gemm: Gemm, rates: DeviceRates) -> float:
    """Roofline with a ramp: calls x max(flop / flop rate + ramp, bytes / bandwidth).

    Roofline: Williams et al. 2009. The ramp is Hockney's n_1/2 (Hockney 1989) as a time: at ramp x rate flops a GEMM
    reaches half of the rate.
    """
    compute = gemm.flop / gemm.calls / rates.flop_per_s + rates.gemm_ramp_s
    return gemm.calls * max(compute, gemm.bytes / rates.bytes_per_s)


def pass_seconds(kernel: Pass, rates: DeviceRates) -> float:
    """Bytes over bandwidth."""
    return kernel.total_bytes / rates.bytes_per_s


def kernel_seconds(kernel: Kernel, rates: DeviceRates) -> float:
    """Time on the device of all calls of a kernel."""
    return gemm_seconds(kernel, rates) if isinstance(kernel, Gemm) else pass_seconds(kernel, rates)


def work_terms(kernels: Iterable[Kernel], rates: DeviceRates) -> Counter[str]:
    """Seconds on the device by term. Kernels of one stream run one after another, so times add up."""
    terms: Counter[str] = Counter()
    for kernel in kernels:
        terms[kernel.name] += kernel_seconds(kernel, rates)  # type: ignore[assignment]
    return terms


def op_terms(works: Iterable[OpWork], rates: DeviceRates, *, floor_s: float) -> dict[str, float]:
    """Seconds of one action by term: max(layers on the device, their dispatch) + ends of the model + launch.

    The host dispatches kernels ahead of the device, so an action takes the longer of both; `dispatch` is what the
    device waits. The backward pass scales the work and not the launch.
    """
    works = tuple(works)
    layers = work_terms((kernel for work in works for kernel in work.layers), rates)
    ends = work_terms((kernel for work in works for kernel in work.ends), rates)
    waiting = max(0.0, floor_s - sum(layers.values()))
    return {**(layers + ends), "dispatch": waiting, "launch": rates.launch_s}
