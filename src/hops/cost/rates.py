"""What a device attains: its vendor's peaks, the part of them that kernels reach, and the host's dispatch."""

from dataclasses import dataclass
from math import isfinite

from hops.errors import UsageError

GEMM_EFFICIENCY = 0.8
"""Attained over peak dense rate of large GEMMs: 0.80 on H100 SXM, 0.87 on A100 SXM (S. Bekman, Machine Learning
Engineering, "maximum achievable matmul FLOPS", 2024). Power-limited cards reach less: calibrate."""
MEMORY_EFFICIENCY = 0.85
"""Attained over peak bandwidth of streaming kernels: 0.8 to 0.92 on NVIDIA GPUs (Deakin et al. 2018, BabelSTREAM)."""

CACHE_SPEEDUP = 2.0
"""Of a pass over a tensor that the cache holds: what it reads hits, what it writes still goes to memory."""
FIXED_TIMES = (
    "gemm_ramp_s",
    "forward_layer_floor_s",
    "backward_layer_floor_s",
    "embedding_floor_s",
    "head_floor_s",
    "batch_load_s",
    "launch_s",
    "optimizer_launch_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """Rates of a device at the run's precision, and times of its host. FLOP/s, bytes/s, seconds.

    Attributes:
        peak_flop_per_s: dense peak of the matrix units.
        memory_bandwidth: peak of the device's memory.
        gemm_efficiency: part of the peak that a large GEMM reaches.
        gemm_ramp_s: what each GEMM launch takes on top of its flops, while the device fills and drains; makes small
            GEMMs inefficient.
        memory_efficiency: part of the bandwidth that a pass over memory reaches.
        cache_bytes: the last-level cache (L2); 0 counts all traffic as memory's.
        cache_speedup: how much faster a pass over a tensor in the cache is.
        forward_layer_floor_s, backward_layer_floor_s: the host's time to dispatch one layer, whatever its size.
        embedding_floor_s, head_floor_s: the host's time to dispatch what only the first stage does, and only the last.
        batch_load_s: the host's time to fetch a microbatch, on first and last stage before F.
        launch_s: fixed time per action.
        optimizer_launch_s: the host's time to dispatch the optimizer step.
    """

    peak_flop_per_s: float
    memory_bandwidth: float
    gemm_efficiency: float = GEMM_EFFICIENCY
    gemm_ramp_s: float = 0.0
    memory_efficiency: float = MEMORY_EFFICIENCY
    cache_bytes: float = 0.0
    cache_speedup: float = CACHE_SPEEDUP
    forward_layer_floor_s: float = 0.0
    backward_layer_floor_s: float = 0.0
    embedding_floor_s: float = 0.0
    head_floor_s: float = 0.0
    batch_load_s: float = 0.0
    launch_s: float = 0.0
    optimizer_launch_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("peak_flop_per_s", "memory_bandwidth"):
            self._check(name, "a positive number", ok=getattr(self, name) > 0)
        for name in ("gemm_efficiency", "memory_efficiency"):
            self._check(name, "above 0 and at most 1", ok=0 < getattr(self, name) <= 1)
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
