"""Scores: predictions against what was measured, per run and over runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.metrics.iterations import Iterations, is_action
from hops.metrics.parts import parts_ns
from hops.metrics.summary import RunFacts
from hops.metrics.throughput import iteration_times_ns, microbatch_latencies_ns
from hops.program.action import Op
from hops.trace.trace import Stream, Trace

S_PER_NS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """Figures of a run. Seconds.

    Attributes:
        num_microbatches: per iteration.
        mean_iteration_s, p50_iteration_s: start to start.
        forward_busy_s, backward_busy_s: F, and B (I, W), per rank and iteration.
        optimizer_s: the step per rank and iteration.
        forward_s, backward_s: median of F and of B (or I + W) per stage.
        latency_s: mean time from a microbatch's first F to the end of its last backward.
        pipeline_s, reduce_s, step_s, gap_s: parts of the mean iteration, one after the other: first F to last backward,
            to the first optimizer step, to the end of the last one, to the next iteration.
    """

    num_microbatches: int
    mean_iteration_s: float
    p50_iteration_s: float
    forward_busy_s: tuple[float, ...]
    backward_busy_s: tuple[float, ...]
    optimizer_s: tuple[float, ...]
    forward_s: tuple[float, ...]
    backward_s: tuple[float, ...]
    latency_s: float
    pipeline_s: float
    reduce_s: float
    step_s: float
    gap_s: float

    @property
    def busy_s(self) -> tuple[float, ...]:
        """What each rank's pipeline computes in an iteration: F and B. The optimizer step is not in it."""
        return tuple(map(sum, zip(self.forward_busy_s, self.backward_busy_s, strict=True)))

    @property
    def throughput(self) -> float:
        """Microbatches per second, over the mean iteration."""
        return self.num_microbatches / self.mean_iteration_s

    @property
    def utilization(self) -> tuple[float, ...]:
        """Part of the mean iteration that each rank computes F and B."""
        return tuple(busy / self.mean_iteration_s for busy in self.busy_s)

    @property
    def bubble(self) -> float:
        """1 - busy / (ranks x iteration)."""
        return 1 - sum(self.busy_s) / (len(self.busy_s) * self.mean_iteration_s)


def measured_outcome(trace: Trace, *, warmup: int = 0) -> RunFigures:
    """Figures of all iterations but the first `warmup`."""
    run = Iterations.of(trace, RunFacts(warmup_iterations=warmup))
    return _outcome(run, iteration_times_ns(run) * S_PER_NS)


def simulated_outcome(trace: Trace) -> RunFigures:
    """Figures of a simulation without chance: its first iteration, from its start to the start of the next."""
    run = Iterations.of(trace, RunFacts())
    whole = iteration_times_ns(run)[:1] * S_PER_NS
    first = Iterations.of(trace.where(trace.iteration == run.iterations[0]), RunFacts())
    return _outcome(first, whole)


def _outcome(run: Iterations, iterations_s: NDArray[np.floating[Any]]) -> RunFigures:
    trace = run.trace
    length = (trace.end_ns - trace.start_ns) * S_PER_NS
    action = is_action(trace)
    step = (trace.stream == Stream.COMPUTE) & (trace.op == Op.OPTIMIZER)

    def per_rank(rows: NDArray[np.bool_]) -> tuple[float, ...]:
        sums = np.bincount(trace.rank[rows], weights=length[rows], minlength=run.num_ranks)
        return tuple((sums / run.num_iterations).tolist())

    pipeline, reduce, step_length = _parts(run)
    mean = float(iterations_s.mean())
    return RunFigures(
        num_microbatches=trace.meta.num_microbatches,
        mean_iteration_s=mean,
        p50_iteration_s=float(np.median(iterations_s)),
        forward_busy_s=per_rank(action & (trace.op == Op.F)),
        backward_busy_s=per_rank(action & (trace.op != Op.F)),
        optimizer_s=per_rank(step),
        forward_s=_medians(run, action & (trace.op == Op.F)),
        backward_s=_medians(run, action & (trace.op != Op.F)),
        latency_s=float(microbatch_latencies_ns(run).mean()) * S_PER_NS,
        pipeline_s=pipeline,
        reduce_s=reduce,
        step_s=step_length,
        gap_s=mean - pipeline - reduce - step_length,
    )


def _parts(run: Iterations) -> tuple[float, float, float]:
    """Mean seconds of the pipeline, of what lies before the first optimizer step, and of all steps."""
    found = parts_ns(run)
    if found is None:
        return float(run.pipeline_ns) / run.num_iterations * S_PER_NS, 0.0, 0.0
    pipeline, reduce, optimizer = (float(part.mean()) * S_PER_NS for part in found[:3])
    return pipeline, reduce, optimizer


def _medians(run: Iterations, rows: NDArray[np.bool_]) -> tuple[float, ...]:
    """Per stage, the median over iterations and microbatches of what `rows` of one microbatch take together."""
    trace = run.trace
    stages, size = trace.meta.num_stages, trace.meta.num_microbatches
    key = (run.index[rows] * size + trace.microbatch[rows]) * stages + trace.stage[rows]
    found, place = np.unique(key, return_inverse=True)
    sums = np.bincount(place, weights=(trace.end_ns - trace.start_ns)[rows] * S_PER_NS)
    return tuple(float(np.median(sums[found % stages == stage])) for stage in range(stages))


MIN_RANKS = 3  # a rank correlation of two ranks says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """One run, predicted and measured. Errors are prediction over measurement - 1, in percent."""

    name: str
    predicted: RunFigures
    measured: RunFigures

    @property
    def throughput_pct(self) -> float:
        return _percent(self.predicted.throughput, self.measured.throughput)

    @property
    def p50_pct(self) -> float:
        return _percent(self.predicted.p50_iteration_s, self.measured.p50_iteration_s)

    @property
    def latency_pct(self) -> float:
        return _percent(self.predicted.latency_s, self.measured.latency_s)

    @property
    def bubble_pp(self) -> float:
        return 100 * (self.predicted.bubble - self.measured.bubble)

    @property
    def forward_pct(self) -> tuple[float, ...]:
        pairs = zip(self.predicted.forward_s, self.measured.forward_s, strict=True)
        return tuple(_percent(*pair) for pair in pairs)

    @property
    def backward_pct(self) -> tuple[float, ...]:
        pairs = zip(self.predicted.backward_s, self.measured.backward_s, strict=True)
        return tuple(_percent(*pair) for pair in pairs)

    @property
    def terms(self) -> dict[str, tuple[float, float]]:
        """Parts of the mean iteration, predicted and measured, in seconds; they add up to it.

        F and B are those of the rank that is busiest in the measurement; what else the pipeline takes is messages
        and waiting.
        """
        rank = int(np.argmax(self.measured.busy_s))
        both = (self.predicted, self.measured)
        forward, backward = [each.forward_busy_s[rank] for each in both], [each.backward_busy_s[rank] for each in both]
        rest = [each.pipeline_s - f - b for each, f, b in zip(both, forward, backward, strict=True)]
        return {
            "forward": (forward[0], forward[1]),
            "backward": (backward[0], backward[1]),
            "messages_and_waits": (rest[0], rest[1]),
            "reduce": (both[0].reduce_s, both[1].reduce_s),
            "optimizer": (both[0].step_s, both[1].step_s),
            "gap": (both[0].gap_s, both[1].gap_s),
        }

    @property
    def spearman(self) -> float | None:
        """Rank correlation of the ranks' utilisation; None with fewer than three ranks."""
        if len(self.measured.busy_s) < MIN_RANKS:
            return None
        return spearman(self.predicted.utilization, self.measured.utilization)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Over runs: mean absolute errors, the largest of throughput, mean rank correlation (None without such runs)."""

    throughput_mape_pct: float
    throughput_max_pct: float
    iteration_p50_mape_pct: float
    bubble_mae_pp: float
    utilization_spearman: float | None
    forward_mape_pct: float
    backward_mape_pct: float
    latency_mape_pct: float


def suite(scores: Sequence[RunScore]) -> Suite:
    """Figures over runs; F and B over (run, stage)."""
    correlations = [score.spearman for score in scores if score.spearman is not None]
    throughput = [abs(score.throughput_pct) for score in scores]
    return Suite(
        throughput_mape_pct=float(np.mean(throughput)),
        throughput_max_pct=max(throughput),
        iteration_p50_mape_pct=_mean(score.p50_pct for score in scores),
        bubble_mae_pp=_mean(score.bubble_pp for score in scores),
        utilization_spearman=float(np.mean(correlations)) if correlations else None,
        forward_mape_pct=_mean(each for score in scores for each in score.forward_pct),
        backward_mape_pct=_mean(each for score in scores for each in score.backward_pct),
        latency_mape_pct=_mean(score.latency_pct for score in scores),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson correlation of ranks, ties at their mean rank (Spearman 1904); 0 where one side has ties only."""
    ranks = [_ranks(np.asarray(values, dtype=np.float64)) for values in (one, other)]
    if min(np.ptp(each) for each in ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0, ties at their mean."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(below + (equal - 1) / 2)


def _percent(predicted: float, measured: float) -> float:
    return 100 * (predicted / measured - 1)


def _mean(values: "object") -> float:
    return float(np.mean(np.abs(np.fromiter(values, dtype=np.float64))))  # type: ignore[call-overload]
