"""The compiled search, called with the tables of a floor."""

from collections.abc import Sequence
from math import inf

import numpy as np

from hops.draws import FloatArray
from hops.plan.anneal import DRAWS, anneal
from hops.plan.floor import Floor, Layout

REMEMBERED = 12  # improvements


def annealed(
    floor: Floor, start: Layout, *, moves: Sequence[int], prices: FloatArray | None, steps: int, heat: float, seed: int
) -> list[Layout]:
    """The last improvements that so many exact steps of the compiled search find, best first.

    `prices`: of devices, where the product of time and price is to be small. What the data-parallel reduction adds
    is left out. See `anneal`, and `local.improve` for the threshold `heat`.
    """
    tables, ways, devices = floor.tables, floor.ways, len(floor.pool.ids)
    section = floor.spec.optimizer
    step = tables.norm + (tables.step if section.enabled and section.synchronized else 0.0)
    found_d, found_l = np.zeros((REMEMBERED, devices), np.int64), np.zeros((REMEMBERED, devices), np.int64)
    values = np.full(REMEMBERED, inf)
    anneal.fast(
        floor.size,
        heat,
        1.0 if prices is None else 0.0,
        np.array(moves, dtype=np.int64),
        np.random.default_rng(seed).random((steps, DRAWS)),
        np.array(start.devices, dtype=np.int64),
        np.array(start.layers, dtype=np.int64),
        floor.pool.kind_of,
        np.zeros(devices) if prices is None else prices,
        tables.forward,
        tables.fused,
        tables.inputs,
        tables.weights,
        tables.static,
        tables.activation,
        tables.kept,
        floor.pool.memory_bytes,
        step + floor.gap_s(len(start.devices)) if section.enabled else np.zeros_like(tables.forward),
        ways.seconds,
        ways.links,
        ways.link_s,
        floor.tied,
        floor.load,
        found_d,
        found_l,
        values,
    )
    best_first = [place for place in np.argsort(values, kind="stable").tolist() if values[place] < inf]
    used = [int((found_l[place] > 0).sum()) for place in best_first]
    return [
        Layout(devices=tuple(found_d[place, :size].tolist()), layers=tuple(found_l[place, :size].tolist()))
        for place, size in zip(best_first, used, strict=True)
    ]
