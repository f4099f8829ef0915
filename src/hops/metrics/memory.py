"""Memory and microbatches in flight over time, rank by rank: F allocates at its start, I, W and B free at their end."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hops.arrays import FloatArray
from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations, is_action
from hops.model.memory import rank_static_bytes, rank_workspace_bytes
from hops.program.action import Op
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepFunction:
    """`value[i]` holds from `at_ns[i]` on, until the next; `initial` before the first."""

    initial: int
    at_ns: Ints
    value: Ints

    @property
    def peak(self) -> int:
        return int(self.value.max(initial=self.initial))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """The most bytes that a rank's device holds, by part. The first three are there all the time."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


def in_flight(run: Iterations) -> tuple[StepFunction, ...]:
    """Microbatches in flight on every rank (each stage of the rank counts): F has started, B or W has not ended."""
    ones = np.ones(run.trace.meta.num_stages, dtype=np.int64)
    alike = replace(run, facts=replace(run.facts, microbatch_work=()))
    return _over_time(alike, allocated=ones, kept=ones, initial=np.zeros(run.num_ranks, dtype=np.int64))


def activation_bytes(run: Iterations) -> tuple[StepFunction, ...]:
    """Activation bytes on every rank over time; () if the facts do not know memory."""
    return _with_memory(run, static=False)


def memory_over_time(run: Iterations) -> tuple[StepFunction, ...]:
    """All bytes on every rank over time, static parts included; () if the facts do not know memory."""
    return _with_memory(run, static=True)


def memory_peaks(run: Iterations) -> tuple[MemoryPeak, ...]:
    """Peak of every rank with its parts; () if the facts do not know memory."""
    return tuple(
        MemoryPeak(
            weights=sum(run.facts.stage_memory[stage].weights_bytes for stage in stages),
            gradients=sum(run.facts.stage_memory[stage].gradients_bytes for stage in stages),
            optimizer=sum(run.facts.stage_memory[stage].optimizer_bytes for stage in stages),
            activations=held.peak + rank_workspace_bytes(run.facts.stage_memory[stage] for stage in stages),
        )
        for stages, held in zip(_stages_of_ranks(run), activation_bytes(run), strict=False)
    )


def _with_memory(run: Iterations, *, static: bool) -> tuple[StepFunction, ...]:
    memory = run.facts.stage_memory
    if not run.facts.knows_memory:
        return ()
    initial = [rank_static_bytes([memory[stage] for stage in stages]) * static for stages in _stages_of_ranks(run)]
    return _over_time(
        run,
        allocated=np.array([stage.activation_bytes for stage in memory], dtype=np.int64),
        kept=np.array([stage.kept_for_weight_bytes for stage in memory], dtype=np.int64),
        initial=np.array(initial, dtype=np.int64),
    )


def _stages_of_ranks(run: Iterations) -> list[list[int]]:
    owners = run.trace.meta.rank_of_stage
    return [[stage for stage, owner in enumerate(owners) if owner == rank] for rank in range(run.num_ranks)]


def _over_time(run: Iterations, *, allocated: Ints, kept: Ints, initial: Ints) -> tuple[StepFunction, ...]:
    """Step function per rank; `allocated` by F and `kept` after I are amounts per stage."""
    rows = run.trace.where(is_action(run.trace))
    change = _changes(rows, allocated, kept, _work(run, rows))
    time = np.where(rows.op == Op.F, rows.start_ns, rows.end_ns)
    order = np.argsort(time + rows.rank.astype(np.int64) * run.span, kind="stable")  # by rank, then time
    rank, time, change = rows.rank[order], time[order], change[order]
    bounds = np.searchsorted(rank, np.arange(run.num_ranks + 1))
    functions = []
    for number, (low, high) in enumerate(pairwise(bounds)):
        level = initial[number] + np.cumsum(change[low:high])
        last = np.append(np.diff(time[low:high]) > 0, True)[: high - low]  # what is freed at an instant is free then
        functions.append(StepFunction(initial=int(initial[number]), at_ns=time[low:high][last], value=level[last]))
    return tuple(functions)


def _work(run: Iterations, rows: Trace) -> FloatArray | None:
    """The work of each row's microbatch; None where all are 1."""
    if not run.facts.microbatch_work:
        return None
    work = np.array(run.facts.microbatch_work)
    found: FloatArray = work[rows.iteration % len(work), rows.microbatch]
    return found


def _changes(rows: Trace, allocated: Ints, kept: Ints, work: FloatArray | None) -> Ints:
    """What each action adds when it starts (F) or frees when it ends. W alone (stage 0 needs no I) frees everything."""
    splits = rows.op == Op.I
    after_input = rows.op == Op.W
    if splits.any() and after_input.any():
        after_input &= np.isin(_keys(rows), _keys(rows)[splits])
    else:
        after_input = np.zeros_like(after_input)
    whole, stays = allocated[rows.stage], kept[rows.stage]
    if work is not None:
        whole, stays = (np.rint(size * work).astype(np.int64) for size in (whole, stays))
    gone = np.where(after_input, stays, whole)
    gone = np.where(splits, whole - stays, gone)
    return np.where(rows.op == Op.F, whole, -gone)


def _keys(rows: Trace) -> NDArray[np.int64]:
    """One number per (iteration, stage, microbatch)."""
    iteration = rows.iteration.astype(np.int64)
    return (iteration * rows.meta.num_stages + rows.stage) * (int(rows.microbatch.max(initial=0)) + 1) + rows.microbatch
