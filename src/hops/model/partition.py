"""A partition gives every stage its layers; the first also holds the embedding, the last the head and the loss."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from hops.distributions import FloatArray
from hops.errors import UsageError

LayerCost = Callable[[int, int, int], float]
"""cost_of(stage, first_layer, last_layer): cost of a stage that holds these layers, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSlice:
    """What a stage holds of the model: so many layers, maybe the embedding, maybe final norm, head and loss.

    `first` is the number of its first layer, counted along the model from 0: layers may differ.
    """

    layers: int
    embedding: bool
    head: bool
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Layers per stage, in the order of the model.

    A stage may have none: the first then has the embedding alone, the last the head, and others only pass messages on.

    Attributes:
        layers: per stage of the model.
        copies: how often each of these stages is there; see `hops.program.shape.Shape`.
    """

    layers: tuple[int, ...]
    copies: int = 1

    def __post_init__(self) -> None:
        if not self.layers:
            raise UsageError("a partition must have at least one stage, but got none")
        for stage, count in enumerate(self.layers):
            if count < 0:
                raise UsageError(f"layers of stage {stage} must be at least 0, but got {count}")

    @property
    def num_stages(self) -> int:
        """Of all copies."""
        return len(self.layers) * self.copies

    @property
    def num_layers(self) -> int:
        return sum(self.layers)

    def slice(self, stage: int) -> StageSlice:
        """What the stage holds."""
        of_model = stage % len(self.layers)
        return StageSlice(
            layers=self.layers[of_model],
            embedding=of_model == 0,
            head=of_model == len(self.layers) - 1,
            first=sum(self.layers[:of_model]),
        )

    def layer_range(self, stage: int) -> range:
        """Numbers of the stage's layers, counted along the model from 0."""
        of_model = stage % len(self.layers)
        first = sum(self.layers[:of_model])
        return range(first, first + self.layers[of_model])

    @classmethod
    def even(cls, num_layers: int, num_stages: int) -> "Partition":
        """Sizes that differ by one at most; what does not divide goes to the first stages."""
        _check_enough_layers(num_layers, num_stages)
        share, rest = divmod(num_layers, num_stages)
        return cls(layers=tuple(share + (stage < rest) for stage in range(num_stages)))

    @classmethod
    def balanced(cls, num_layers: int, num_stages: int, cost_of: LayerCost) -> "Partition":
        """The partition, at least one layer per stage, whose dearest stage is cheapest; exact.

        Among those, the one with the least sum of squared stage costs, so that the other stages are balanced as well.
        """
        _check_enough_layers(num_layers, num_stages)
        costs = np.full((num_stages, num_layers + 1, num_layers + 1), np.inf)
        for stage in range(num_stages):
            for start in range(num_layers):
                costs[stage, start, start + 1 :] = [cost_of(stage, start, end) for end in range(start, num_layers)]
        return cls.balanced_by_table(costs)

    @classmethod
    def balanced_by_table(cls, costs: FloatArray) -> "Partition":
        """The same from a table, shape (stages, layers + 1, layers + 1).

        costs[stage, i, k] is the cost of a stage that holds layers i to k - 1, infinite where that is none.
        """
        num_stages, size, _ = costs.shape
        _check_enough_layers(size - 1, num_stages)
        bottleneck, _ = _cheapest_cuts(costs, np.maximum)
        squares = np.where(costs <= bottleneck, costs * costs, np.inf)
        _, cuts = _cheapest_cuts(squares, np.add)
        return cls(layers=tuple(end - start for start, end in zip((0, *cuts[:-1]), cuts, strict=True)))


def _cheapest_cuts(costs: FloatArray, join: np.ufunc) -> tuple[float, tuple[int, ...]]:
    """Least joined cost of contiguous stages, and the layer after each stage's last, by dynamic programming.

    best[n] is the least cost of the first stages holding the first n layers; O(stages x layers^2).
    """
    best = np.full(costs.shape[1], np.inf)
    best[0] = 0.0
    choices = []
    for of_stage in costs:
        joined = join(best[:, None], of_stage)  # by first layer, layer after the last
        choices.append(joined.argmin(axis=0))
        best = joined.min(axis=0)
    ends = accumulate(reversed(choices[1:]), lambda end, choice: int(choice[end]), initial=len(best) - 1)
    return float(best[-1]), tuple(ends)[::-1]


def _check_enough_layers(num_layers: int, num_stages: int) -> None:
    if not 1 <= num_stages <= num_layers:
        raise UsageError(
            f"the number of stages must be between 1 and the number of layers, "
            f"but got {num_stages} stages for {num_layers} layers"
        )
