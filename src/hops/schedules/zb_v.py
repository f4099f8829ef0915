"""ZB-V, V-Half and V-Min: two stages per rank, down and up the ranks, all backwards split (arXiv 2405.15362).

The paper repeats a building block every six units of time (F = I = W = 1), then moves actions to earlier places. Here
the block of V-Half gives every action its nominal time, and each rank runs the nominally first action that can run and
that memory allows.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from hops.arrays import IntArray
from hops.program.action import NUM_OPS, Op
from hops.program.builders import counted, first_microbatches, kind_of, repeated
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.list_schedule import list_schedule_by_pattern
from hops.timing.order_rows import blank_rows, program_of
from hops.timing.stage_costs import UNLIMITED, StageCosts, cost_arrays


@SCHEDULERS.register("zb_v")
class ZBV(StaticScheduler):
    """The order that PyTorch's ScheduleZBVZeroBubble uses, for any number of microbatches.

    It is drawn for at least 2 p - 1 microbatches; with fewer, those that are not there are left out.
    """

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        drawn = max(2 * shape.num_ranks - 1, shape.num_microbatches)
        program = counted(shape, [_order(shape, rank, drawn) for rank in range(shape.num_ranks)])
        return program if drawn == shape.num_microbatches else first_microbatches(program)


def _order(shape: Shape, rank: int, size: int) -> IntArray:
    """A rank's kinds in order; each of them runs through the microbatches."""
    down, up = shape.stages_of(rank)
    f, i, w = (kind_of(down, op) for op in (Op.F, Op.I, Op.W))
    f_up, i_up, w_up = (kind_of(up, op) for op in (Op.F, Op.I, Op.W))
    below = shape.num_ranks - rank
    steady = size - shape.num_ranks
    forwards = min(size - (2 * below - 1 + rank), steady)  # turns of the steady state that still have an F down
    return repeated(
        ([f], 2 * below - 1),
        ([f_up, f], rank),
        ([f_up, i_up, w_up], below),
        ([f, i, w, f_up, i_up, w_up], forwards),
        ([i, w, f_up, i_up, w_up], steady - forwards),
        ([i, i_up], rank),
        ([i, w], below),
        ([w_up], rank),
        ([w], rank),
    )


PERIOD = 6  # units of time that a rank works on one microbatch
UNIT = 1 << 20  # of memory: what one stage's activation takes, or what W needs where that is more


@SCHEDULERS.register("v_half")
class VHalf(StaticScheduler):
    """Keeps at most p/2 + 1 microbatches' activations per rank, whatever part of them W needs, where 1F1B keeps p.

    Of two building blocks the one with the shorter iteration for F = I = W = 1: the paper's, and one whose forwards up
    and backwards up move by 2 units per rank, and down by 1.
    """

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        costs = cost_arrays(_in_units(profile, chunks=shape.num_ranks + 2))
        best, chosen = UNLIMITED, blank_rows(costs)
        for nominal in (uneven_block(shape.num_ranks), half_block(shape.num_ranks)):
            rows = blank_rows(costs)
            makespan = list_schedule_by_pattern.fast(costs, nominal, PERIOD, rows)
            if makespan < best:
                best, chosen = makespan, rows
        assert best < UNLIMITED, "a block leaves room for every microbatch that has begun"
        return program_of(shape, chosen)


@SCHEDULERS.register("v_min")
class VMin(StaticScheduler):
    """Keeps at most (p + 4) // 3 microbatches' activations per rank, whatever part of them W needs.

    The paper's building block as it is: every rank repeats it, and puts its W, oldest first, into the units of time
    that the block leaves free.
    """

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        return Shape.v(num_ranks, num_microbatches=num_microbatches)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        nominal = min_block(shape.num_ranks)
        return counted(shape, [_repeated_block(shape, rank, nominal) for rank in range(shape.num_ranks)])


def _in_units(profile: StageCosts, *, chunks: int) -> StageCosts:
    """F = I = W = 1, activations counted in UNIT, and room for so many of them on each rank."""
    shape = profile.shape
    sizes = zip(profile.activation_bytes, profile.kept_for_weight_bytes, strict=True)
    shares = [kept / max(whole, kept) if max(whole, kept) else 0.5 for whole, kept in sizes]
    return replace(
        StageCosts.uniform(shape, f=1e-9, i=1e-9, w=1e-9),
        activation_bytes=(UNIT,) * shape.num_stages,
        kept_for_weight_bytes=tuple(ceil(share * UNIT) for share in shares),
        budget_bytes=(chunks * UNIT,) * shape.num_ranks,
    )


# A building block gives microbatch 0 its nominal times in units: of F (row 0) and I (row 1) on every stage of the V.


def block(*turns: IntArray) -> IntArray:
    """From those of F down, F up, I of the stages up and I of the stages down, each per rank."""
    f_down, f_up, i_up, i_down = turns
    return np.array([np.concatenate([f_down, f_up[::-1]]), np.concatenate([i_down, i_up[::-1]])])


def half_block(num_ranks: int) -> IntArray:
    """V-Half of arXiv 2405.15362."""
    rank, p = np.arange(num_ranks), num_ranks
    gap = 3 if p % 2 == 0 else 0
    return block(2 * rank, 3 * p - 2 - rank, 3 * p + gap - 1 + 2 * rank, 6 * p + gap - 2 - rank)


def uneven_block(num_ranks: int) -> IntArray:
    """Forwards move one rank down in 1 unit and up in 2, and so do backwards, which halves what ZB-V's 3 and 3 keep."""
    rank, p = np.arange(num_ranks), num_ranks
    below = p - 1 - rank
    turn, back, home = p + 1, 3 * p + 1, 4 * p + 4
    return block(rank, turn + 2 * below, back + rank, home + 2 * below)


def min_block(num_ranks: int) -> IntArray:
    """V-Min of arXiv 2405.15362."""
    rank, p = np.arange(num_ranks), num_ranks
    gap = 2 if p % 3 == 0 else 0
    return block(rank, 2 * p - 1 - rank, 2 * p + gap + rank, 4 * p + gap - 1 - rank)


def _repeated_block(shape: Shape, rank: int, nominal: IntArray) -> IntArray:
    """A rank's kinds in the order of their nominal times, W in the free units."""
    size = shape.num_microbatches
    turns = [
        (int(nominal[row, stage]), kind_of(stage, op))
        for stage in shape.stages_of(rank)
        for row, op in enumerate((Op.F, Op.I))
    ]
    times = np.concatenate([start + PERIOD * np.arange(size) for start, _ in turns])
    kinds = np.repeat([kind for _, kind in turns], size)
    order = np.argsort(times)
    times, kinds = times[order], kinds[order]
    inputs = kinds % NUM_OPS == Op.I
    weights = kinds[inputs] - Op.I + Op.W
    # The n-th W runs in the first free unit after its I and after the W before it.
    free = np.setdiff1d(np.arange(times[-1] + 1 + 2 * size + PERIOD), times)
    first = np.searchsorted(free, times[inputs])
    place = np.maximum.accumulate(first - np.arange(len(first))) + np.arange(len(first))
    every = np.concatenate([times, free[place]])
    return np.concatenate([kinds, weights])[np.argsort(every)]
