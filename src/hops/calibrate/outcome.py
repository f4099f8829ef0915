"""What a run came to, simulated or measured: the figures that a prediction is scored on, all from the trace."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.metrics import RunFacts
from hops.metrics.latency import microbatch_latencies_ns
from hops.metrics.rates import iteration_times_ns
from hops.metrics.run import Run, is_action
from hops.trace import Stream, Trace

S_PER_NS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
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


def measured_outcome(trace: Trace, *, warmup: int = 0) -> Outcome:
    """Figures of all iterations but the first `warmup`."""
    run = Run.of(trace, RunFacts(warmup_iterations=warmup))
    return _outcome(run, iteration_times_ns(run) * S_PER_NS)


def simulated_outcome(trace: Trace) -> Outcome:
    """Figures of a simulation without chance: its first iteration, from its start to the start of the next."""
    run = Run.of(trace, RunFacts())
    whole = iteration_times_ns(run)[:1] * S_PER_NS
    first = Run.of(trace.where(trace.iteration == run.iterations[0]), RunFacts())
    return _outcome(first, whole)


def _outcome(run: Run, iterations_s: NDArray[np.floating[Any]]) -> Outcome:
    trace = run.trace
    length = (trace.end_ns - trace.start_ns) * S_PER_NS
    action = is_action(trace)
    step = (trace.stream == Stream.COMPUTE) & (trace.op == Op.OPTIMIZER)

    def per_rank(rows: NDArray[np.bool_]) -> tuple[float, ...]:
        sums = np.bincount(trace.rank[rows], weights=length[rows], minlength=run.num_ranks)
        return tuple((sums / run.num_iterations).tolist())

    pipeline, reduce, step_length = _parts(run, step)
    mean = float(iterations_s.mean())
    return Outcome(
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


def _parts(run: Run, step: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Means over iterations of the pipeline, of what lies before the first optimizer step, and of all steps."""
    trace = run.trace
    pipeline = float(run.pipeline_ns) / run.num_iterations * S_PER_NS
    if not step.any():
        return pipeline, 0.0, 0.0
    begin = np.full(run.num_iterations, np.iinfo(np.int64).max)
    end = np.zeros(run.num_iterations, dtype=np.int64)
    np.minimum.at(begin, run.index[step], trace.start_ns[step])
    np.maximum.at(end, run.index[step], trace.end_ns[step])
    reduce = float((begin - run.pipeline_end_ns).mean()) * S_PER_NS
    return pipeline, reduce, float((end - begin).mean()) * S_PER_NS


def _medians(run: Run, rows: NDArray[np.bool_]) -> tuple[float, ...]:
    """Per stage, the median over iterations and microbatches of what `rows` of one microbatch take together."""
    trace = run.trace
    stages, size = trace.meta.num_stages, trace.meta.num_microbatches
    key = (run.index[rows] * size + trace.microbatch[rows]) * stages + trace.stage[rows]
    found, place = np.unique(key, return_inverse=True)
    sums = np.bincount(place, weights=(trace.end_ns - trace.start_ns)[rows] * S_PER_NS)
    return tuple(float(np.median(sums[found % stages == stage])) for stage in range(stages))
