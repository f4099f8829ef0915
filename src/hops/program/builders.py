"""Programs from patterns: what the schedules of the family write their orders with.

An order names only kinds (stage and op, in one integer); which microbatch each action works on follows by counting.
Arrays from end to end: a 1F1B of 131,072 actions takes milliseconds.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import NUM_OPS, Op
from hops.program.program import Program
from hops.program.shape import Shape

_SMALL_KINDS = 1 << 16  # keys below are sorted by radix


def kind_of(stage: int, op: Op) -> int:
    """Stage and op in one number."""
    return stage * NUM_OPS + op


def repeated(*pieces: tuple[Sequence[int] | IntArray, int]) -> IntArray:
    """Patterns of kinds, each so many times, one after the other. A negative number counts as 0."""
    wanted = [(pattern, times) for pattern, times in pieces if times > 0]
    kinds = np.empty(sum(len(pattern) * times for pattern, times in wanted), dtype=np.int64)
    at = 0
    for pattern, times in wanted:
        behind = at + len(pattern) * times
        kinds[at:behind].reshape(times, len(pattern))[:] = pattern
        at = behind
    return kinds


def counted(shape: Shape, orders: Sequence[IntArray], opens: Sequence[NDArray[np.bool_]] | None = None) -> Program:
    """The program of every rank's kinds in order.

    The n-th F of a stage is that of microbatch n, and so is its n-th backward (B or I); its n-th W is that of the
    microbatch of its n-th I.

    Args:
        shape: its number of microbatches is not looked at.
        orders: per rank, the kinds of its actions.
        opens: per rank, true where an action and the next are a pair; None: no pairs.
    """
    kind = np.concatenate(orders)
    first = np.cumsum([0, *map(len, orders)])
    op = kind % NUM_OPS
    is_input = op == Op.I
    backward = kind - is_input  # an I counts as a B, whose number is one less
    microbatch = _occurrence(backward, shape.num_stages * NUM_OPS)
    weights = np.flatnonzero(op == Op.W)
    stage = kind // NUM_OPS
    if len(weights):
        inputs = np.flatnonzero(is_input)
        weights = weights[np.argsort(stage[weights], kind="stable")]
        inputs = inputs[np.argsort(stage[inputs], kind="stable")]
        microbatch[weights] = microbatch[inputs]
    step = np.arange(len(kind))
    if opens is not None:
        closes = np.concatenate(opens).astype(np.int64)
        closes = np.concatenate([[0], closes[:-1]])
        step -= np.cumsum(closes)
    return Program(shape=shape, stage=stage, op=op, microbatch=microbatch, step=step, first=first)


def in_order(shape: Shape, orders: Sequence[tuple[IntArray, IntArray]]) -> Program:
    """The program of every rank's (kinds, microbatches), without pairs."""
    kind = np.concatenate([kinds for kinds, _ in orders])
    return Program(
        shape=shape,
        stage=kind // NUM_OPS,
        op=kind % NUM_OPS,
        microbatch=np.concatenate([numbers for _, numbers in orders]),
        step=np.arange(len(kind)),
        first=np.cumsum([0, *(len(kinds) for kinds, _ in orders)]),
    )


def first_microbatches(program: Program) -> Program:
    """The program without the microbatches that its shape does not have."""
    kept = program.microbatch < program.shape.num_microbatches
    rank = program.rank_of_action[kept]
    return Program(
        shape=program.shape,
        stage=program.stage[kept],
        op=program.op[kept],
        microbatch=program.microbatch[kept],
        step=np.unique(program.step[kept], return_inverse=True)[1].astype(np.int64),
        first=np.searchsorted(rank, np.arange(program.num_ranks + 1)),
    )


def _occurrence(key: IntArray, num_keys: int) -> IntArray:
    """How often each value has been there before."""
    small = key.astype(np.uint16) if num_keys <= _SMALL_KINDS else key
    order = np.argsort(small, kind="stable")
    counts = np.bincount(key, minlength=num_keys)
    starts = np.cumsum(counts) - counts
    occurrence = np.empty(len(key), dtype=np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(starts, counts)
    return occurrence


def at_least(name: str, value: int, least: int) -> int:
    """A schedule's parameter, checked. Raises UsageError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be an integer of at least {least}, but got {value!r}")
    return value
