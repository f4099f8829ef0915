"""Kernels become seconds: one function per physical term."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, isfinite

from hops.cost.efficiency import ROWS_OF_QUERIES, KernelFit, Product, attention_seconds, product_seconds
from hops.cost.exchange import NO_GROUPS, DeviceGroups
from hops.errors import UsageError
from hops.model.kernels import WEIGHT_BACKWARD, Collective, Gemm, Kernel, Pass
from hops.model.workload import StageWork

GEMM_EFFICIENCY = 0.5
"""Attained over peak dense rate of a training run's GEMMs: 52 % of the peak is what Megatron-LM reports for its largest
models (Narayanan et al. 2021, arXiv 2104.04473, table 1). Large single GEMMs reach 0.8, power-limited cards less."""
MEMORY_EFFICIENCY = 0.8
"""Attained over peak bandwidth of streaming kernels: 0.8 to 0.92 on NVIDIA GPUs (Deakin et al. 2018, BabelSTREAM)."""
CACHE_SPEEDUP = 2.0
"""Of a pass over a tensor that the cache holds: what it reads hits, what it writes still goes to memory."""

FIXED_TIMES = (
    "gemm_ramp_s",
    "forward_layer_floor_s",
    "backward_layer_floor_s",
    "first_forward_s",
    "first_backward_s",
    "last_forward_s",
    "last_backward_s",
    "launch_s",
    "first_fetch_s",
    "refill_s",
    "optimizer_launch_s",
    "norm_layer_s",
    "step_layer_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes moved over bytes counted, by what is moved; 1: the count is right. Properties of code, not of devices.

    Attributes:
        scores_*: unfused attention's heads x sequence^2 scores, softmax and batched products.
        elementwise_*: norms, biases, activation, residuals.
        logits_*: cross-entropy over sequence x vocab.
        optimizer: gradients, states and weights in the step.
    """

    scores_forward: float = 1.0
    scores_backward: float = 1.0
    elementwise_forward: float = 1.0
    elementwise_backward: float = 1.0
    logits_forward: float = 1.0
    logits_backward: float = 1.0
    optimizer: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 < getattr(self, name) < float("inf"):
                raise UsageError(f"{name} of traffic must be a positive number, but got {getattr(self, name)!r}")

    def forward(self, kernel: str) -> float:
        """Factor of a kernel of F, by its name."""
        return {
            "attention": self.scores_forward,
            "softmax": self.scores_forward,
            "elementwise": self.elementwise_forward,
            "cross_entropy": self.logits_forward,
        }.get(kernel, 1.0)

    def backward(self, kernel: str) -> float:
        """Factor of a kernel of B, by its name."""
        return {
            "attention": self.scores_backward,
            "softmax": self.scores_backward,
            "elementwise": self.elementwise_backward,
            "cross_entropy": self.logits_backward,
        }.get(kernel, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """Rates of a device at the run's precision, and times of its host. FLOP/s, bytes/s, seconds.

    Attributes:
        peak_flop_per_s: dense peak of the matrix units.
        memory_bandwidth: peak of the device's memory.
        gemm_efficiency: part of the peak that a large GEMM reaches.
        gemm_ramp_s: what each GEMM launch takes on top, while the device fills and drains.
        memory_efficiency: part of the bandwidth that a pass over memory reaches.
        cache_bytes: the last-level cache (L2); 0 counts all traffic as memory's.
        cache_speedup: how much faster a pass over a tensor in the cache is.
        traffic: bytes moved over bytes counted.
        kernels: what kernels reach by their shape, in place of `gemm_efficiency`, ramp and `memory_efficiency`.
        narrow_flop_per_s: dense peaks of formats with fewer bits that the device has, by name.
        forward_layer_floor_s, backward_layer_floor_s: the host's time to dispatch one layer, whatever its size.
        dispatch_lag: how far the device runs behind its host at the least, as a part of a layer; 0 lets the smaller
            of the two hide entirely.
        first_forward_s, first_backward_s: the host's time for what only the first stage does: fetch, embedding.
        last_forward_s, last_backward_s: the same of the last stage: fetch, head, loss.
        launch_s: fixed time per action.
        first_fetch_s: what the first microbatch of an iteration waits for its data, on first and last stage.
        refill_s: what the microbatches of the first stage's warm-up wait more, as they are fetched faster than loaded.
        optimizer_launch_s: the host's time to dispatch the optimizer step, whatever its size.
        norm_layer_s, step_layer_s: its time per layer for the gradient norm and for the step.
        exchange: how its groups exchange.
    """

    peak_flop_per_s: float
    memory_bandwidth: float
    gemm_efficiency: float = GEMM_EFFICIENCY
    gemm_ramp_s: float = 0.0
    memory_efficiency: float = MEMORY_EFFICIENCY
    cache_bytes: float = 0.0
    cache_speedup: float = CACHE_SPEEDUP
    traffic: Traffic = field(default_factory=Traffic)
    kernels: KernelFit | None = None
    narrow_flop_per_s: tuple[tuple[str, float], ...] = ()
    forward_layer_floor_s: float = 0.0
    backward_layer_floor_s: float = 0.0
    dispatch_lag: float = 0.0
    first_forward_s: float = 0.0
    first_backward_s: float = 0.0
    last_forward_s: float = 0.0
    last_backward_s: float = 0.0
    launch_s: float = 0.0
    first_fetch_s: float = 0.0
    refill_s: float = 0.0
    optimizer_launch_s: float = 0.0
    norm_layer_s: float = 0.0
    step_layer_s: float = 0.0
    exchange: DeviceGroups = NO_GROUPS

    def __post_init__(self) -> None:
        for name in ("peak_flop_per_s", "memory_bandwidth"):
            self._check(name, "a positive number", ok=getattr(self, name) > 0)
        for name in ("gemm_efficiency", "memory_efficiency"):
            self._check(name, "above 0 and at most 1", ok=0 < getattr(self, name) <= 1)
        self._check("dispatch_lag", "from 0 to 1", ok=0 <= self.dispatch_lag <= 1)
        self._check("cache_speedup", "at least 1", ok=self.cache_speedup >= 1)
        for name in ("cache_bytes", *FIXED_TIMES):
            self._check(name, "a number of at least 0", ok=getattr(self, name) >= 0)

    def _check(self, name: str, expected: str, *, ok: bool) -> None:
        value = getattr(self, name)
        if not (ok and isfinite(value)):
            raise UsageError(f"{name} of a device must be {expected}, but got {value!r}")

    @property
    def flop_per_s(self) -> float:
        """What large GEMMs attain."""
        return self.peak_flop_per_s * self.gemm_efficiency

    @property
    def bytes_per_s(self) -> float:
        """What passes over memory attain."""
        return self.memory_bandwidth * self.memory_efficiency

    def peak_of(self, format_: str) -> float:
        """Dense FLOP/s of a number format; empty: the run's own. Raises UsageError if the device does not have it."""
        if not format_:
            return self.peak_flop_per_s
        peaks = dict(self.narrow_flop_per_s)
        if format_ not in peaks:
            had = f"it has {', '.join(peaks)}" if peaks else "it has none of fewer bits"
            raise UsageError(f"the device has no {format_} for quantized linear layers: {had}; choose another device")
        return peaks[format_]


Factor = Callable[[str], float]  # bytes moved over bytes counted of a kernel, by its name


def as_counted(_: str) -> float:
    """A kernel moves what was counted."""
    return 1.0


def gemm_seconds(gemm: Gemm, rates: DeviceRates, factor: float = 1.0) -> float:
    """Roofline with a ramp: max(flop / flop rate, bytes / bandwidth) + calls x ramp.

    Roofline: Williams et al. 2009. The ramp is Hockney's n_1/2 (Hockney 1989) as a time: at ramp x rate flops a GEMM
    reaches half of the rate.
    """
    if rates.kernels is not None:
        return gemm.calls * _launch_seconds(gemm, rates, rates.kernels, factor)
    flop_s = gemm.flop / (rates.peak_of(gemm.format) * rates.gemm_efficiency)
    return max(flop_s, traffic_seconds(gemm, rates, factor)) + gemm.calls * rates.gemm_ramp_s


def _launch_seconds(gemm: Gemm, rates: DeviceRates, kernels: KernelFit, factor: float) -> float:
    """One launch by the fit of its kind: fused attention, a group of products (experts), or products."""
    if gemm.fused:
        parts = {"forward": 2, "backward": 5}[gemm.fused]  # products of queries' and of values' width
        return attention_seconds(
            gemm.flop / gemm.calls,
            kernels.attention,
            blocks=gemm.batch * ceil(gemm.rows / ROWS_OF_QUERIES),
            width=gemm.inner / parts,
            backward=gemm.fused == "backward",
            multiprocessors=kernels.multiprocessors,
            peak_flop_per_s=rates.peak_flop_per_s * kernels.sustained,
        )
    return product_seconds(
        Product(rows=gemm.rows, columns=gemm.columns, inner=gemm.inner, batch=gemm.batch, bytes=factor * gemm.bytes),
        kernels.product(gemm.format, grouped=gemm.batch > 1 and gemm.working_set == 0),
        multiprocessors=kernels.multiprocessors,
        peak_flop_per_s=rates.peak_of(gemm.format) * kernels.sustained,
        bytes_per_s=rates.memory_bandwidth,
    )


def traffic_seconds(kernel: Gemm | Pass, rates: DeviceRates, factor: float = 1.0) -> float:
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
    """Time of all calls of a kernel, a collective's with nothing hidden."""
    if isinstance(kernel, Gemm):
        return gemm_seconds(kernel, rates, factor if kernel.working_set else 1.0)  # dense operands are as counted
    if isinstance(kernel, Collective):
        return rates.exchange.seconds(kernel)
    return traffic_seconds(kernel, rates, factor)


COMPUTING = "computing"  # what a collective hides under that may hide under all kernels of its op


def work_terms(
    kernels: Iterable[Kernel], rates: DeviceRates, factor: Factor = as_counted, *, weights_s: float = 0.0
) -> Counter[str]:
    """Seconds by term. Kernels of one stream run one after another, so times add up.

    A collective that may hide adds only what is exposed beside the computing of the term that it hides under;
    `weights_s`: computing of W that goes on beside it.
    """
    terms: Counter[str] = Counter()
    hiding: Counter[tuple[str, str]] = Counter()  # seconds by own term, and by what they hide under
    left: Counter[str] = Counter({WEIGHT_BACKWARD: weights_s})  # computing that can hide
    for kernel in kernels:
        seconds = kernel_seconds(kernel, rates, factor(kernel.name))
        if isinstance(kernel, Collective) and kernel.hides_under:
            hiding[kernel.name, kernel.hides_under] += seconds  # type: ignore[assignment]
            continue
        terms[kernel.name] += seconds  # type: ignore[assignment]
        if not isinstance(kernel, Collective):
            left[kernel.name] += seconds  # type: ignore[assignment]
            left[COMPUTING] += seconds  # type: ignore[assignment]
    for (name, under), exchanged in hiding.items():
        terms[name] += rates.exchange.exposed(exchanged, left[under])  # type: ignore[assignment]
        left[under] = max(0.0, left[under] - exchanged)  # type: ignore[assignment]
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
    weights = sum(work_terms(work.weight_backward.layers, rates, rates.traffic.backward).values())
    layers = work_terms(
        (kernel for op in ops for kernel in op.layers), rates, rates.traffic.backward, weights_s=weights
    )
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
