"""From a trace to its summary: calls every metric once and puts the numbers under their names."""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from hops.metrics.bubble import BubbleCause, Idle, bubbles
from hops.metrics.exposed import Exposed, exposed, phases
from hops.metrics.iterations import Iterations, is_action, stage_spans_ns
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.memory import in_flight, memory_peaks
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


def summarize(trace: Trace, facts: RunFacts) -> Summary:
    """Every metric of a run, from its trace (simulated or measured) and what the trace does not say.

    Raises UsageError if warm-up leaves no iteration.
    """
    run = Iterations.of(trace, facts)
    found = bubbles(run)
    lost = exposed(run, found)
    meta = trace.meta
    return Summary(
        format=FORMAT,
        source=meta.source,
        schedule=meta.schedule,
        num_ranks=meta.num_ranks,
        num_stages=meta.num_stages,
        num_microbatches=meta.num_microbatches,
        data_parallel=facts.data_parallel,
        iterations=run.num_iterations,
        warmup_iterations=facts.warmup_iterations,
        iteration_time=_iteration_time(iteration_times_ns(run)),
        throughput=Throughput(
            microbatches_per_s=microbatches_per_s(run),
            samples_per_s=samples_per_s(run),
            tokens_per_s=tokens_per_s(run),
        ),
        microbatch_latency=_spread(microbatch_latencies_ns(run)),
        mfu=mfu(run),
        bubble=BubbleWindows(
            pipeline=_bubble(found.pipeline, run.num_iterations),
            iteration=_bubble(found.iteration, run.num_iterations),
        ),
        phases=_phases(run),
        exposed_communication=_exposed(lost, run),
        ranks=_ranks(run, found.iteration, lost),
        stages=_stages(run),
        links=tuple(_link(use, run.num_iterations) for use in link_uses(run)),
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


def _ranks(run: Iterations, idle: Idle, lost: Exposed) -> tuple[RankSummary, ...]:
    meta = run.trace.meta
    scale = run.num_iterations * NS_PER_MS
    spans = stage_spans_ns(run).sum(axis=0)
    flights = in_flight(run)
    memory = _memory(run)
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


def _memory(run: Iterations) -> list[MemorySummary | None]:
    peaks = memory_peaks(run)
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
