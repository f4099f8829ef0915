"""Pairs that run as one cost less than their two actions apart: a factor on both, whatever else is drawn."""

from dataclasses import dataclass, field

import numpy as np

from hops.cost.base import CostModel, StepCosts
from hops.distributions import FloatArray
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op
from hops.program.program import Program


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired(CostModel):
    """Another model's costs in a program, whose pairs take `factor` x what their actions take one after the other.

    Expected seconds are those of an action that runs alone.

    Attributes:
        inner: the model whose draws are multiplied.
        program: what pairs there are.
        factor: of their time, above 0.
    """

    inner: CostModel
    program: Program
    factor: float
    _factors: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape, program = self.program.shape, self.program
        factors = np.ones((shape.num_stages, len(ACTION_OPS), shape.num_microbatches))
        inside = program.in_pair
        factors[program.stage[inside], program.op[inside], program.microbatch[inside]] = self.factor
        object.__setattr__(self, "_factors", factors)

    @property
    def num_stages(self) -> int:
        return self.inner.num_stages

    def seconds(self, stage: int, op: Op) -> float:
        return self.inner.seconds(stage, op)

    def message_bytes(self, stage: int, op: Op) -> int:
        return self.inner.message_bytes(stage, op)

    def memory(self, stage: int) -> StageMemory:
        return self.inner.memory(stage)

    def step(self, iteration: int, seed: int) -> StepCosts:
        return self.inner.step(iteration, seed)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.inner.draw(iteration, num_microbatches, seed) * self._factors


def paired(costs: CostModel, program: Program, factor: float) -> CostModel:
    """Costs of a program whose pairs take `factor` of their actions' time; the same costs where that is 1."""
    return costs if factor == 1 else Paired(inner=costs, program=program, factor=factor)
