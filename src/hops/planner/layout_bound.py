"""A time that no run of one plan can beat, in closed form: what the local search minimises.

For stage s: H is the time of all stages before it (F down, backward up), R that of all stages behind it, both with
their messages; c = f + b, n the microbatches it may have in flight. Every run needs

    H + m c                                                   its own work, between the first arrival and the way back
    H + (m - n + 1) c + max((n-1) f, R) + max((n-1) b, R)     1F1B: waits for the first backward, and for the last ones
    (if m <= n: H + c + max(max((m-1) f, R) + (m-1) b, (m-1) f + R), as all forwards come first)
    H + (1 + (m-1) // n) (R + c)                              1F1B: F of microbatch j + n comes after B of j
    m x bytes / bandwidth                                     of every link, for all messages of a microbatch on it

and then the optimizer step of the slowest device, the tied-embedding reduction and the host's gap.
"""

from math import inf

import numpy as np

from hops.arrays import IntArray
from hops.compiled import available
from hops.planner.layout import Layout
from hops.planner.layout_problem import LayoutProblem
from hops.planner.layout_terms import ANY, FUSED, GPIPE, ONE_F_ONE_B, LayoutRules, Stages, layout_terms
from hops.planner.problem import ScheduleFamily
from hops.timing.one_f_one_b import one_f_one_b

Block = tuple[IntArray, IntArray, IntArray]  # kinds, first layers, layers after the last
_CODES = {
    ScheduleFamily.ANY: ANY,
    ScheduleFamily.ONE_F_ONE_B: ONE_F_ONE_B,
    ScheduleFamily.GPIPE: GPIPE,
    ScheduleFamily.FUSED: FUSED,
}


def layout_bound(problem: LayoutProblem, layout: Layout) -> float:
    """Seconds of an iteration that no run of the layout beats; infinite if it cannot fit into memory."""
    return bound_parts(problem, layout)[1]


def bound_parts(problem: LayoutProblem, layout: Layout) -> tuple[float, float]:
    """The bound of the pipeline alone, and of the iteration with what follows it."""
    device, rank_of, block = _placed(problem, layout)
    if problem.freedom.chunks == 1:
        out = np.zeros(4)
        load = np.zeros(problem.messages.num_links)
        stages = Stages(device=device, kind=block[0], layers=block[2] - block[1])
        blocks, messages = problem.blocks.arrays, problem.messages.arrays
        if not layout_terms.fast(rules_of(problem), stages, blocks, problem.pool.memory_bytes, messages, load, out):
            return inf, inf
        first, last, pipeline, link = out.tolist()
    else:
        if not _fits(problem, rank_of, block):
            return inf, inf
        pipeline = _of_chunks(problem, rank_of, device, block)
        first = last = link = 0.0
    after = problem.after
    tied = max(first, last) + float(after.tied_s[device[0], device[rank_of[-1]]])
    reduced = tied
    if after.reduction is not None and problem.family is not ScheduleFamily.ANY:
        parameters = int(problem.blocks.parameters[block[1:]][rank_of == 0].sum())
        reduced = tied + after.reduction.seconds(layout.devices, parameters)
    return float(pipeline), float(max(pipeline, link, reduced)) + _step(problem, len(device), rank_of, block)


def is_exact(problem: LayoutProblem) -> bool:
    """Whether `expected_s` is known at little cost: 1F1B, messages overlapped, numba there to compile it."""
    return problem.family is ScheduleFamily.ONE_F_ONE_B and not problem.busy_messages and available()


def expected_s(problem: LayoutProblem, layout: Layout) -> float:
    """Seconds of an iteration of 1F1B but for shared links and jitter; the bound is a little less."""
    pipeline_s, iteration_s = bound_parts(problem, layout)
    if iteration_s == inf:
        return inf
    device, _, block = _placed(problem, layout)
    ways = problem.messages.seconds
    hop = (ways[device[:-1], device[1:]] + ways[device[1:], device[:-1]]) / 2  # as in the StageCosts of a schedule
    took = one_f_one_b.fast(problem.size, problem.blocks.forward[block], problem.blocks.fused[block], hop)
    return iteration_s + max(0.0, float(took) - pipeline_s)


def rules_of(problem: LayoutProblem) -> LayoutRules:
    """What the closed form has to know of the schedule."""
    return LayoutRules(family=_CODES[problem.family], size=problem.size, share=problem.busy_messages)


def _placed(problem: LayoutProblem, layout: Layout) -> tuple[IntArray, IntArray, Block]:
    """The device of each rank, the rank of each stage, and the block of each stage."""
    device = np.array(layout.devices, dtype=np.int64)
    layers = np.array(layout.layers, dtype=np.int64)
    one_each = problem.freedom.chunks == 1
    rank_of = np.arange(len(device)) if one_each else np.array(problem.shape(len(device)).rank_of_stage)
    ends = np.cumsum(layers)
    return device, rank_of, (problem.pool.kind_of[device[rank_of]], ends - layers, ends)


def _fits(problem: LayoutProblem, rank_of: IntArray, block: Block) -> bool:
    """Whether weights, states and the activations that a schedule with chunks needs fit on every device."""
    kind, starts, ends = block
    flight = flight_of_chunks(problem, int(rank_of.max()) + 1)
    needed = problem.blocks.static[starts, ends] + flight * problem.blocks.activation[starts, ends]
    held = np.bincount(rank_of, weights=needed)
    memory = np.zeros(len(held))
    memory[rank_of] = problem.pool.memory_bytes[kind]
    return bool((held <= memory).all())


def flight_of_chunks(problem: LayoutProblem, ranks: int) -> IntArray:
    """Microbatches in flight per stage: in interleaved 1F1B certain, in V schedules what the thriftiest needs.

    Interleaved 1F1B runs 2 (p - 1 - r) + (chunks - 1) p forwards on rank r before its first pair, p of each chunk
    in turn; with fewer microbatches than ranks, all of them in turn. `v_min` holds a third of what 1F1B's first rank
    does.
    """
    size, chunks = problem.size, problem.freedom.chunks
    if problem.v_shaped:
        return np.full(ranks * chunks, min(size, (ranks + 4) // 3), dtype=np.int64)
    flight = np.ones(ranks * chunks, dtype=np.int64)
    group = min(ranks, size)
    for rank in range(ranks if problem.family is ScheduleFamily.FUSED else 0):
        ahead = min(2 * (ranks - 1 - rank) + (chunks - 1) * group + 1, size * chunks)
        rounds, rest = divmod(ahead, group * chunks)
        for chunk in range(chunks):
            flight[chunk * ranks + rank] = rounds * group + min(group, max(0, rest - chunk * group))
    return flight


def _of_chunks(problem: LayoutProblem, rank_of: IntArray, device: IntArray, block: Block) -> float:
    """Ranks with several stages: the way to a rank's first stage, and its own work."""
    blocks, ways = problem.blocks, problem.messages.seconds
    forward = blocks.forward[block]
    cheaper = blocks.fused[block]
    if problem.family is ScheduleFamily.ANY:
        cheaper = np.minimum(cheaper, blocks.inputs[block] + blocks.weights[block])
    of_stage = device[rank_of]
    arrived = np.concatenate([[0.0], np.cumsum(forward[:-1] + ways[of_stage[:-1], of_stage[1:]])])
    load = problem.size * np.bincount(rank_of, weights=forward + cheaper)
    return float((arrived[: len(device)] + load).max())


def _step(problem: LayoutProblem, ranks: int, rank_of: IntArray, block: Block) -> float:
    """The host's gap, and the optimizer step: the slowest where ranks wait for each other, else the fastest."""
    optimizer = np.zeros(ranks)
    np.maximum.at(optimizer, rank_of, problem.blocks.step[block])
    norm = float(problem.blocks.norm[block].max())
    slowest = optimizer.max() if problem.after.synchronized else optimizer.min()
    return float(problem.after.gap_s[ranks]) + norm + float(slowest)
