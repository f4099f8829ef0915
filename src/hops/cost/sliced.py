"""Slices of a microbatch along its sequence: each as long as the others, and the dearer the more there is before it."""

from dataclasses import dataclass, replace

import numpy as np

from hops.cost.base import CostModel, WrappedCosts
from hops.distributions import FloatArray
from hops.model.memory import StageMemory
from hops.program.action import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliced(WrappedCosts):
    """Another model's costs, each microbatch cut into slices, which take the place of microbatches.

    Slice q of Q takes (1 - a) / Q + a (2 q + 1) / Q^2 of the microbatch's time: a is the part of causal attention's
    products, of which a slice computes those with itself and all before it. What slices cost by being small (launches,
    badly filled devices) is not counted. Messages and activations are divided evenly; keys and values of earlier slices
    are part of their activations, which stay until their backwards.

    Attributes:
        inner: costs of whole microbatches.
        slices: Q.
        attention_share: a, from 0 to 1.
    """

    slices: int
    attention_share: float

    @property
    def shares(self) -> FloatArray:
        """Of a microbatch's time, by slice; their sum is 1."""
        number, share = np.arange(self.slices), self.attention_share
        shares: FloatArray = (1 - share) / self.slices + share * (2 * number + 1) / self.slices**2
        return shares

    def seconds(self, stage: int, op: Op) -> float:
        """Of a slice of mean cost."""
        return self.inner.seconds(stage, op) / self.slices

    def message_bytes(self, stage: int, op: Op) -> int:
        return -(-self.inner.message_bytes(stage, op) // self.slices)

    def memory(self, stage: int) -> StageMemory:
        memory = self.inner.memory(stage)
        return replace(
            memory,
            activation_bytes=-(-memory.activation_bytes // self.slices),
            kept_for_weight_bytes=-(-memory.kept_for_weight_bytes // self.slices),
        )

    def work(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        whole = self.inner.work(iteration, num_microbatches // self.slices, seed)
        return whole if len(whole) == 1 else np.repeat(whole, self.slices)

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        whole = self.inner.draw(iteration, num_microbatches // self.slices, seed)
        return (whole[..., None] * self.shares).reshape(*whole.shape[:2], num_microbatches)


def sliced(costs: CostModel, slices: int, attention_share: float) -> CostModel:
    """Costs of slices; the same costs where a microbatch is one."""
    return costs if slices == 1 else Sliced(inner=costs, slices=slices, attention_share=attention_share)
