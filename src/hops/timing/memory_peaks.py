"""What activations take at most, rank by rank: it follows from the order alone.

A rank runs one action at a time, so that what it holds while one runs does not depend on when it runs.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.program.action import NUM_OPS, Op
from hops.program.program import Program
from hops.timing.stage_costs import StageCosts


class Peaks(NamedTuple):
    """The most at any time, per rank.

    Attributes:
        in_flight: microbatches (per stage) whose F has started and whose B or W has not ended.
        activation_bytes: F allocates at its start; at their ends I frees all but what W needs, W frees that, B frees
            all.
    """

    in_flight: tuple[int, ...]
    activation_bytes: tuple[int, ...]


def memory_peaks(program: Program, costs: StageCosts) -> Peaks:
    """The peaks of a complete program."""
    count = np.zeros((costs.shape.num_stages, NUM_OPS), dtype=np.int64)
    count[:, [Op.B, Op.W]] = 1
    freed = np.zeros_like(count)
    whole, kept = np.array(costs.activation_bytes), np.array(costs.kept_for_weight_bytes)
    is_forward = program.op == Op.F
    kind = program.kind
    in_flight = _most(program, is_forward.astype(np.int64), count.reshape(-1)[kind])
    if costs.microbatch_work:
        whole, kept = (np.rint(size[:, None] * costs.work).astype(np.int64) for size in (whole, kept))
        at, none = (program.stage, program.microbatch), np.zeros_like(program.stage)
        loss = np.choose(program.op, [none, whole[at], (whole - kept)[at], kept[at]])
        return Peaks(in_flight=in_flight, activation_bytes=_most(program, np.where(is_forward, whole[at], 0), loss))
    freed[:, Op.B], freed[:, Op.I], freed[:, Op.W] = whole, whole - kept, kept
    return Peaks(
        in_flight=in_flight,
        activation_bytes=_most(program, np.where(is_forward, whole[program.stage], 0), freed.reshape(-1)[kind]),
    )


def fits_budget(program: Program, costs: StageCosts) -> bool:
    """Whether a program keeps to the activation budget of every rank at any time."""
    peaks = memory_peaks(program, costs).activation_bytes
    return all(limit is None or peak <= limit for peak, limit in zip(peaks, costs.budget_bytes, strict=True))


def _most(program: Program, gain: IntArray, loss: IntArray) -> tuple[int, ...]:
    """Per rank, the most held while an action runs: it gains at its start and loses at its end."""
    held = np.cumsum(gain - loss) + loss
    before = np.concatenate([[0], np.cumsum(gain - loss)])
    bounds = pairwise(program.first.tolist())
    return tuple(int(held[a:b].max() - before[a]) if b > a else 0 for a, b in bounds)
