"""Microbatches of unequal work (packed, or of variable length): a factor on compute, messages and activations."""

from dataclasses import dataclass

import numpy as np

from hops.cost.base import CostModel, WrappedCosts
from hops.distributions import Distribution, FloatArray, generator
from hops.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Uneven(WrappedCosts):
    """Another model's costs, each microbatch of its own work: the same factor on all of its stages.

    Seconds and bytes of `inner` are those of a microbatch of work 1.

    Attributes:
        inner: the model whose draws are multiplied.
        factors: one per microbatch, the same in all iterations; or a distribution, drawn for every microbatch of every
            iteration with a purpose of its own.
    """

    factors: tuple[float, ...] | Distribution

    def __post_init__(self) -> None:
        if isinstance(self.factors, tuple) and not (self.factors and min(self.factors) > 0):
            raise UsageError(f"the work of a microbatch must be above 0, but got {list(self.factors)}")

    def work(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        if isinstance(self.factors, Distribution):
            return self.factors.sample(generator(seed, "microbatch_work", iteration), num_microbatches)
        assert len(self.factors) == num_microbatches, f"{len(self.factors)} factors for {num_microbatches} microbatches"
        return np.array(self.factors)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        return self.inner.draw(iteration, num_microbatches, seed) * self.work(iteration, num_microbatches, seed)


def uneven(costs: CostModel, factors: tuple[float, ...] | Distribution | None) -> CostModel:
    """Costs of microbatches of unequal work; the same costs where nothing is said about it."""
    return costs if factors is None else Uneven(inner=costs, factors=factors)
