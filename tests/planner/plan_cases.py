"""Small planning problems, and their answers by trying everything."""

from itertools import combinations, permutations

import numpy as np

from hops.decode.document import parse
from hops.planner.block_costs import MessageTimes, block_costs
from hops.planner.bottleneck import Problem
from hops.planner.layout import Freedom, Layout
from hops.planner.layout_problem import BUSY_MESSAGES, AfterPipeline, LayoutProblem
from hops.planner.problem import Pool
from hops.spec.load import override
from hops.spec.open import OpenSpec, open_spec
from hops.spec.schedule import ScheduleChoice

SMALL = """\
simulation: {iterations: 1}
pipeline:
  model: {layers: 6, hidden: 512, heads: 8, vocab: 8192}
  sequence_length: 512
  microbatches: 8
  schedule: 1f1b
hardware:
  nodes:
    - {name: a, devices: [h100]}
    - {name: b, devices: [l4, l4]}
  interconnect: ethernet-25
"""


def opened(text: str = SMALL, *changes: str, batch: int | None = None) -> OpenSpec:
    """The open spec of a text with changes."""
    return open_spec(override(parse(text, name="spec"), changes), batch=batch)


def problem_of(spec, family, *, v_shaped=False, **freedom) -> LayoutProblem:
    """All devices of a spec, with what may change."""
    pool = Pool.of(spec)
    blocks = block_costs(spec, pool)
    return LayoutProblem(
        pool=pool,
        freedom=Freedom(**freedom),
        family=family,
        size=spec.pipeline.microbatches,
        v_shaped=v_shaped,
        blocks=blocks,
        messages=MessageTimes.of(pool, blocks.message_bytes),
        busy_messages=BUSY_MESSAGES[spec.pipeline.p2p],
        after=AfterPipeline.of(pool),
        devices=tuple(pool.ids.index(each) for each in spec.hardware.ranks()),
        layers=None,
    )


def compositions(total: int, parts: int):
    """All ways to write a number as a sum of so many positive ones."""
    for cuts in combinations(range(1, total), parts - 1):
        ends = (*cuts, total)
        yield tuple(end - start for start, end in zip((0, *cuts), ends, strict=True))


def every_layout(devices: int, layers: int):
    """All sequences of devices, with all partitions."""
    for ranks in range(1, min(devices, layers) + 1):
        for sequence in permutations(range(devices), ranks):
            for partition in compositions(layers, ranks):
                yield Layout(devices=sequence, layers=partition)


def close(opened_spec: OpenSpec, layout: Layout, ids, schedule: str = "1f1b"):
    """The closed spec of a layout."""
    return opened_spec.close(
        schedule=ScheduleChoice(name=schedule),
        recompute=opened_spec.recomputes[0],
        batch=opened_spec.batches[0],
        placement=[ids[device] for device in layout.devices],
        partition=layout.layers,
    )


def least_by_trying(problem: Problem) -> float:
    """The least bottleneck over all sequences of kinds and all partitions; infinite if none fits."""
    kinds = np.repeat(np.arange(len(problem.counts)), problem.counts)
    best = np.inf
    for layout in every_layout(len(kinds), problem.num_layers):
        best = min(best, slowest(problem, kinds[list(layout.devices)], layout.layers))
    return best


def slowest(problem: Problem, kinds, layers) -> float:
    """Seconds of the slowest stage; infinite if one does not fit."""
    ends = np.cumsum(layers)
    worst = 0.0
    for stage, (kind, end, length) in enumerate(zip(kinds, ends, layers, strict=True)):
        position = min(len(layers) - 1 - stage, len(problem.needed) - 1)
        if problem.needed[position, end - length, end] > problem.memory[kind]:
            return np.inf
        worst = max(worst, problem.seconds[kind, end - length, end])
    return worst
