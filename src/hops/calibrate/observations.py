"""Observations: what the traces of runs with known inputs say about each part of the cost model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hops.build.figures import stated_kinds
from hops.build.setup import RunInputs, Setup, build
from hops.cost.analytic import AnalyticCosts
from hops.cost.fitted import End
from hops.errors import UsageError
from hops.hardware.devices import DeviceKind
from hops.metrics.iterations import is_action
from hops.model.implementation import HostOperations, host_operations
from hops.model.workload import StageWork
from hops.program.action import Op
from hops.trace.trace import Stream, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timings:
    """Seconds since the start of the trace.

    Attributes:
        forward, backward: shape (iterations, ranks, microbatches, 2): start and end.
        optimizer: shape (iterations, ranks, 2).
    """

    forward: Floats
    backward: Floats
    optimizer: Floats

    @property
    def num_microbatches(self) -> int:
        return int(self.forward.shape[2])

    def op(self, op: Op) -> Floats:
        """Those of F or B."""
        return self.forward if op is Op.F else self.backward

    @classmethod
    def of_rows(cls, trace: Trace) -> "Timings":
        """All iterations of a trace in which every rank runs one stage, F and B of every microbatch, and a step."""
        numbers = np.unique(trace.iteration)
        shape = (len(numbers), trace.meta.num_ranks, trace.meta.num_microbatches, 2)
        times = np.stack([trace.start_ns, trace.end_ns], axis=1) * 1e-9
        place = np.searchsorted(numbers, trace.iteration)
        filled = []
        for op in (Op.F, Op.B):
            rows = is_action(trace) & (trace.op == op)
            array = np.full(shape, np.nan)
            array[place[rows], trace.rank[rows], trace.microbatch[rows]] = times[rows]
            filled.append(array)
        step = np.full((shape[0], shape[1], 2), np.nan)
        rows = (trace.stream == Stream.COMPUTE) & (trace.op == Op.OPTIMIZER)
        step[place[rows], trace.rank[rows]] = times[rows]
        return cls(forward=filled[0], backward=filled[1], optimizer=step)

    @classmethod
    def of(cls, trace: Trace, *, name: str, warmup: int = 0) -> "Timings":
        """All iterations but the first `warmup`. Raises UsageError for a trace that is no 1F1B with optimizer steps."""
        kept = np.unique(trace.iteration)[warmup:]
        found = cls.of_rows(trace.where(np.isin(trace.iteration, kept)))
        for what, array in (("F", found.forward), ("B", found.backward), ("optimizer step", found.optimizer)):
            if not len(kept) or np.isnan(array).any():
                raise UsageError(
                    f"{name}: an iteration lacks a {what}, expected F, B and one optimizer step of every microbatch "
                    "and rank; leave the run out"
                )
        return found


RTO_S = 0.2
"""Linux's minimum TCP retransmission timeout. A reduction that takes 0.6 of it longer than the run's median stalled."""
STALL_S = 0.6 * RTO_S
_CLEARLY_S = 3e-3  # a receiver that waited this long was there first


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank's place: its device, and the kind and name of its host, with the NIC."""

    device: DeviceKind
    end: End


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """A run to learn from: what was known before it, and what was timed.

    Attributes:
        works: per stage; stage s is on rank s.
        operations: that its host dispatches.
        message_bytes, tied_bytes: of one message, of the tied all-reduce (0: none).
        parameters, layers: per rank.
        step_bytes: per parameter, of the optimizer step.
    """

    inputs: RunInputs
    ranks: tuple[Rank, ...]
    works: tuple[StageWork, ...]
    operations: HostOperations
    precision: str
    message_bytes: int
    tied_bytes: float
    parameters: tuple[int, ...]
    step_bytes: float
    timings: Timings

    @property
    def ends(self) -> tuple[End, End]:
        """First and last rank."""
        return self.ranks[0].end, self.ranks[-1].end

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(work.num_layers for work in self.works)


def observe(inputs: RunInputs, trace: Trace, *, warmup: int = 0) -> ObservedRun:
    """A run to learn from, without its first `warmup` iterations.

    Raises UsageError where its spec says too little, or it ran several stages on a rank.
    """
    setup = build(inputs.spec)
    costs = setup.costs
    if not isinstance(costs, AnalyticCosts):
        raise UsageError(f"{inputs.name}: got stage_times, expected a pipeline.model, whose costs can be fitted")
    if setup.shape.num_ranks != setup.shape.num_stages:
        raise UsageError(f"{inputs.name}: got several stages per rank, expected one (1F1B); leave the run out")
    work, section = setup.known.work, inputs.spec.optimizer
    assert work is not None, "analytic costs are those of a model"
    return ObservedRun(
        inputs=inputs,
        ranks=_ranks(inputs, setup),
        works=costs.works,
        operations=host_operations(work.how, fused_optimizer=section.fused),
        precision=inputs.spec.pipeline.precision,
        message_bytes=max(costs.message_bytes(stage, op) for stage in range(costs.num_stages) for op in (Op.F, Op.B)),
        tied_bytes=work.model.table_parameters * section.gradient_bytes if section.tied_embeddings else 0.0,
        parameters=tuple(each.parameters for each in costs.works),
        step_bytes=work.optimizer.step_bytes(work.how.element_bytes) / work.states.optimizer,
        timings=Timings.of(trace, name=inputs.name, warmup=warmup),
    )


def _ranks(inputs: RunInputs, setup: Setup) -> tuple[Rank, ...]:
    kinds, ranks = stated_kinds(inputs.spec), []
    for device_id in inputs.spec.hardware.ranks():
        device = setup.cluster.device(device_id)
        kind = kinds[device.node]
        if kind is None:
            raise UsageError(f"{inputs.name}: node {device.node} has no instance_type, by which hosts are told apart")
        nic = setup.cluster.nic(device_id).bandwidth
        ranks.append(Rank(device=device.kind, end=End(host=device.node, kind=kind, nic_bytes_per_s=nic)))
    return tuple(ranks)


def reductions(run: ObservedRun) -> Floats:
    """Seconds of each iteration's tied all-reduce: from the later last B of both ends to the first optimizer step."""
    ends = run.timings.backward[:, [0, -1], -1, 1].max(axis=1)
    return np.asarray(run.timings.optimizer[:, :, 0].min(axis=1) - ends)


def stalled(seconds: Floats) -> NDArray[np.bool_]:
    """Which reductions stalled."""
    return np.asarray(seconds > np.median(seconds) + STALL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Median time from the end of an action to the start of the one that waited for its message.

    `ends`: of the two hosts; () for the last rank's pause from F to B.
    """

    ends: tuple[End, ...]
    size: int
    seconds: float


def delays(runs: Sequence[ObservedRun]) -> list[Delay]:
    """Delays of messages whose receiver was waiting, and of the last rank's turn, by run and pair of kinds."""
    found = []
    for run in runs:
        samples: dict[tuple[str, ...], list[float]] = {}
        ends = {rank.end.kind: rank.end for rank in run.ranks}
        for kinds, values in _delays(run):
            samples.setdefault(kinds, []).extend(values.tolist())
        found += [
            Delay(ends=tuple(ends[kind] for kind in kinds), size=run.message_bytes, seconds=float(np.median(values)))
            for kinds, values in samples.items()
            if len(values) >= 8
        ]
    return found


def _delays(run: ObservedRun) -> list[tuple[tuple[str, ...], Floats]]:
    timings, last = run.timings, len(run.ranks) - 1
    order = [_order(last + 1, timings.num_microbatches, rank) for rank in range(last + 1)]
    found: list[tuple[tuple[str, ...], Floats]] = []
    for rank in range(last + 1):
        for place, (op, microbatch) in enumerate(order[rank]):
            end = timings.op(op)[1:, rank, microbatch, 1]
            target = rank + (1 if op is Op.F else -1)
            if 0 <= target <= last:
                here = order[target].index((op, microbatch))
                free = np.full(len(end), -np.inf)
                if here:
                    before, number = order[target][here - 1]
                    free = timings.op(before)[1:, target, number, 1]
                waited = end > free + _CLEARLY_S
                gap = (timings.op(op)[1:, target, microbatch, 0] - end)[waited]
                found.append(((run.ranks[rank].end.kind, run.ranks[target].end.kind), gap))
            elif op is Op.F:
                _, number = order[rank][place + 1]
                found.append(((), timings.backward[1:, rank, number, 0] - end))
    return found


def _order(ranks: int, microbatches: int, rank: int) -> list[tuple[Op, int]]:
    """Plain 1F1B, which every run that is learned from ran ."""
    ahead = min(ranks - 1 - rank, microbatches)
    order = [(Op.F, number) for number in range(ahead)]
    for number in range(microbatches - ahead):
        order += [(Op.F, ahead + number), (Op.B, number)]
    return order + [(Op.B, number) for number in range(microbatches - ahead, microbatches)]
