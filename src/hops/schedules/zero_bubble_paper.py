"""The zero-bubble paper's automatic schedule under a memory limit: the heuristic of arXiv 2401.10241, section 3.1.

Round i puts on every stage one more forward, if it is wanted and after the weight backwards that make room for it, then
the input backward of microbatch i. Weight backwards fill the gaps before either.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel, pays
from hops.errors import UsageError
from hops.program.action import NUM_OPS, Op
from hops.program.builders import at_least, counted
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts, durations_ns, hops_ns

Ints = Sequence[int] | IntArray
NO_LIMIT = 1 << 60
FORWARD, INPUT, WEIGHT = int(Op.F), int(Op.I), int(Op.W)


class Columns(NamedTuple):
    """What the greedy order takes of each stage: times and hops to the next stage (ns), and limits.

    Attributes:
        most: half activations, where F adds 2, and I and W each free 1.
        whole, kept, memory: bytes of an activation, of what W needs of it, and in all.
    """

    forward: Ints
    backward: Ints
    weight: Ints
    hop: Ints
    most: Ints
    whole: Ints
    kept: Ints
    memory: Ints


class GreedyVariant(NamedTuple):
    """The three choices of the paper, whose eight combinations it tries.

    Attributes:
        wait_for_first: the warm-up leaves the first input backward its time.
        prefer_backward: a forward that would hold up the next stage's input backward is put off.
        fill_always: gaps are filled even where a bubble costs nothing yet, since another stage has had longer ones.
    """

    wait_for_first: bool
    prefer_backward: bool
    fill_always: bool


class Filled(NamedTuple):
    """What the greedy order comes to.

    Attributes:
        mattered: 1 for each choice of the variant that was true and decided something; for the others, the variant
            with false is the same order.
        forward_end: of the j-th F of each stage, stages x size.
        ops: in order, 3 x size of each stage.
    """

    mattered: list[int] | IntArray
    forward_end: list[int] | IntArray
    ops: list[int] | IntArray


@kernel
def room_needed(started: int, inputs: int, weights: int, most: int, whole: int, kept: int, memory: int) -> int:
    """Weight backwards that must come before one more forward fits, by count and by bytes."""
    room = 2 * (started + 1) - inputs - weights - most
    excess = whole * (started + 1 - inputs) + kept * (inputs - weights) - memory
    if excess > 0 and kept > 0:
        room = max(room, -(-excess // kept))
    return max(room, 0)


@kernel
def warm_up(size: int, stages: Columns, now: Ints, wait_for_first: bool, extra: list[int] | IntArray) -> None:
    """Fill `extra`: forwards of each stage beside that of microbatch 0, before its first input backward.

    As many as fit in memory and in the time until that one's message comes: the last one may come in its way, or must
    not (`wait_for_first`). `now` is when the forward of microbatch 0 ends.
    """
    forward, backward, hop = stages.forward, stages.backward, stages.hop
    most, whole, memory = stages.most, stages.whole, stages.memory
    last = len(forward) - 1
    ready = now[last] + backward[last]
    for stage in range(last - 1, -1, -1):
        ready += hop[stage]
        time = now[stage]
        count = 0
        while count + 1 < size and 2 * (count + 2) <= most[stage] and whole[stage] * (count + 2) <= memory[stage]:
            if (time + forward[stage] > ready) if wait_for_first else (time >= ready):
                break
            time += forward[stage]
            count += 1
        extra[stage] = count
        ready = max(ready, time) + backward[stage]
    for stage in range(1, last + 1):
        extra[stage] = min(extra[stage], extra[stage - 1])
        if extra[stage] > 0 and extra[stage] + 1 < size:
            extra[stage] = min(extra[stage], extra[stage - 1] - 1)


@kernel
def greedy(size: int, columns: Columns, variant: GreedyVariant, bound: int, filled: Filled) -> int:
    """Fill in an order. Returns the longest stage span (ns), or `bound` if it is not below that."""
    forward, backward, weight, hop = columns.forward, columns.backward, columns.weight, columns.hop
    most, whole, kept, memory = columns.most, columns.whole, columns.kept, columns.memory
    wait_for_first, prefer_backward, fill_always = variant
    mattered, forward_end, ops = filled
    stages = len(forward)
    last = stages - 1
    f = [0] * stages
    i = [0] * stages
    w = [0] * stages
    now = [0] * stages
    bubble = [0] * stages
    wanted = [0] * stages
    extra = [0] * stages
    otherwise = [0] * stages
    work = [size * (forward[stage] + backward[stage] + weight[stage]) for stage in range(stages)]
    longest = 0
    for stage in range(stages):
        start = now[stage - 1] + hop[stage - 1] if stage > 0 else 0
        now[stage] = start + forward[stage]
    warm_up(size, columns, now, wait_for_first, extra)
    warm_up(size, columns, now, not wait_for_first, otherwise)
    for stage in range(stages):
        if extra[stage] != otherwise[stage]:
            mattered[0] = 1
    for step in range(size):
        # Which stages shall have one more forward in this round.
        for stage in range(stages):
            if step == 0:
                wanted[stage] = 1 + extra[stage]
                continue
            wanted[stage] = 1 if f[stage] < size else 0
            if prefer_backward and stage < last and f[stage] < size and f[stage] >= f[stage + 1] + 2:
                following = now[stage + 1] + forward[stage + 1] + backward[stage + 1] + hop[stage]
                room = room_needed(f[stage], i[stage], w[stage], most[stage], whole[stage], kept[stage], memory[stage])
                late = now[stage] + room * weight[stage] + forward[stage] > following
                slack = longest - bubble[stage]
                if now[stage] >= following or (late and following - now[stage] <= slack):
                    wanted[stage] = 0
                    mattered[1] = 1
        # Down the stages: the W that make room or fill the gap, then the forward.
        for stage in range(stages):
            base = stage * 3 * size
            for _ in range(wanted[stage]):
                count = f[stage]
                ready = forward_end[(stage - 1) * size + count] + hop[stage - 1] if stage > 0 else 0
                if count == 0:
                    now[stage] = ready
                room = 0
                free = i[stage] - w[stage]
                if free > 0:
                    room = room_needed(count, i[stage], w[stage], most[stage], whole[stage], kept[stage], memory[stage])
                    gap = ready - now[stage] - room * weight[stage]
                    while gap > 0 and room < free:
                        if gap < weight[stage] and gap <= longest - bubble[stage]:
                            if not fill_always:
                                break
                            mattered[2] = 1
                        room += 1
                        gap -= weight[stage]
                    for _ in range(room):
                        ops[base + count + i[stage] + w[stage]] = WEIGHT
                        w[stage] += 1
                    now[stage] += room * weight[stage]
                if ready > now[stage]:
                    bubble[stage] += ready - now[stage]
                    longest = max(longest, bubble[stage])
                    now[stage] = ready
                now[stage] += forward[stage]
                forward_end[stage * size + count] = now[stage]
                ops[base + count + i[stage] + w[stage]] = FORWARD
                f[stage] = count + 1
        # Up the stages: the W that fill the gap, then the input backward of this round.
        ready = 0
        for stage in range(last, -1, -1):
            base = stage * 3 * size + f[stage] + i[stage]
            room = 0
            free = i[stage] - w[stage]
            gap = ready - now[stage]
            while gap > 0 and room < free:
                if gap < weight[stage] and gap <= longest - bubble[stage]:
                    if not fill_always:
                        break
                    mattered[2] = 1
                ops[base + w[stage] + room] = WEIGHT
                room += 1
                gap -= weight[stage]
            w[stage] += room
            now[stage] += room * weight[stage]
            if ready > now[stage]:
                bubble[stage] += ready - now[stage]
                longest = max(longest, bubble[stage])
                now[stage] = ready
            now[stage] += backward[stage]
            ops[base + w[stage]] = INPUT
            i[stage] += 1
            if stage > 0:
                ready = now[stage] + hop[stage - 1]
            if bubble[stage] + work[stage] >= bound:
                return bound
    span = 0
    for stage in range(stages):
        for place in range(stage * 3 * size + 2 * size + w[stage], (stage + 1) * 3 * size):
            ops[place] = WEIGHT
        span = max(span, bubble[stage] + work[stage])
    return span


VARIANTS = tuple(GreedyVariant(*choices) for choices in product((True, False), repeat=3))


def greedy_orders(size: int, stages: list[list[int]], *, prune: bool) -> Iterator[tuple[int, Ints]]:
    """The orders of the variants that differ: longest span and op codes of all stages, 3 x microbatches each.

    Args:
        size: microbatches.
        stages: the columns of `Columns`.
        prune: leave out variants once their span is no shorter than the best before.
    """
    compiled = pays(len(VARIANTS) * 3 * size * len(stages[0]))
    find: Callable[..., int] = greedy.fast if compiled else greedy.function
    new, blank = (np.array, _zeros) if compiled else (list, lambda length: [0] * length)
    columns = Columns(*(new(column) for column in stages))
    count = len(stages[0])
    best = NO_LIMIT
    mattered: dict[GreedyVariant, Ints] = {}
    for variant in VARIANTS:
        same = next((twin for axis, twin in _twins(variant) if not mattered[twin][axis]), None)
        if same is not None:
            mattered[variant] = mattered[same]
            continue
        filled = Filled(*(blank(length) for length in (3, size * count, 3 * size * count)))
        bound = best if prune else NO_LIMIT
        span = find(size, columns, variant, bound, filled)
        mattered[variant] = filled.mattered
        if span < bound:
            best = min(best, span)
            yield span, filled.ops


@SCHEDULERS.register("zero_bubble_paper")
class ZeroBubblePaper(StaticScheduler):
    """The best of the paper's eight greedy orders: the one whose longest stage span is shortest.

    It is here to check the paper's tables; `zero_bubble` is the one to train with. Messages count as latencies, also
    where they are blocking.

    Args:
        max_activations: microbatches that a stage may hold, where F adds 1, and I and W each free a half, whatever W
            needs. The default (None) is p, which makes it ZB-1p; 2 p makes it ZB-2p. The activation budget, if any,
            holds as well.
    """

    def __init__(self, *, max_activations: int | None = None) -> None:
        self.max_activations = None if max_activations is None else at_least("max_activations", max_activations, 1)

    def build(self, profile: StageCosts) -> Program:
        """Raises UsageError if a rank's memory does not take one microbatch."""
        shape = profile.shape
        orders = greedy_orders(shape.num_microbatches, self._columns(profile), prune=True)
        _, best = min(orders, key=lambda order: order[0])
        ops = np.array(best, dtype=np.int64).reshape(shape.num_stages, 3 * shape.num_microbatches)
        return counted(shape, list(ops + NUM_OPS * np.arange(shape.num_stages)[:, None]))

    def _columns(self, profile: StageCosts) -> list[list[int]]:
        stages = profile.shape.num_stages
        most = stages if self.max_activations is None else self.max_activations
        memory = [NO_LIMIT if limit is None else min(limit, NO_LIMIT) for limit in profile.budget_bytes]
        for rank, (needed, limit) in enumerate(zip(profile.activation_bytes, memory, strict=True)):
            if needed > limit:
                raise UsageError(
                    f"zero_bubble_paper: rank {rank} has {limit} bytes for activations, but one microbatch needs "
                    f"{needed}"
                )
        return columns_of(profile, [2 * most] * stages, memory)


def columns_of(profile: StageCosts, most: list[int], memory: list[int]) -> list[list[int]]:
    """The columns of `Columns` for given limits."""
    durations = durations_ns(profile)
    times = [durations[:, op].tolist() for op in (Op.F, Op.I, Op.W)]
    sizes = [list(profile.activation_bytes), list(profile.kept_for_weight_bytes)]
    return [*times, [*hops_ns(profile).tolist(), 0], most, *sizes, memory]


def _twins(variant: GreedyVariant) -> list[tuple[int, GreedyVariant]]:
    """The variants with one false made true, and where."""
    twins = [(axis, variant._replace(**{name: True})) for axis, name in enumerate(GreedyVariant._fields)]
    return [(axis, twin) for axis, twin in twins if not variant[axis]]


def _zeros(length: int) -> IntArray:
    return np.zeros(length, dtype=np.int64)
