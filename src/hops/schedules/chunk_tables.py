"""The order in which a rank takes its chunks: one group of microbatches through each, then the next group."""

import numpy as np

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import Op
from hops.program.builders import kind_of
from hops.program.shape import Shape


def equal_groups(schedule: str, num_ranks: int, num_microbatches: int) -> int:
    """The group size that PyTorch's schedules choose: as many equal groups as hold p microbatches each, or one.

    Raises UsageError, in the name of the schedule, if the microbatches do not divide into them.
    """
    groups = max(1, num_microbatches // num_ranks)
    size, rest = divmod(num_microbatches, groups)
    if rest:
        raise UsageError(
            f"{schedule}: {num_microbatches} microbatches do not divide into {groups} groups of equal size, "
            f"as many as {num_ranks} ranks need; use {groups * size} or {groups * (size + 1)} microbatches"
        )
    return size


def chunk_turns(shape: Shape, rank: int, group: int) -> tuple[IntArray, IntArray]:
    """All forwards of a rank, and all backwards (as B): kinds and microbatches, twice shape (2, n)."""
    stages = shape.stages_of(rank)
    return (
        _in_groups(stages, Op.F, shape.num_microbatches, group),
        _in_groups(stages[::-1], Op.B, shape.num_microbatches, group),
    )


def _in_groups(stages: tuple[int, ...], op: Op, num_microbatches: int, group: int) -> IntArray:
    """The stages in turn, each with one group of microbatches; then the next group. Kinds and microbatches: (2, n)."""
    kinds = np.array([kind_of(stage, op) for stage in stages])
    parts = []
    for start in range(0, num_microbatches, group):
        numbers = np.arange(start, min(start + group, num_microbatches))
        parts.append(np.stack([np.repeat(kinds, len(numbers)), np.tile(numbers, len(kinds))]))
    return np.concatenate(parts, axis=1)
