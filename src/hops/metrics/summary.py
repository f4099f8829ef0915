"""A summary is a run in numbers; its field names are the keys of the summary JSON, and bear their units.

Every key is always there. None (JSON null) means: not known from this trace and these facts. NaN and infinities never
appear. All times per iteration are means over the iterations that count.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from hops.arrays import table_library
from hops.model.memory import StageMemory

FORMAT = "hops-summary/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpread:
    """Mean and percentiles (linear interpolation) of a time."""

    mean_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTime:
    """Start to start; the last iteration: to its end."""

    mean_ms: float
    p50_ms: float
    p99_ms: float
    values_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Over iteration time with the optimizer step inside, all data-parallel replicas together."""

    microbatches_per_s: float
    samples_per_s: float | None
    tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BubbleCauses:
    """Fractions of ranks x window (or ms of one rank), by cause; see `hops.metrics.BubbleCause`."""

    warm_up_cool_down: float
    imbalance: float
    messages: float
    fault: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BubbleSummary:
    """Bubble of one window; the causes sum to `fraction`."""

    window_ms: float
    fraction: float
    by_cause: BubbleCauses


@dataclass(frozen=True, slots=True, kw_only=True)
class BubbleWindows:
    """The two windows that a bubble can refer to."""

    pipeline: BubbleSummary
    iteration: BubbleSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimes:
    """Phases of an iteration; they sum to its mean time."""

    warm_up_ms: float
    steady_ms: float
    cool_down_ms: float
    reductions_ms: float
    optimizer_ms: float
    host_ms: float
    other_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedCommunication:
    """Per rank and iteration: ms in which communication or synchronisation kept the rank from computing."""

    messages_ms: float
    reductions_ms: float
    synchronization_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySummary:
    """Most bytes that the device held, by part, against what it has."""

    peak_bytes: int
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    capacity_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """One rank and its device. `idle` says why it idles in the window `iteration`, in ms per iteration."""

    rank: int
    device: str
    host: str
    stages: tuple[int, ...]
    utilization: float
    busy_ms: float
    idle_ms: BubbleCauses
    exposed_ms: float
    stage_span_ms: float
    in_flight_peak: int
    memory: MemorySummary | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSummary:
    """Median time of each op of a stage; None if it never ran."""

    stage: int
    rank: int
    forward_ms: float | None
    backward_ms: float | None
    input_backward_ms: float | None
    weight_backward_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSummary:
    """Traffic of one link, per iteration. `contention_ms`: with two or more messages on it."""

    name: str
    bandwidth_bytes_per_s: float | None
    messages: float
    carried_bytes: float
    utilization: float | None
    busy_share: float
    contention_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything that is said about a run, simulated or measured."""

    format: str
    source: str
    schedule: str
    num_ranks: int
    num_stages: int
    num_microbatches: int
    data_parallel: int
    iterations: int
    warmup_iterations: int
    iteration_time: IterationTime
    throughput: Throughput
    microbatch_latency: TimeSpread | None
    mfu: float | None
    hfu: float | None
    bubble: BubbleWindows
    phases: PhaseTimes
    exposed_communication: ExposedCommunication
    ranks: tuple[RankSummary, ...]
    stages: tuple[StageSummary, ...]
    links: tuple[LinkSummary, ...]

    def __repr__(self) -> str:
        time_ms, bubble = self.iteration_time.mean_ms, 100 * self.bubble.pipeline.fraction
        ran = f"{self.schedule or 'no schedule'}, {self.num_ranks} ranks"
        return f"Summary({ran}, {time_ms:,.5g} ms an iteration, pipeline bubble {bubble:.1f} %)"

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each rank: idle time by cause and memory by part as columns of their own.

        Raises UsageError if pandas is not installed.
        """
        rows = []
        for rank in self.ranks:
            plain = asdict(rank)
            idle, memory = plain.pop("idle_ms"), plain.pop("memory") or {}
            rows.append({**plain, **{f"idle_{cause}_ms": ms for cause, ms in idle.items()}, **memory})
        return table_library("pandas").DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts and lists of numbers, text and None, keys as in docs/reference/metrics.md."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return plain

    def to_json(self) -> str:
        """The summary JSON: the same summary gives the same bytes. Ends in a newline."""
        return json.dumps(asdict(self), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts about a run that its trace does not hold. Metrics that need a missing fact (None, ()) are left out.

    Attributes:
        warmup_iterations: first iterations left out of every metric.
        samples_per_microbatch, tokens_per_microbatch: for throughput in samples and tokens; one pipeline replica.
        data_parallel: replicas of the pipeline; throughput counts all.
        devices_per_rank: that a rank stands for in one replica; all compute at its rate.
        flop_per_microbatch: model FLOPs of forward and backward of one microbatch, for MFU.
        hardware_flop_per_microbatch: FLOPs that the devices of a replica run for it, what is computed again included.
        peak_flop_per_s: per rank, the device's peak dense rate.
        stage_memory: per stage, for memory over time.
        memory_bytes: per rank, the device's capacity.
        microbatch_work: factors on tokens, FLOPs and activations of each microbatch: a row per iteration from 0 on, or
            one for all of them; () where all are 1.
        host_per_action_ns: the host's time between two actions, in which a rank waits for nobody.
    """

    warmup_iterations: int = 0
    samples_per_microbatch: int | None = None
    tokens_per_microbatch: int | None = None
    data_parallel: int = 1
    devices_per_rank: int = 1
    flop_per_microbatch: float | None = None
    hardware_flop_per_microbatch: float | None = None
    peak_flop_per_s: tuple[float, ...] = ()
    stage_memory: tuple[StageMemory, ...] = ()
    memory_bytes: tuple[int, ...] = ()
    microbatch_work: tuple[tuple[float, ...], ...] = ()
    host_per_action_ns: int = 0

    @property
    def knows_memory(self) -> bool:
        """Whether stages are said to hold anything: with stated times, memory may be left unstated, which is all 0."""
        return any(stage != StageMemory() for stage in self.stage_memory)
