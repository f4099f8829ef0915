"""A partition gives every stage its layers; the first also holds the embedding, the last the head and the loss."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from hops.errors import UsageError

LayerCost = Callable[[int, int, int], float]
"""cost_of(stage, first_layer, last_layer): cost of a stage that holds these layers, both included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSlice:
    """What a stage holds of the model: so many layers, maybe the embedding, maybe final norm, head and loss."""

    layers: int
    embedding: bool
    head: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Layers per stage, in the order of the model. The first and the last stage may have none, others at least one."""

    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise UsageError("a partition must have at least one stage, but got none")
        last = self.num_stages - 1
        for stage, count in enumerate(self.layers):
            lowest = 0 if stage in (0, last) and last > 0 else 1
            if count < lowest:
                raise UsageError(f"layers of stage {stage} must be at least {lowest}, but got {count}")

    @property
    def num_stages(self) -> int:
        return len(self.layers)

    @property
    def num_layers(self) -> int:
        return sum(self.layers)

    def slice(self, stage: int) -> StageSlice:
        """What the stage holds."""
        return StageSlice(layers=self.layers[stage], embedding=stage == 0, head=stage == self.num_stages - 1)

    def layer_range(self, stage: int) -> range:
        """Numbers of the stage's layers, counted along the model from 0."""
        first = sum(self.layers[:stage])
        return range(first, first + self.layers[stage])

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
        bottleneck, _ = _cheapest_cuts(num_layers, num_stages, cost_of, max)

        def squared(stage: int, first: int, last: int) -> float:
            cost = cost_of(stage, first, last)
            return cost * cost if cost <= bottleneck else inf

        _, cuts = _cheapest_cuts(num_layers, num_stages, squared, lambda total, cost: total + cost)
        return cls(layers=tuple(end - start for start, end in zip((0, *cuts[:-1]), cuts, strict=True)))


def _cheapest_cuts(
    num_layers: int, num_stages: int, cost_of: LayerCost, join: Callable[[float, float], float]
) -> tuple[float, tuple[int, ...]]:
    """Least joined cost of contiguous stages, and the layer after each stage's last, by dynamic programming.

    best[n] is the least cost of the first stages holding the first n layers; O(stages x layers^2) calls of `cost_of`.
    """
    best = [0.0] + [inf] * num_layers
    choices: list[list[int]] = []
    for stage in range(num_stages):
        reachable = range(stage + 1, num_layers - (num_stages - stage - 1) + 1)
        following, choice = [inf] * (num_layers + 1), [0] * (num_layers + 1)
        for end in reachable:
            costs = ((join(best[start], cost_of(stage, start, end - 1)), start) for start in range(stage, end))
            following[end], choice[end] = min(costs)
        best = following
        choices.append(choice)
    ends = accumulate(reversed(choices[1:]), lambda end, choice: choice[end], initial=num_layers)
    return best[num_layers], tuple(ends)[::-1]


def _check_enough_layers(num_layers: int, num_stages: int) -> None:
    if not 1 <= num_stages <= num_layers:
        raise UsageError(
            f"the number of stages must be between 1 and the number of layers, "
            f"but got {num_stages} stages for {num_layers} layers"
        )
