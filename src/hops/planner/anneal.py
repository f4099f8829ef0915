"""Local search on layouts of 1F1B as one compiled loop: the moves of `local`, judged by the exact recurrence.

Written as loops over arrays for speed: some hundred thousand layouts a second (benchmarks/plan.py).
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from hops.compiled import kernel
from hops.distributions import FloatArray
from hops.planner.layout_bound import Layout, LayoutBound
from hops.planner.one_f_one_b import ONE_F_ONE_B, floor_terms, one_f_one_b_s
from hops.planner.problem import IntArray

DRAWS = 4  # random numbers per step
LAYER, LAYER_FAR, SWAP, SWAP_DEVICES, RELOCATE, REPLACE, DROP, ADD = range(8)


@kernel
def propose(
    move: int,
    draws: FloatArray,
    device: IntArray,
    layers: IntArray,
    stages: int,
    free: IntArray,
    num_free: int,
    to_device: IntArray,
    to_layers: IntArray,
) -> int:
    """Fill `to_device` and `to_layers` with a neighbour of the layout, drawn by numbers in [0, 1).

    `stages` and `num_free` say how much of the arrays counts; `free` are the unused devices. Returns the number of
    stages, 0 if the move is not possible here.
    """
    one, two = int(draws[1] * stages), int(draws[2] * stages)
    for stage in range(stages):
        to_device[stage], to_layers[stage] = device[stage], layers[stage]
    if move <= LAYER_FAR:  # one layer to a neighbour, or to any stage
        if move == LAYER:
            two = one + 1 if draws[2] < 0.5 else one - 1
        if one == two or two < 0 or two >= stages or layers[one] < 2:
            return 0
        to_layers[one] -= 1
        to_layers[two] += 1
        return stages
    if move <= SWAP_DEVICES:  # two stages trade places, or devices alone
        if one == two:
            return 0
        to_device[one], to_device[two] = device[two], device[one]
        if move == SWAP:
            to_layers[one], to_layers[two] = layers[two], layers[one]
        return stages
    if move == RELOCATE:  # a run of stages goes elsewhere
        length = 1 + int(draws[3] * draws[3] * (stages // 2))
        length = min(length, stages - one)
        spot = int(draws[2] * (stages - length + 1))
        if spot == one:
            return 0
        place = 0
        for stage in range(stages - length + 1):
            if stage == spot:
                for number in range(length):
                    source = one + number
                    to_device[place], to_layers[place] = device[source], layers[source]
                    place += 1
            if stage < stages - length:
                source = stage if stage < one else stage + length
                to_device[place], to_layers[place] = device[source], layers[source]
                place += 1
        return stages
    if move == REPLACE:  # an unused device takes the place of one that is used
        if num_free == 0:
            return 0
        to_device[one] = free[int(draws[3] * num_free)]
        return stages
    if move == DROP:  # a stage is given up; its layers go to others
        if stages < 2:
            return 0
        for stage in range(one, stages - 1):
            to_device[stage], to_layers[stage] = device[stage + 1], layers[stage + 1]
        for number in range(layers[one]):
            to_layers[int((draws[2] + draws[3] * number) % 1.0 * (stages - 1))] += 1
        return stages - 1
    if num_free == 0 or layers[two] < 2:  # an unused device takes a layer from a stage
        return 0
    spot = int(draws[1] * (stages + 1))
    for stage in range(stages, spot, -1):
        to_device[stage], to_layers[stage] = device[stage - 1], layers[stage - 1]
    to_layers[two if two < spot else two + 1] -= 1
    to_device[spot] = free[int(draws[3] * num_free)]
    to_layers[spot] = 1
    return stages + 1


@kernel
def anneal(
    size: int,
    heat: float,
    paid: float,
    moves: IntArray,
    draws: FloatArray,
    device: IntArray,
    layers: IntArray,
    kind_of: IntArray,
    price: FloatArray,
    forward: FloatArray,
    fused: FloatArray,
    inputs: FloatArray,
    weights: FloatArray,
    static: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    step: FloatArray,
    hop: FloatArray,
    links: IntArray,
    link_s: FloatArray,
    tied: FloatArray,
    load: FloatArray,
    best_devices: IntArray,
    best_layers: IntArray,
    values: FloatArray,
) -> int:
    """Threshold accepting from a layout, one step per row of `draws`; returns how many improvements were found.

    `moves` are those that are allowed. The improvements lie in `best_devices`, `best_layers` (stages without layers are
    none) and `values`, as a ring of their length. Values are seconds of an iteration times `paid` and the prices (per
    device) of what is used; a layout that does not fit is never taken. `step`: seconds of each kind on each block, of
    which the largest counts. `tied`: seconds that first and last device add.
    """
    most = len(kind_of)
    here_d, here_l, stages = np.zeros(most, np.int64), np.zeros(most, np.int64), len(device)
    to_d, to_l, kind = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    for stage in range(stages):
        here_d[stage], here_l[stage] = device[stage], layers[stage]
    free, used = np.zeros(most, np.int64), np.zeros(most, np.int64)
    out, f, b, both = np.zeros(4), np.zeros(most), np.zeros(most), np.zeros(most)
    here, best, found, num_free = np.inf, np.inf, 0, -1
    for number in range(len(draws)):
        if num_free < 0:  # the layout is new
            num_free = 0
            for stage in range(stages):
                used[here_d[stage]] = number + 1
            for each in range(most):
                if used[each] != number + 1:
                    free[num_free] = each
                    num_free += 1
        if number == 0:
            to = stages
            for stage in range(stages):
                to_d[stage], to_l[stage] = device[stage], layers[stage]
        else:
            move = moves[int(draws[number, 0] * len(moves))]
            to = propose(move, draws[number], here_d, here_l, stages, free, num_free, to_d, to_l)
        if to == 0:
            continue
        for stage in range(to):
            kind[stage] = kind_of[to_d[stage]]
        fits = floor_terms(
            ONE_F_ONE_B, size, 0.0, to_d[:to], kind[:to], to_l[:to], forward, fused, inputs, weights, static,
            activation, kept, memory, hop, links, link_s, load, out,
        )  # fmt: skip
        if not fits:
            continue
        pays, slowest, start = paid, 0.0, 0
        for stage in range(to):
            end = start + to_l[stage]
            k = kind[stage]
            f[stage], b[stage] = forward[k, start, end], fused[k, start, end]
            slowest = max(slowest, step[k, start, end])
            pays += price[to_d[stage]]
            if stage + 1 < to:
                both[stage] = (hop[to_d[stage], to_d[stage + 1]] + hop[to_d[stage + 1], to_d[stage]]) / 2
            start = end
        rest = max(tied[to_d[0], to_d[to - 1]], out[3] - out[2]) + slowest
        limit = here * (1 + heat * (1 - number / len(draws)))
        if (out[2] + rest) * pays > limit:
            continue
        value = (max(out[2], one_f_one_b_s(size, f[:to], b[:to], both[: to - 1], both[: to - 1])) + rest) * pays
        if value > limit:
            continue
        here, stages, num_free = value, to, -1
        for stage in range(to):
            here_d[stage], here_l[stage] = to_d[stage], to_l[stage]
        if value < best:
            best = value
            spot = found % len(values)
            values[spot] = value
            for stage in range(most):
                best_devices[spot, stage] = to_d[stage] if stage < to else 0
                best_layers[spot, stage] = to_l[stage] if stage < to else 0
            found += 1
    return found


REMEMBERED = 12  # improvements


def annealed(
    floor: LayoutBound,
    start: Layout,
    *,
    moves: Sequence[int],
    prices: FloatArray | None,
    steps: int,
    heat: float,
    seed: int,
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
