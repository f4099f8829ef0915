"""Interleaved 1F1B: several chunks per rank, in Megatron-LM's order (arXiv 2104.04473, section 2.2).

The order, the warm-up and the limits are those of Megatron-LM core's `get_schedule_table` and
`get_pp_rank_microbatches`; the groups that are chosen where none are stated are those of PyTorch's
`ScheduleInterleaved1F1B`, which are Megatron-LM's where m is a multiple of p.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hops.arrays import IntArray
from hops.errors import UsageError
from hops.program.builders import at_least, counted, in_order
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS, StaticScheduler, chunks_of
from hops.schedules.chunk_tables import chunk_turns, equal_groups
from hops.timing.stage_costs import StageCosts


class GroupedChunks(StaticScheduler):
    """What Megatron-LM's interleaved schedules share: stage s on rank s mod p, microbatches in groups.

    Args:
        chunks: stages per rank.
        microbatch_group_size: microbatches per group; None chooses.
    """

    name: ClassVar[str]

    def __init__(self, *, chunks: int = 2, microbatch_group_size: int | None = None) -> None:
        self.chunks = at_least("chunks", chunks, 1)
        self.group = (
            None if microbatch_group_size is None else at_least("microbatch_group_size", microbatch_group_size, 1)
        )

    @classmethod
    def parameters_for(cls, placement: Shape) -> Iterator[Mapping[str, Any]]:
        if chunks_of(placement) >= 2:
            yield {"chunks": chunks_of(placement)}

    def shape(self, num_ranks: int, num_microbatches: int) -> Shape:
        """Raises UsageError where Megatron-LM does: groups from p to m, and no rest of fewer than p microbatches.

        Without stated groups, where PyTorch does: m does not divide into groups of p or a little more.
        """
        self._check_group(num_ranks, num_microbatches)
        return Shape.loop(num_ranks, num_microbatches=num_microbatches, chunks=self.chunks)

    def _check_group(self, num_ranks: int, num_microbatches: int) -> None:
        group = self._group(num_ranks, num_microbatches)
        if self.group is None or self.chunks == 1:
            return
        if not num_ranks <= group <= num_microbatches:
            raise UsageError(
                f"{self.name}: microbatch_group_size must be from {num_ranks} (ranks) to {num_microbatches} "
                f"(microbatches), but got {group}; use more microbatches or another schedule"
            )
        rest = num_microbatches % group
        if 0 < rest < num_ranks:
            raise UsageError(
                f"{self.name}: {num_microbatches} microbatches in groups of {group} leave {rest}, "
                f"expected 0 or at least {num_ranks} (ranks); use a multiple of {group} microbatches"
            )

    def _group(self, num_ranks: int, num_microbatches: int) -> int:
        if self.chunks == 1:  # then groups change nothing
            return num_microbatches
        return equal_groups(self.name, num_ranks, num_microbatches) if self.group is None else self.group

    def _tables(self, shape: Shape, rank: int) -> tuple[IntArray, IntArray]:
        return chunk_turns(shape, rank, self._group(shape.num_ranks, shape.num_microbatches))

    def _warmup(self, shape: Shape, rank: int) -> int:
        """Forwards before the first turn of a forward and a backward, in 1F1B."""
        group = self._group(shape.num_ranks, shape.num_microbatches)
        return 2 * (shape.num_ranks - 1 - rank) + (self.chunks - 1) * group


@SCHEDULERS.register("interleaved_1f1b")
class Interleaved1F1B(GroupedChunks):
    """Stage s lies on rank s mod p; a rank runs a group of microbatches through a chunk before it turns to the next.

    Args:
        chunks: stages per rank (Megatron-LM's virtual pipeline size), at least 2.
        microbatch_group_size: microbatches per group (Megatron-LM's microbatch group size per virtual pipeline stage),
            at least the number of ranks. The default (None) is the number of ranks where m is a multiple of it, else
            m // (m // p) as in PyTorch, or all m where they are fewer than the ranks.
    """

    name = "interleaved_1f1b"
    needs = "m divides into m // p groups, or is less than p; stated groups: Megatron-LM's rules"

    def __init__(self, *, chunks: int = 2, microbatch_group_size: int | None = None) -> None:
        super().__init__(chunks=at_least("chunks", chunks, 2), microbatch_group_size=microbatch_group_size)

    def build(self, profile: StageCosts) -> Program:
        return in_order(profile.shape, [self._order(profile.shape, rank) for rank in range(profile.shape.num_ranks)])

    def _order(self, shape: Shape, rank: int) -> tuple[IntArray, IntArray]:
        forwards, backwards = self._tables(shape, rank)
        total = forwards.shape[1]
        warmup = min(self._warmup(shape, rank), total)
        steady = total - warmup
        turns = np.stack([forwards[:, warmup:], backwards[:, :steady]], axis=2).reshape(2, 2 * steady)
        kinds, microbatches = np.concatenate([forwards[:, :warmup], turns, backwards[:, steady:]], axis=1)
        return kinds, microbatches


@SCHEDULERS.register("combined_1f1b")
class Combined1F1B(GroupedChunks):
    """Interleaved 1F1B in pairs: each forward runs with a backward, which hides the all-to-all of experts.

    One forward more before the first pair, so that no backward needs the forward that it is paired with. Megatron-LM's
    `combined_1f1b` (overlap_moe_expert_parallel_comm), which wants experts on several devices and 2 chunks or 1 rank.

    Args:
        chunks: stages per rank.
        microbatch_group_size: as for `interleaved_1f1b`.
    """

    name = "combined_1f1b"
    needs = "m divides into m // p groups, or is less than p; experts on several devices"

    def build(self, profile: StageCosts) -> Program:
        shape = profile.shape
        orders, opens = zip(*(self._paired(shape, rank) for rank in range(shape.num_ranks)), strict=True)
        return counted(shape, orders, opens)

    def _paired(self, shape: Shape, rank: int) -> tuple[IntArray, NDArray[np.bool_]]:
        (forwards, _), (backwards, _) = self._tables(shape, rank)
        total = len(forwards)
        warmup = min(self._warmup(shape, rank) + 1, total)
        steady = total - warmup
        pairs = np.stack([forwards[warmup:], backwards[:steady]], axis=1).reshape(2 * steady)
        opens = np.zeros(2 * total, dtype=np.bool_)
        opens[warmup : warmup + 2 * steady : 2] = True
        return np.concatenate([forwards[:warmup], pairs, backwards[steady:]]), opens
