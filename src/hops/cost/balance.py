"""The partition that is balanced on the devices at hand, by the same costs that are simulated."""

from collections.abc import Sequence
from functools import cache

from hops.cost.rates import DeviceRates
from hops.cost.terms import backward_terms, forward_terms
from hops.model import Implementation, Microbatch, Partition, StageSlice, Transformer, stage_work


def balanced_partition(
    model: Transformer, batch: Microbatch, how: Implementation, rates: Sequence[DeviceRates]
) -> Partition:
    """The partition whose slowest stage, in F + B, is fastest; exact, with embedding and head counted.

    `rates[s]` are those of the device under stage s. Raises UsageError if there are more stages than layers.
    """
    last = len(rates) - 1

    @cache
    def seconds(stage: int, count: int) -> float:
        part = StageSlice(layers=count, embedding=stage == 0, head=stage == last)
        work = stage_work(model, part, batch, how)
        return sum(forward_terms(work, rates[stage]).values()) + sum(backward_terms(work, rates[stage]).values())

    return Partition.balanced(model.layers, len(rates), lambda stage, first, end: seconds(stage, end - first + 1))
