"""Costs from first principles: a roofline over a stage's kernels, a dispatch floor per layer, and the model's ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import numpy as np

from hops.cost.base import CostModel, StepCosts, crosses_stages
from hops.cost.iteration_end import NO_STEPS, StepModel
from hops.cost.roofline import DeviceRates, backward_terms, forward_terms, work_terms
from hops.distributions import FloatArray
from hops.errors import UsageError
from hops.model.kernels import Collective
from hops.model.memory import StageMemory, stage_memory
from hops.model.partition import Partition, StageSlice
from hops.model.workload import OpWork, StageWork, Workload, check_fit, stage_work, without_recompute
from hops.program.action import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticCosts(CostModel):
    """Seconds of every stage's work on the device it is placed on. Tuples have one value per stage.

    B is what is modelled; I and W divide `split_overhead` x B in proportion to their work, so that with the default
    I + W = B. What recompute adds to B is I's alone. Each op has the collectives of its own kernels; what hides under W
    where B runs as one is exposed in an I by itself.

    Attributes:
        works, rates, memories: what each stage does, on what, and what it holds.
        steps: the end of an iteration.
        split_overhead: (I + W) / B, at least 1.
        first_stage_splits: if not, the first stage does nothing in I, and all of B in W without overhead, as PyTorch's
            pipelining does (no stage waits for a gradient from the first).
        copies: of the model, each with a first stage.
    """

    works: tuple[StageWork, ...]
    rates: tuple[DeviceRates, ...]
    memories: tuple[StageMemory, ...]
    steps: StepModel = NO_STEPS
    split_overhead: float = 1.0
    first_stage_splits: bool = True
    copies: int = 1
    _seconds: tuple[dict[Op, float], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not len(self.works) == len(self.rates) == len(self.memories) > 0:
            got = f"{len(self.works)}, {len(self.rates)} and {len(self.memories)}"
            raise UsageError(f"works, rates and memories must have one value per stage, but got {got}")
        if not self.split_overhead >= 1:
            raise UsageError(f"split_overhead must be at least 1, but got {self.split_overhead}")
        alike: dict[tuple[int, int, bool], dict[Op, float]] = {}  # equal work on equal devices takes equal times
        seconds = []
        for stage in range(self.num_stages):
            key = (id(self.works[stage]), id(self.rates[stage]), self._is_first(stage))
            if key not in alike:
                alike[key] = self._stage_seconds(stage)
            seconds.append(alike[key])
        object.__setattr__(self, "_seconds", tuple(seconds))

    @classmethod
    def of(
        cls,
        work: Workload,
        partition: Partition,
        rates: Sequence[DeviceRates],
        *,
        steps: StepModel = NO_STEPS,
        split_overhead: float = 1.0,
        first_stage_splits: bool = True,
    ) -> "AnalyticCosts":
        """Costs of a partitioned model, `rates[s]` being those of the device under stage s. Raises UsageError."""
        model, batch, how, shards = work.model, work.batch, work.how, work.shards
        check_fit(model, partition, batch, shards)
        parts = [partition.slice(stage) for stage in range(partition.num_stages)]
        return cls(
            works=tuple(stage_work(model, part, batch, how, shards) for part in parts),
            rates=tuple(rates),
            memories=tuple(
                stage_memory(
                    model,
                    part,
                    batch,
                    how,
                    work.optimizer,
                    shards=shards,
                    states=work.states,
                    transients=work.transients,
                )
                for part in parts
            ),
            steps=steps,
            split_overhead=split_overhead,
            first_stage_splits=first_stage_splits,
            copies=partition.copies,
        )

    @property
    def num_stages(self) -> int:
        return len(self.works)

    @property
    def device_flop(self) -> float | None:
        return float(sum(work.hardware_flop for work in self.works))

    def seconds(self, stage: int, op: Op) -> float:
        return self._seconds[stage][op]

    def message_bytes(self, stage: int, op: Op) -> int:
        return self.works[stage].message_bytes if crosses_stages(stage, op, self.num_stages) else 0

    def memory(self, stage: int) -> StageMemory:
        memory = self.memories[stage]
        if self._is_first(stage) and not self.first_stage_splits:
            return replace(memory, kept_for_weight_bytes=memory.activation_bytes)
        return memory

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.steps.costs(iteration, seed)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        """Expected seconds, and what fetching adds to F while the loader is behind (no chance in it).

        The first microbatch of an iteration waits for its batch on the stages that load one; the first stage then
        fetches its warm-up's microbatches faster than they are loaded.
        """
        times = np.array(CostModel.draw(self, iteration, num_microbatches, seed))
        first, last = self.rates[0], self.rates[-1]
        times[0, Op.F, 1 : min(self.num_stages, num_microbatches)] += first.refill_s
        times[0, Op.F, 0] += first.first_fetch_s
        if self.num_stages > 1:
            times[-1, Op.F, 0] += last.first_fetch_s
        return times

    def terms(self, stage: int, op: Op) -> dict[str, float]:
        """Seconds by term of F or B: which part of the model they go to, and what the host takes."""
        assert op in (Op.F, Op.B), f"terms are those of F and B, not of {op.name}"
        terms = forward_terms if op is Op.F else backward_terms
        return terms(self.works[stage], self.rates[stage])

    def _is_first(self, stage: int) -> bool:
        return stage % (self.num_stages // self.copies) == 0

    def _stage_seconds(self, stage: int) -> dict[Op, float]:
        splits = self.first_stage_splits or not self._is_first(stage)
        return _seconds_by_op(self.works[stage], self.rates[stage], self.split_overhead, splits)


@lru_cache(maxsize=512)  # many runs differ in what is around their stages
def _seconds_by_op(work: StageWork, rates: DeviceRates, split_overhead: float, splits: bool) -> dict[Op, float]:
    """Seconds of each op of a stage; `splits`: whether I is work of its own. The result is shared: do not change it."""
    forward, whole = sum(forward_terms(work, rates).values()), sum(backward_terms(work, rates).values())
    if not splits:
        return {Op.F: forward, Op.B: whole, Op.I: 0.0, Op.W: whole}
    plain = without_exchange(work)
    computed = sum(backward_terms(plain, rates).values()) if plain is not work else whole
    again = 0.0
    if plain.recompute.kernels:
        again = computed - sum(backward_terms(without_recompute(plain), rates).values())
    split = split_overhead * (computed - again)
    kept = split * _input_share(plain, rates)
    inputs, weights = kept + split_overhead * again, split - kept
    return {
        Op.F: forward,
        Op.B: (inputs + weights) / split_overhead + (whole - computed),
        Op.I: inputs + _exposed((work.recompute, work.input_backward), rates),
        Op.W: weights + _exposed((work.weight_backward,), rates),
    }


def without_exchange(work: StageWork) -> StageWork:
    """The computing of a stage alone; the same object where it exchanges nothing."""
    ops = (work.forward, work.input_backward, work.weight_backward, work.recompute)
    if not any(isinstance(kernel, Collective) for op in ops for kernel in op.kernels):
        return work
    return replace(
        work,
        forward=_computing(work.forward),
        input_backward=_computing(work.input_backward),
        weight_backward=_computing(work.weight_backward),
        recompute=_computing(work.recompute),
    )


def _computing(work: OpWork) -> OpWork:
    layers, ends = (
        tuple(kernel for kernel in kernels if not isinstance(kernel, Collective))
        for kernels in (work.layers, work.ends)
    )
    return replace(work, layers=layers, ends=ends)


def _exposed(ops: tuple[OpWork, ...], rates: DeviceRates) -> float:
    """What the collectives of an op add to its computing, if it runs by itself."""
    computed = 0.0
    whole = 0.0
    for part in ("layers", "ends"):
        kernels = [kernel for op in ops for kernel in getattr(op, part)]
        only = [kernel for kernel in kernels if not isinstance(kernel, Collective)]
        if len(only) < len(kernels):
            whole += sum(work_terms(kernels, rates, rates.traffic.backward).values())
            computed += sum(work_terms(only, rates, rates.traffic.backward).values())
    return whole - computed


def _input_share(work: StageWork, rates: DeviceRates) -> float:
    """I's share of the backward work on the device, recompute left out; half where there is no work."""
    factor = rates.traffic.backward
    inputs = sum(work_terms(work.input_backward.kernels, rates, factor).values())
    weights = sum(work_terms(work.weight_backward.kernels, rates, factor).values())
    return inputs / (inputs + weights) if inputs + weights > 0 else 0.5


def balanced_partition(work: Workload, rates: Sequence[DeviceRates], *, copies: int = 1) -> Partition:
    """The partition whose slowest stage, in F + B, is fastest; exact, with embedding and head counted.

    `rates[s]` are those of the device under stage s. Several stages of a rank are balanced each for itself, not in sum;
    of several copies of a stage, their mean counts. Raises UsageError if there are more stages than layers.
    """
    return _balanced(work, tuple(rates), copies)


@lru_cache(maxsize=64)  # of many runs, most have the same work, and differ in what is around it
def _balanced(work: Workload, rates: tuple[DeviceRates, ...], copies: int) -> Partition:
    last, model = len(rates) // copies - 1, work.model

    @cache
    def by_block(device: DeviceRates, *, embedding: bool, head: bool) -> FloatArray:
        """F + B of a stage by first layer and layer after its last; stages alike on devices alike share it."""
        table = np.full((model.layers + 1, model.layers + 1), np.inf)
        firsts = [0] if model.alike else range(model.layers)
        for first in firsts:
            for end in range(first + 1, model.layers + 1):
                part = StageSlice(layers=end - first, embedding=embedding, head=head, first=first)
                table[first, end] = _seconds(stage_work(model, part, work.batch, work.how, work.shards), device)
        if model.alike:  # a block costs what the first one of its length does
            for first in range(1, model.layers):
                table[first, first + 1 :] = table[0, 1 : model.layers - first + 1]
        return table

    ends = [stage % (last + 1) for stage in range(len(rates))]
    each = [by_block(device, embedding=end == 0, head=end == last) for end, device in zip(ends, rates, strict=True)]
    size = model.layers + 1
    stages = np.array(each).reshape(copies, last + 1, size, size).mean(axis=0)
    return replace(Partition.balanced_by_table(stages), copies=copies)


def _seconds(work: StageWork, rates: DeviceRates) -> float:
    return sum((*forward_terms(work, rates).values(), *backward_terms(work, rates).values()))
