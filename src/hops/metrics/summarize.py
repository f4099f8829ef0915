"""From a trace to its summary: calls every metric once and puts the numbers under their names."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.metrics.bubble import BubbleCause, Bubbles, Idle, bubbles
from hops.metrics.exposed import Exposed, exposed, phases
from hops.metrics.iterations import Iterations, is_action, stage_spans_ns
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.memory import MemoryPeak, in_flight, memory_peaks
from hops.metrics.summary import (
    FORMAT,
    BubbleCauses,
    BubbleSummary,
    BubbleWindows,
    ExposedCommunication,
    IterationTime,
    LinkSummary,
    MemorySummary,
    PhaseTimes,
    RankSummary,
    RunFacts,
    StageSummary,
    Summary,
    Throughput,
    TimeSpread,
)
from hops.metrics.throughput import (
    hfu,
    iteration_times_ns,
    mfu,
    microbatch_latencies_ns,
    microbatches_per_s,
    samples_per_s,
    tokens_per_s,
)
from hops.program.action import ACTION_OPS
from hops.trace.trace import Trace

NS_PER_MS = 1e6


class PartsFound:
    """A run whose parts that several figures need are found once, when the first of them is asked for."""

    def __init__(self, trace: Trace, facts: RunFacts) -> None:
        self.run = Iterations.of(trace, facts)
        self.meta = trace.meta
        self.facts = facts

    @cached_property
    def bubbles(self) -> Bubbles:
        return bubbles(self.run)

    @cached_property
    def memory(self) -> tuple[MemoryPeak, ...]:
        return memory_peaks(self.run)

    @cached_property
    def exposed(self) -> Exposed:
        return exposed(self.run, self.bubbles)


SECTIONS: Mapping[str, Callable[[PartsFound], Any]] = {  # of a Summary, by its fields
    "format": lambda _: FORMAT,
    "source": lambda found: found.meta.source,
    "schedule": lambda found: found.meta.schedule,
    "num_ranks": lambda found: found.meta.num_ranks,
    "num_stages": lambda found: found.meta.num_stages,
    "num_microbatches": lambda found: found.meta.shape.whole_microbatches,
    "data_parallel": lambda found: found.facts.data_parallel,
    "iterations": lambda found: found.run.num_iterations,
    "warmup_iterations": lambda found: found.facts.warmup_iterations,
    "iteration_time": lambda found: _iteration_time(iteration_times_ns(found.run)),
    "throughput": lambda found: _throughput(found.run),
    "microbatch_latency": lambda found: _spread(microbatch_latencies_ns(found.run)),
    "mfu": lambda found: mfu(found.run),
    "hfu": lambda found: hfu(found.run),
    "bubble": lambda found: BubbleWindows(
        pipeline=_bubble(found.bubbles.pipeline, found.run.num_iterations),
        iteration=_bubble(found.bubbles.iteration, found.run.num_iterations),
    ),
    "phases": lambda found: _phases(found.run),
    "exposed_communication": lambda found: _exposed(found.exposed, found.run),
    "ranks": lambda found: _ranks(found),  # noqa: PLW0108 (it stands further down)
    "stages": lambda found: _stages(found.run),
    "links": lambda found: tuple(_link(use, found.run.num_iterations) for use in link_uses(found.run)),
}


def summarize(trace: Trace, facts: RunFacts) -> Summary:
    """Every metric of a run, from its trace (simulated or measured) and what the trace does not say.

    Raises UsageError if warm-up leaves no iteration.
    """
    found = PartsFound(trace, facts)
    return Summary(**{name: section(found) for name, section in SECTIONS.items()})


def _throughput(run: Iterations) -> Throughput:
    return Throughput(
        microbatches_per_s=microbatches_per_s(run),
        samples_per_s=samples_per_s(run),
        tokens_per_s=tokens_per_s(run),
    )


def _iteration_time(times: NDArray[np.int64]) -> IterationTime:
    spread = _spread(times)
    assert spread is not None, "a run has iterations"
    return IterationTime(
        mean_ms=spread.mean_ms,
        p50_ms=spread.p50_ms,
        p99_ms=spread.p99_ms,
        values_ms=tuple((times / NS_PER_MS).tolist()),
    )


def _spread(times: NDArray[np.int64]) -> TimeSpread | None:
    if not len(times):
        return None
    p50, p99 = np.percentile(times, (50, 99)).tolist()
    return TimeSpread(mean_ms=float(times.mean()) / NS_PER_MS, p50_ms=p50 / NS_PER_MS, p99_ms=p99 / NS_PER_MS)


def _bubble(idle: Idle, iterations: int) -> BubbleSummary:
    return BubbleSummary(
        window_ms=idle.window_ns / iterations / NS_PER_MS,
        fraction=idle.fraction(),
        by_cause=BubbleCauses(**{cause.value: idle.fraction_of(cause) for cause in BubbleCause}),
    )


def _phases(run: Iterations) -> PhaseTimes:
    cut = phases(run)
    scale = run.num_iterations * NS_PER_MS
    return PhaseTimes(
        warm_up_ms=cut.warm_up / scale,
        steady_ms=cut.steady / scale,
        cool_down_ms=cut.cool_down / scale,
        reductions_ms=cut.reductions / scale,
        optimizer_ms=cut.optimizer / scale,
        host_ms=cut.host / scale,
        other_ms=cut.other / scale,
    )


def _exposed(lost: Exposed, run: Iterations) -> ExposedCommunication:
    scale = run.num_iterations * run.num_ranks * NS_PER_MS
    return ExposedCommunication(
        messages_ms=int(lost.messages.sum()) / scale,
        reductions_ms=int(lost.reductions.sum()) / scale,
        synchronization_ms=int(lost.synchronization.sum()) / scale,
        total_ms=int(lost.total.sum()) / scale,
    )


def _ranks(found: PartsFound) -> tuple[RankSummary, ...]:
    run, idle, lost = found.run, found.bubbles.iteration, found.exposed
    meta = run.trace.meta
    scale = run.num_iterations * NS_PER_MS
    spans = stage_spans_ns(run).sum(axis=0)
    flights = in_flight(run)
    memory = _memory(run, found.memory)
    return tuple(
        RankSummary(
            rank=rank,
            device=meta.devices[rank],
            host=meta.hosts[rank],
            stages=tuple(stage for stage, owner in enumerate(meta.rank_of_stage) if owner == rank),
            utilization=int(idle.busy_ns[rank]) / idle.window_ns,
            busy_ms=int(idle.busy_ns[rank]) / scale,
            idle_ms=BubbleCauses(**{cause.value: int(idle.by_cause[cause][rank]) / scale for cause in BubbleCause}),
            exposed_ms=int(lost.total[rank]) / scale,
            stage_span_ms=int(spans[rank]) / scale,
            in_flight_peak=flights[rank].peak,
            memory=memory[rank],
        )
        for rank in range(run.num_ranks)
    )


def _memory(run: Iterations, peaks: Sequence[MemoryPeak]) -> list[MemorySummary | None]:
    capacity = run.facts.memory_bytes or (None,) * run.num_ranks
    if not peaks:
        return [None] * run.num_ranks
    return [
        MemorySummary(
            peak_bytes=peak.total,
            weights_bytes=peak.weights,
            gradients_bytes=peak.gradients,
            optimizer_bytes=peak.optimizer,
            activations_bytes=peak.activations,
            capacity_bytes=has,
        )
        for peak, has in zip(peaks, capacity, strict=True)
    ]


def _stages(run: Iterations) -> tuple[StageSummary, ...]:
    rows = run.trace.where(is_action(run.trace))
    cell = rows.stage.astype(np.int64) * len(ACTION_OPS) + rows.op
    cells = run.trace.meta.num_stages * len(ACTION_OPS)
    medians = [None if np.isnan(value) else value / NS_PER_MS for value in _medians(cell, rows.duration_ns, cells)]
    return tuple(
        StageSummary(
            stage=stage,
            rank=owner,
            forward_ms=medians[4 * stage],
            backward_ms=medians[4 * stage + 1],
            input_backward_ms=medians[4 * stage + 2],
            weight_backward_ms=medians[4 * stage + 3],
        )
        for stage, owner in enumerate(run.trace.meta.rank_of_stage)
    )


def _medians(group: NDArray[np.int64], values: NDArray[np.int64], groups: int) -> list[float]:
    """Median of the values of each group: the middle one, or the mean of the middle two; NaN for an empty group."""
    ranked = values[np.lexsort((values, group))].astype(np.float64)
    count = np.bincount(group, minlength=groups)
    low = np.cumsum(count) - count
    some = count > 0
    medians = np.full(groups, np.nan)
    medians[some] = (ranked[(low + (count - 1) // 2)[some]] + ranked[(low + count // 2)[some]]) / 2
    return medians.tolist()


def _link(use: LinkUse, iterations: int) -> LinkSummary:
    bandwidth = use.link.bandwidth
    return LinkSummary(
        name=use.link.name,
        bandwidth_bytes_per_s=bandwidth if isfinite(bandwidth) else None,
        messages=use.messages / iterations,
        carried_bytes=use.bytes / iterations,
        utilization=use.utilization,
        busy_share=use.busy_share,
        contention_ms=use.contended_ns / iterations / NS_PER_MS,
    )
