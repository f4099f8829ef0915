"""Costs stated as distributions: what a spec gives per stage and op, drawn anew for every action."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from hops.cost.base import CostModel, StepCosts, crosses_stages
from hops.cost.iteration_end import NO_STEPS, StepModel
from hops.distributions import Distribution, FloatArray, generator
from hops.errors import UsageError
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op


class Backward(ABC):
    """The backward pass of one stage: times of B, I and W that belong together."""

    @abstractmethod
    def mean(self, op: Op) -> float:
        """Expected seconds of B, I or W."""

    @abstractmethod
    def sample(self, op: Op, draw: "Draw") -> FloatArray:
        """Seconds of B, I or W, one per microbatch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Draws of one (iteration, stage): the stream of an op depends on nothing else."""

    seed: int
    iteration: int
    stage: int
    num_microbatches: int

    def of(self, distribution: Distribution, op: Op) -> FloatArray:
        """One value per microbatch from the op's own stream."""
        rng = generator(self.seed, "compute", self.iteration, self.stage, int(op))
        return distribution.sample(rng, self.num_microbatches)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBackward(Backward):
    """I and W are stated; B = (I + W) / split_overhead, sample by sample."""

    inputs: Distribution
    weights: Distribution
    split_overhead: float = 1.0

    def __post_init__(self) -> None:
        _check_overhead(self.split_overhead)

    def mean(self, op: Op) -> float:
        inputs, weights = self.inputs.mean, self.weights.mean
        return {Op.I: inputs, Op.W: weights, Op.B: (inputs + weights) / self.split_overhead}[op]

    def sample(self, op: Op, draw: Draw) -> FloatArray:
        if op is Op.I:
            return draw.of(self.inputs, Op.I)
        if op is Op.W:
            return draw.of(self.weights, Op.W)
        return (draw.of(self.inputs, Op.I) + draw.of(self.weights, Op.W)) / self.split_overhead


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedBackward(Backward):
    """B is stated; I and W take half of split_overhead x B each, sample by sample."""

    whole: Distribution
    split_overhead: float = 1.0

    def __post_init__(self) -> None:
        _check_overhead(self.split_overhead)

    def mean(self, op: Op) -> float:
        return self.whole.mean * self._share(op)

    def sample(self, op: Op, draw: Draw) -> FloatArray:
        return draw.of(self.whole, Op.B) * self._share(op)

    def _share(self, op: Op) -> float:
        return 1.0 if op is Op.B else self.split_overhead / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBackward(Backward):
    """B, I and W are all stated, as measured; nothing ties them to each other."""

    whole: Distribution
    inputs: Distribution
    weights: Distribution

    def mean(self, op: Op) -> float:
        return self._of(op).mean

    def sample(self, op: Op, draw: Draw) -> FloatArray:
        return draw.of(self._of(op), op)

    def _of(self, op: Op) -> Distribution:
        return {Op.B: self.whole, Op.I: self.inputs, Op.W: self.weights}[op]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsplitBackward(Backward):
    """Another's B, all of it done in W and nothing in I."""

    inner: Backward

    def mean(self, op: Op) -> float:
        return 0.0 if op is Op.I else self.inner.mean(Op.B)

    def sample(self, op: Op, draw: Draw) -> FloatArray:
        return np.zeros(draw.num_microbatches) if op is Op.I else self.inner.sample(Op.B, draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedCosts(CostModel):
    """Stated times per stage, in seconds. All tuples have one value per stage.

    Attributes:
        forward: F.
        backward: B, I and W.
        bytes_per_message: what the stage sends after F, B or I.
        memories: what each stage holds.
        steps: the end of an iteration.
    """

    forward: tuple[Distribution, ...]
    backward: tuple[Backward, ...]
    bytes_per_message: tuple[int, ...]
    memories: tuple[StageMemory, ...]
    steps: StepModel = NO_STEPS

    def __post_init__(self) -> None:
        lengths = (len(self.forward), len(self.backward), len(self.bytes_per_message), len(self.memories))
        if len(set(lengths)) != 1 or not self.forward:
            got = ", ".join(map(str, lengths))
            raise UsageError(
                f"forward, backward, bytes_per_message and memories must have one value per stage, but got {got}"
            )
        if min(self.bytes_per_message) < 0:
            raise UsageError(f"bytes_per_message must be at least 0, but got {min(self.bytes_per_message)}")

    @property
    def num_stages(self) -> int:
        return len(self.forward)

    def seconds(self, stage: int, op: Op) -> float:
        return self.forward[stage].mean if op is Op.F else self.backward[stage].mean(op)

    def message_bytes(self, stage: int, op: Op) -> int:
        return self.bytes_per_message[stage] if crosses_stages(stage, op, self.num_stages) else 0

    def memory(self, stage: int) -> StageMemory:
        return self.memories[stage]

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.steps.costs(iteration, seed)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        times = np.empty((self.num_stages, len(ACTION_OPS), num_microbatches))
        for stage in range(self.num_stages):
            draw = Draw(seed=seed, iteration=iteration, stage=stage, num_microbatches=num_microbatches)
            times[stage, Op.F] = draw.of(self.forward[stage], Op.F)
            for op in (Op.B, Op.I, Op.W):
                times[stage, op] = self.backward[stage].sample(op, draw)
        return times


def _check_overhead(split_overhead: float) -> None:
    if not split_overhead >= 1:
        raise UsageError(f"split_overhead must be at least 1, but got {split_overhead}")
