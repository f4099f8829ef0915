"""Pairs that run as one cost less than their two actions apart: a factor on both, whatever else is drawn."""

from dataclasses import dataclass, field

import numpy as np

from hops.cost.base import CostModel, WrappedCosts
from hops.distributions import FloatArray
from hops.program.action import ACTION_OPS
from hops.program.program import Program


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired(WrappedCosts):
    """Another model's costs in a program, whose pairs take `factor` x what their actions take one after the other.

    Expected seconds are those of an action that runs alone.

    Attributes:
        inner: the model whose draws are multiplied.
        program: what pairs there are.
        factor: of their time, above 0.
    """

    program: Program
    factor: float
    _factors: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape, program = self.program.shape, self.program
        factors = np.ones((shape.num_stages, len(ACTION_OPS), shape.num_microbatches))
        inside = program.in_pair
        factors[program.stage[inside], program.op[inside], program.microbatch[inside]] = self.factor
        object.__setattr__(self, "_factors", factors)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.inner.draw(iteration, num_microbatches, seed) * self._factors


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPaired(WrappedCosts):
    """Another model's costs of actions that are all in pairs: where a policy decides which ones are."""

    factor: float

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.inner.draw(iteration, num_microbatches, seed) * self.factor


def paired(costs: CostModel, program: Program, factor: float) -> CostModel:
    """Costs of a program whose pairs take `factor` of their actions' time; the same costs where that is 1."""
    return costs if factor == 1 else Paired(inner=costs, program=program, factor=factor)
