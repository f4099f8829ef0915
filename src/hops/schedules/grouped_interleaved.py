"""Grouped interleaved 1F1B of PipeOffload: how early a rank returns to a chunk follows from how many it may hold.

Every action has a slot, and each rank works through its slots (arXiv 2503.01328; sail-sg's `group_interleaved_1f1b`).
"""

from collections.abc import Iterator, Mapping
from itertools import count, takewhile
from math import ceil, gcd
from typing import Any

import numpy as np

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.action import Op
from hops.program.builders import at_least, counted, kind_of
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler, chunks_of
from hops.timing.stage_costs import StageCosts

TURN = 3  # slots in which a rank does F, I and W of one stage


@SCHEDULERS.register("grouped_interleaved")
class GroupedInterleaved(StaticScheduler):
    """Interleaved in small groups, every W right after its I: smaller groups hold less and wait more.

    Args:
        chunks: stages per rank, at least 2.
        microbatch_group_size: microbatches that run through a chunk in a row, at most p; the default (None) is p.
    """

    needs = "groups of at most p"

    def __init__(self, *, chunks: int = 2, microbatch_group_size: int | None = None) -> None:
        self.chunks = at_least("chunks", chunks, 2)
        self.group = (
            None if microbatch_group_size is None else at_least("microbatch_group_size", microbatch_group_size, 1)
        )

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:
        if chunks_of(placement) >= 2:
            yield {"chunks": chunks_of(placement)}
            sizes = takewhile(lambda size: size < placement.num_ranks, (1 << power for power in count()))
            yield from ({"chunks": chunks_of(placement), "microbatch_group_size": size} for size in sizes)

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError for groups larger than the ranks."""
        if self.group is not None and self.group > num_ranks:
            raise UsageError(
                f"grouped_interleaved: microbatch_group_size must be at most {num_ranks} (ranks), but got "
                f"{self.group}; larger groups are for interleaved_1f1b"
            )
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        group = shape.num_ranks if self.group is None else self.group
        starts = _starts(shape.num_microbatches, self.chunks, group, _groups_between(profile, group))
        return counted(shape, [_order(shape, rank, starts) for rank in range(shape.num_ranks)])


def _groups_between(profile: StageCosts, group: int) -> int:
    """Groups that run through a chunk before the next chunk's turn, so that no stage waits for its first input.

    As many microbatches as keep the slowest stage busy while one passes the ranks, and at least half of the ranks.
    """
    ranks = profile.shape.num_ranks
    turn = max(
        f + i + w
        for f, i, w in zip(profile.forward_s, profile.input_backward_s, profile.weight_backward_s, strict=True)
    )
    passing = max(
        sum(seconds[start : start + ranks])
        for seconds in (profile.forward_s, profile.input_backward_s)
        for start in range(0, profile.shape.num_stages, ranks)
    )
    needed = ceil(passing / turn) if turn > 0 else 0
    return ceil(min(max(ceil(ranks / 2), needed), profile.shape.num_microbatches + ranks) / group)


def _starts(size: int, chunks: int, group: int, between: int) -> IntArray:
    """The slot of every F of the first rank, shape (chunks, size); backwards take the chunks from the last."""
    number, member = np.divmod(np.arange(size), group)
    chunk = np.arange(chunks)
    # Where chunks and groups between have a common divisor, two actions would meet in a slot: one group later.
    later = chunk // (chunks // gcd(chunks, between))
    shift = TURN * group * (between * chunk + later)
    starts: IntArray = shift[:, None] + TURN * (member + group * chunks * number)
    return starts


def _order(shape: Shape, rank: int, starts: IntArray) -> IntArray:
    """A rank's kinds by their slots."""
    stages = shape.stages_of(rank)
    below = shape.num_ranks - 1 - rank
    turned = starts[-1, 0] + rank + TURN * below + 1  # the slot of the first I of the last chunk
    slots, kinds = [], []
    for chunk, stage in enumerate(stages):
        backward = turned + starts[len(stages) - 1 - chunk]
        slots += [starts[chunk] + rank, backward, backward + 1]
        kinds += [kind_of(stage, op) for op in (Op.F, Op.I, Op.W)]
    return np.repeat(kinds, starts.shape[1])[np.argsort(np.concatenate(slots))]
