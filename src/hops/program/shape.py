"""What a schedule has to arrange: microbatches per iteration, and the rank of every stage."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Microbatches per iteration, and the rank that runs stage s at index s.

    Attributes:
        num_microbatches: of all copies together.
        rank_of_stage: its length is the number of stages.
        copies: how often the whole model is there. The stages of a copy follow those of the one before: with n stages
            per copy, stage n + s has the layers of stage s. A microbatch runs through one copy.
        slices: into how many slices along its sequence each microbatch is cut. What is said of microbatches then holds
            of slices, which are counted through: slice q of microbatch m is number m * slices + q, printed `m.q`.
    """

    num_microbatches: int
    rank_of_stage: tuple[int, ...]
    copies: int = 1
    slices: int = 1

    @classmethod
    def loop(cls, num_ranks: int, *, num_microbatches: int, chunks: int = 1) -> "Shape":
        """Stage s on rank s mod ranks (Megatron's interleaved placement for chunks > 1)."""
        return cls(num_microbatches=num_microbatches, rank_of_stage=tuple(range(num_ranks)) * chunks)

    @classmethod
    def v(cls, num_ranks: int, *, num_microbatches: int) -> "Shape":
        """Down the ranks and up again: rank r holds stages r and 2 ranks - 1 - r."""
        down = tuple(range(num_ranks))
        return cls(num_microbatches=num_microbatches, rank_of_stage=down + down[::-1])

    @classmethod
    def both_ways(cls, num_ranks: int, *, num_microbatches: int) -> "Shape":
        """Two copies, one down the ranks and one up: rank r holds stage r and the copy of stage ranks - 1 - r."""
        down = tuple(range(num_ranks))
        return cls(num_microbatches=num_microbatches, rank_of_stage=down + down[::-1], copies=2)

    def sliced(self, slices: int) -> "Shape":
        """The same stages; its microbatches are slices."""
        return replace(self, slices=slices)

    @property
    def whole_microbatches(self) -> int:
        """Microbatches, not slices, per iteration."""
        return self.num_microbatches // self.slices

    def name_of(self, microbatch: int) -> str:
        """`3`; of slices, `1.1`."""
        if self.slices == 1:
            return str(microbatch)
        return f"{microbatch // self.slices}.{microbatch % self.slices}"

    @property
    def num_stages(self) -> int:
        return len(self.rank_of_stage)

    @property
    def stages_per_copy(self) -> int:
        """Into how many stages the layers are divided."""
        return len(self.rank_of_stage) // self.copies

    @property
    def num_ranks(self) -> int:
        return max(self.rank_of_stage) + 1

    def stages_of(self, rank: int) -> tuple[int, ...]:
        """The stages of a rank, in the order of the model: chunk 0, chunk 1, ..."""
        return tuple(stage for stage, owner in enumerate(self.rank_of_stage) if owner == rank)

    def after(self, stage: int) -> int | None:
        """The stage that takes the stage's activations; None behind the last of its copy."""
        return stage + 1 if (stage + 1) % self.stages_per_copy else None

    def before(self, stage: int) -> int | None:
        """The stage that takes the stage's gradients; None before the first of its copy."""
        return stage - 1 if stage % self.stages_per_copy else None
