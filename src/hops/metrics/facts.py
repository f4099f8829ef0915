"""What metrics need beside the trace: sizes of the work and of the devices."""

from dataclasses import dataclass

from hops.model import StageMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts about a run that its trace does not hold. Metrics that need a missing fact (None, ()) are left out.

    Attributes:
        warmup_iterations: first iterations left out of every metric.
        samples_per_microbatch, tokens_per_microbatch: for throughput in samples and tokens; one pipeline replica.
        data_parallel: replicas of the pipeline; throughput counts all.
        flop_per_microbatch: model FLOPs of forward and backward of one microbatch, for MFU.
        peak_flop_per_s: per rank, the device's peak dense rate.
        stage_memory: per stage, for memory over time.
        memory_bytes: per rank, the device's capacity.
    """

    warmup_iterations: int = 0
    samples_per_microbatch: int | None = None
    tokens_per_microbatch: int | None = None
    data_parallel: int = 1
    flop_per_microbatch: float | None = None
    peak_flop_per_s: tuple[float, ...] = ()
    stage_memory: tuple[StageMemory, ...] = ()
    memory_bytes: tuple[int, ...] = ()

    @property
    def knows_memory(self) -> bool:
        """Whether stages are said to hold anything: with stated times, memory may be left unstated, which is all 0."""
        return any(stage != StageMemory() for stage in self.stage_memory)
