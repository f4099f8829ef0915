"""Iteration time, and what follows from it: throughput and MFU."""

import numpy as np
from numpy.typing import NDArray

from hops.metrics.iterations import Iterations, is_action
from hops.program.action import Op
from hops.units import NS_PER_S


def iteration_times_ns(run: Iterations) -> NDArray[np.int64]:
    """Time of each iteration: from its start to the start of the next one; the last one: to its end."""
    return run.end_ns - run.start_ns


def microbatches_per_s(run: Iterations) -> float:
    """Microbatches of all pipeline replicas over the mean iteration time, optimizer step inside."""
    microbatches = run.trace.meta.shape.whole_microbatches * run.facts.data_parallel * run.num_iterations
    return microbatches / (run.window_ns / NS_PER_S)


def mean_work(run: Iterations) -> float:
    """The mean work of a microbatch, over the run's iterations: what it has of the tokens of one of work 1."""
    rows = run.facts.microbatch_work
    if not rows:
        return 1.0
    return float(np.mean([rows[number % len(rows)] for number in run.iterations.tolist()]))


def samples_per_s(run: Iterations) -> float | None:
    """Samples over iteration time; None without `samples_per_microbatch`."""
    size = run.facts.samples_per_microbatch
    return None if size is None else size * microbatches_per_s(run)


def tokens_per_s(run: Iterations) -> float | None:
    """Tokens over iteration time; None without `tokens_per_microbatch`."""
    size = run.facts.tokens_per_microbatch
    return None if size is None else size * microbatches_per_s(run) * mean_work(run)


def mfu(run: Iterations) -> float | None:
    """Model FLOPs utilisation: model FLOPs per second over the sum of peak rates of all devices (PaLM, appendix B).

    Model FLOPs are those of forward and backward without recomputation. None without `flop_per_microbatch` or
    `peak_flop_per_s`. Replicas have the same devices, so one of them tells.
    """
    return _utilisation(run, run.facts.flop_per_microbatch)


def hfu(run: Iterations) -> float | None:
    """Hardware FLOPs utilisation: the same of all FLOPs that devices run, what is computed again included.

    None without `hardware_flop_per_microbatch` or `peak_flop_per_s`.
    """
    return _utilisation(run, run.facts.hardware_flop_per_microbatch)


def _utilisation(run: Iterations, flop_per_microbatch: float | None) -> float | None:
    facts = run.facts
    if flop_per_microbatch is None or not facts.peak_flop_per_s:
        return None
    flop_per_s = flop_per_microbatch * microbatches_per_s(run) * mean_work(run) / facts.data_parallel
    return flop_per_s / (sum(facts.peak_flop_per_s) * facts.devices_per_rank)


def microbatch_latencies_ns(run: Iterations) -> NDArray[np.int64]:
    """Latency of every microbatch of every iteration, in order; those without a backward are left out."""
    first = run.trace.stage % run.trace.meta.shape.stages_per_copy == 0
    rows = run.trace.where(is_action(run.trace) & first)
    key = (
        rows.iteration.astype(np.int64) * (int(rows.microbatch.max(initial=0)) + 1)
        + rows.microbatch // rows.meta.slices
    )
    keys, index = np.unique(key, return_inverse=True)
    forward = rows.op == Op.F
    start = np.full(len(keys), np.iinfo(np.int64).max)
    end = np.full(len(keys), -1, dtype=np.int64)
    np.minimum.at(start, index[forward], rows.start_ns[forward])
    np.maximum.at(end, index[~forward], rows.end_ns[~forward])
    latencies: NDArray[np.int64] = (end - start)[end >= start]
    return latencies
