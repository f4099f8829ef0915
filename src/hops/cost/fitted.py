"""A hardware profile applied: rates of a device in its host, messages, the tied all-reduce with its stalls."""

from dataclasses import dataclass

import numpy as np

from hops.cost.profile import CodeFit, DeviceFit, HardwareProfile, HostFit, MessageFit, PairFit
from hops.cost.roofline import DeviceRates
from hops.distributions import Constant, Empirical
from hops.hardware.devices import DeviceKind
from hops.hardware.network import RareDelay
from hops.model.implementation import HostOperations

TCP_CORE_BYTES_PER_S = 42e9 / 8
"""What one core moves over one TCP connection in one direction: 42 Gbit/s (Cai et al., SIGCOMM 2021, "Understanding
host network stack overheads"). An all-reduce moves both directions at once, at half of it each."""


NARROW = ("fp8", "fp4")  # formats of quantized linear layers


def shapes_traffic(nic_bytes_per_s: float) -> bool:
    """Whether a NIC is slower than what TCP reaches in an all-reduce: then it sets the rate, and nothing is dropped."""
    return nic_bytes_per_s < TCP_CORE_BYTES_PER_S / 2


def catalog_rates(kind: DeviceKind, precision: str, operations: HostOperations) -> DeviceRates:
    """What the catalog says of a device: vendor's peaks and cache, counted operations x the host's time for one.

    A stated time per layer takes the place of the counted operations of layers.
    """
    each = kind.operation_s
    forward, backward = operations.layer_forward * each, operations.layer_backward * each
    return DeviceRates(
        peak_flop_per_s=kind.rate(precision),
        memory_bandwidth=kind.memory_bandwidth,
        cache_bytes=kind.cache_bytes,
        narrow_flop_per_s=tuple((name, kind.rates[name]) for name in NARROW if name in kind.rates),
        forward_layer_floor_s=forward if kind.layer_s is None else kind.layer_s,
        backward_layer_floor_s=backward if kind.layer_s is None else kind.layer_s,
        first_forward_s=operations.first_forward * each,
        first_backward_s=operations.first_backward * each,
        last_forward_s=operations.last_forward * each,
        last_backward_s=operations.last_backward * each,
        launch_s=kind.launch_s,
        optimizer_launch_s=operations.step * each,
        norm_layer_s=operations.norm_layer * each,
        step_layer_s=operations.step_layer * each,
    )


def fitted_rates(
    kind: DeviceKind, precision: str, operations: HostOperations, device: DeviceFit, host: HostFit, code: CodeFit
) -> DeviceRates:
    """The same from fitted parts: counted operations x fitted time of one x the code's factor."""
    each, factors = host.operation_s, code.operations
    return DeviceRates(
        peak_flop_per_s=kind.rate(precision),
        memory_bandwidth=kind.memory_bandwidth,
        cache_bytes=kind.cache_bytes,
        cache_speedup=code.cache_speedup,
        narrow_flop_per_s=tuple((name, kind.rates[name]) for name in NARROW if name in kind.rates),
        gemm_efficiency=device.gemm_efficiency,
        gemm_ramp_s=device.gemm_ramp_s,
        memory_efficiency=device.memory_efficiency,
        traffic=code.traffic,
        forward_layer_floor_s=operations.layer_forward * each,
        backward_layer_floor_s=operations.layer_backward * each * factors.layer_backward,
        dispatch_lag=code.dispatch_lag,
        first_forward_s=operations.first_forward * each * factors.first_forward,
        first_backward_s=operations.first_backward * each * factors.first_backward,
        last_forward_s=operations.last_forward * each * factors.last_forward,
        last_backward_s=operations.last_backward * each * factors.last_backward,
        first_fetch_s=host.first_fetch_s,
        refill_s=host.refill_s,
        optimizer_launch_s=operations.step * each * factors.step,
        norm_layer_s=operations.norm_layer * each * factors.norm_layer,
        step_layer_s=operations.step_layer * each * factors.step_layer,
    )


def port_bytes_per_s(host: HostFit, nic_bytes_per_s: float, size: float, fit: MessageFit) -> float:
    """Mean rate of a message of `size` bytes through a host: its socket thread's, or its NIC's once the burst is gone.

    A token bucket lets `burst` bytes through at once: a longer message takes (size - burst) / rate.
    """
    attained = nic_bytes_per_s * fit.nic_efficiency
    if size <= fit.nic_burst_bytes:
        return host.socket_bytes_per_s
    return min(host.socket_bytes_per_s, attained * size / (size - fit.nic_burst_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of the tied all-reduce: its host's name and kind, and its NIC."""

    host: str
    kind: str
    nic_bytes_per_s: float


def tied_reduce(
    profile: HardwareProfile, first: End, last: End, size: float
) -> tuple[Empirical | Constant, RareDelay | None]:
    """Distribution of the all-reduce of `size` bytes between two hosts, and its stalls.

    Seconds are in proportion to bytes. A pair never seen is as slow as its slower host, a host as fast as the fastest
    pair it was seen in.
    """
    pair = _pair(profile, first, last)
    shaped = shapes_traffic(min(first.nic_bytes_per_s, last.nic_bytes_per_s))
    prior = profile.reduce.shaped if shaped else profile.reduce.free
    stalls, seen = prior.alpha, prior.alpha + prior.beta
    for path in profile.reduce.paths:
        if set(path.between) == {first.host, last.host}:
            stalls, seen = stalls + path.stalls, seen + path.reductions
    stall = RareDelay(probability=stalls / seen, extra=Constant(value=pair.stall_s)) if stalls > 0 else None
    return Empirical(samples=tuple(each * size for each in pair.seconds_per_byte)), stall


def pair_of(first: End, last: End) -> tuple[str, ...]:
    """What an all-reduce depends on: the kind of the slower NIC alone if it shapes the traffic, else both kinds."""
    slower = min(first, last, key=lambda end: end.nic_bytes_per_s)
    if shapes_traffic(slower.nic_bytes_per_s):
        return (slower.kind,)
    return tuple(sorted((first.kind, last.kind)))


def _pair(profile: HardwareProfile, first: End, last: End) -> PairFit:
    def median(pair: PairFit) -> float:
        return float(np.median(pair.seconds_per_byte))

    wanted = pair_of(first, last)
    for pair in profile.reduce.pairs:
        if tuple(sorted(pair.hosts)) == wanted:
            return pair
    by_host = [
        min((pair for pair in profile.reduce.pairs if end.kind in pair.hosts), key=median, default=None)
        for end in (first, last)
    ]
    known = [pair for pair in by_host if pair is not None] or list(profile.reduce.pairs)
    return max(known, key=median)
