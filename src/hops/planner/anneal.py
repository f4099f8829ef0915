"""Local search on layouts of 1F1B as one compiled loop: the same moves, judged by closed form and exact recurrence.

Written as loops over arrays for speed: some hundred thousand layouts a second (benchmarks/plan.py).
"""

from math import inf
from typing import NamedTuple

import numpy as np

from hops.arrays import FloatArray, IntArray
from hops.compiled import kernel
from hops.planner.block_costs import BlockArrays, MessageArrays
from hops.planner.layout import Layout
from hops.planner.layout_bound import rules_of
from hops.planner.layout_problem import LayoutProblem
from hops.planner.layout_terms import LINK, PIPELINE, LayoutRules, Stages, layout_terms
from hops.planner.local_search import DRAWS, LayoutArrays, find_spare, layout_s, moves_of, propose
from hops.timing.one_f_one_b import one_f_one_b

REMEMBERED = 12  # improvements
STEP_STAGE_S = 30e-9  # one step takes so long per stage, plus the following per microbatch and stage
STEP_ACTION_S = 0.75e-9


def compiled_steps(layouts: int, *, ranks: int, size: int) -> int:
    """Steps with `size` microbatches that cost as much as so many layouts of `local_search`."""
    return int(layouts * layout_s(ranks) / (STEP_STAGE_S * ranks + STEP_ACTION_S * ranks * size))


class Terms(NamedTuple):
    """What the value of a layout is made of.

    Attributes:
        rules, blocks, messages: see there.
        kind_of: kind of each device.
        memory: bytes of each kind.
        price: of each device; counts where `paid` is 0.
        paid: 1 where the value is a time, 0 where it is a time multiplied by the prices of what is used.
        end: seconds of each kind on each block, of which the largest follows the pipeline.
        tied: seconds that first and last device add.
    """

    rules: LayoutRules
    blocks: BlockArrays
    messages: MessageArrays
    kind_of: IntArray
    memory: IntArray
    price: FloatArray
    paid: float
    end: FloatArray
    tied: FloatArray


class Scratch(NamedTuple):
    """Room to value a layout in: of shape (devices + 1,), but `load` of shape (links,) and `out` (4,)."""

    kind: IntArray
    forward: FloatArray
    fused: FloatArray
    hop: FloatArray
    load: FloatArray
    out: FloatArray


class Improvements(NamedTuple):
    """The last improvements, as a ring; shapes (REMEMBERED, devices), and (REMEMBERED,)."""

    devices: IntArray
    layers: IntArray
    values: FloatArray


@kernel
def value_of(layout: LayoutArrays, terms: Terms, limit: float, room: Scratch) -> float:
    """The exact value of a layout; infinite if it does not fit, and where it is certain to be above `limit`."""
    count = layout.size[0]
    device, layers, kind = layout.device[:count], layout.layers[:count], room.kind[:count]
    blocks, hop = terms.blocks, terms.messages.seconds
    for stage in range(count):
        kind[stage] = terms.kind_of[device[stage]]
    stages = Stages(device, kind, layers)
    if not layout_terms(terms.rules, stages, blocks, terms.memory, terms.messages, room.load, room.out):
        return np.inf
    pays, slowest, start = terms.paid, 0.0, 0
    for stage in range(count):
        end = start + layers[stage]
        k = kind[stage]
        room.forward[stage], room.fused[stage] = blocks.forward[k, start, end], blocks.fused[k, start, end]
        slowest = max(slowest, terms.end[k, start, end])
        pays += terms.price[device[stage]]
        if stage + 1 < count:
            room.hop[stage] = (hop[device[stage], device[stage + 1]] + hop[device[stage + 1], device[stage]]) / 2
        start = end
    pipeline = room.out[PIPELINE]
    rest = max(terms.tied[device[0], device[count - 1]], room.out[LINK] - pipeline) + slowest
    if (pipeline + rest) * pays > limit:
        return np.inf
    took = one_f_one_b(terms.rules.size, room.forward[:count], room.fused[:count], room.hop[: count - 1])
    value: float = (max(pipeline, took) + rest) * pays
    return value


@kernel
def anneal(
    moves: IntArray,
    draws: FloatArray,
    heat: float,
    here: LayoutArrays,
    out: LayoutArrays,
    terms: Terms,
    room: Scratch,
    found: Improvements,
) -> None:
    """Threshold accepting from `here`, one step per row of `draws`, of which the first is not used but to value it.

    `moves` are those that are allowed; `out` has room for a layout. What is never taken does not fit.
    """
    value = value_of(here, terms, np.inf, room)
    best, number_found = np.inf, 0
    for number in range(len(draws)):
        if number > 0:
            move = moves[int(draws[number, 0] * len(moves))]
            if not propose(move, here, draws[number], out):
                continue
            limit = value * (1 + heat * (1 - number / len(draws)))
            proposed = value_of(out, terms, limit, room)
            if proposed == np.inf or proposed > limit:
                continue
            value = proposed
            here.size[0], here.size[1] = out.size[0], out.size[1]
            for stage in range(here.size[0]):
                here.device[stage], here.layers[stage] = out.device[stage], out.layers[stage]
            find_spare(here)
        if value < best:
            best = value
            spot = number_found % len(found.values)
            found.values[spot] = value
            for stage in range(found.devices.shape[1]):
                used = stage < here.size[0]
                found.devices[spot, stage] = here.device[stage] if used else 0
                found.layers[spot, stage] = here.layers[stage] if used else 0
            number_found += 1


def annealed(
    problem: LayoutProblem, start: Layout, *, by_price: bool, steps: int, heat: float, seed: int
) -> list[Layout]:
    """The last improvements that so many exact steps of the compiled search find, best first.

    `by_price`: whether the product of time and price is to be small. What the data-parallel reduction adds is left
    out. See `local_search` for the threshold `heat`. Only for 1F1B with one stage per rank and no rule for layers.
    """
    devices = len(problem.pool.ids)
    room = devices + 1
    end = problem.blocks.norm + (problem.blocks.step if problem.after.synchronized else 0.0)
    terms = Terms(
        rules=rules_of(problem),
        blocks=problem.blocks.arrays,
        messages=problem.messages.arrays,
        kind_of=problem.pool.kind_of,
        memory=problem.pool.memory_bytes,
        price=problem.pool.prices[problem.pool.kind_of] if by_price else np.zeros(devices),
        paid=0.0 if by_price else 1.0,
        end=end + problem.after.gap_s[len(start.devices)],
        tied=problem.after.tied_s,
    )
    scratch = Scratch(
        kind=np.zeros(room, np.int64),
        forward=np.zeros(room),
        fused=np.zeros(room),
        hop=np.zeros(room),
        load=np.zeros(problem.messages.num_links),
        out=np.zeros(4),
    )
    found = Improvements(
        np.zeros((REMEMBERED, devices), np.int64), np.zeros((REMEMBERED, devices), np.int64), np.full(REMEMBERED, inf)
    )
    anneal.fast(
        np.array(moves_of(problem.freedom), dtype=np.int64),
        np.random.default_rng(seed).random((steps, DRAWS)),
        heat,
        LayoutArrays.of(start, devices),
        LayoutArrays.of(start, devices),
        terms,
        scratch,
        found,
    )
    best_first = [place for place in np.argsort(found.values, kind="stable").tolist() if found.values[place] < inf]
    used = [int((found.layers[place] > 0).sum()) for place in best_first]
    return [
        Layout(devices=tuple(found.devices[place, :size].tolist()), layers=tuple(found.layers[place, :size].tolist()))
        for place, size in zip(best_first, used, strict=True)
    ]
