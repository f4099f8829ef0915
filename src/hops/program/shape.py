"""What a schedule has to arrange: microbatches per iteration, and the rank of every stage."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Microbatches per iteration, and the rank that runs stage s at index s."""

    num_microbatches: int
    rank_of_stage: tuple[int, ...]

    @classmethod
    def loop(cls, num_ranks: int, *, num_microbatches: int, chunks: int = 1) -> "Shape":
        """Stage s on rank s mod ranks (Megatron's interleaved placement for chunks > 1)."""
        return cls(num_microbatches=num_microbatches, rank_of_stage=tuple(range(num_ranks)) * chunks)

    @classmethod
    def v(cls, num_ranks: int, *, num_microbatches: int) -> "Shape":
        """Down the ranks and up again: rank r holds stages r and 2 ranks - 1 - r."""
        down = tuple(range(num_ranks))
        return cls(num_microbatches=num_microbatches, rank_of_stage=down + down[::-1])

    @property
    def num_stages(self) -> int:
        return len(self.rank_of_stage)

    @property
    def num_ranks(self) -> int:
        return max(self.rank_of_stage) + 1

    def stages_of(self, rank: int) -> tuple[int, ...]:
        """The stages of a rank, in the order of the model: chunk 0, chunk 1, ..."""
        return tuple(stage for stage, owner in enumerate(self.rank_of_stage) if owner == rank)
