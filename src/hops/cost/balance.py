"""The partition that is balanced on the devices at hand, by the same costs that are simulated."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from hops.cost.rates import DeviceRates
from hops.cost.terms import backward_terms, forward_terms
from hops.draws import FloatArray
from hops.model import Implementation, Microbatch, Partition, StageSlice, StageWork, Transformer, stage_work


def balanced_partition(
    model: Transformer, batch: Microbatch, how: Implementation, rates: Sequence[DeviceRates]
) -> Partition:
    """The partition whose slowest stage, in F + B, is fastest; exact, with embedding and head counted.

    `rates[s]` are those of the device under stage s. Several stages of a rank are balanced each for itself, not in sum.
    Raises UsageError if there are more stages than layers.
    """
    last = len(rates) - 1

    @cache
    def by_count(device: DeviceRates, *, embedding: bool, head: bool) -> FloatArray:
        """F + B of a stage with 0, 1, 2 ... layers, shape (layers + 1,); stages alike on devices alike share it."""
        parts = [StageSlice(layers=count, embedding=embedding, head=head) for count in range(model.layers + 1)]
        return np.array([_seconds(stage_work(model, part, batch, how), device) for part in parts])

    stages = [by_count(device, embedding=stage == 0, head=stage == last) for stage, device in enumerate(rates)]
    layers = np.arange(model.layers + 1)
    counts = layers[None, :] - layers[:, None]  # by first layer, layer after the last
    return Partition.balanced_by_table(np.where(counts > 0, np.array(stages)[:, counts.clip(min=0)], np.inf))


def _seconds(work: StageWork, rates: DeviceRates) -> float:
    return sum((*forward_terms(work, rates).values(), *backward_terms(work, rates).values()))
