"""A program is data: for every rank, its actions in order."""

from dataclasses import dataclass

from hops.actions import Action
from hops.errors import ProgramError


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a schedule has to arrange: microbatches per iteration, and the rank of every stage."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The actions of every rank, in the order it runs them.

    The text form has one line per rank, actions separated by spaces, and a first line that gives the shape:
    `microbatches 2, rank of stage 0 1`.
    """

    shape: Shape
    ranks: tuple[tuple[Action, ...], ...]

    def __str__(self) -> str:
        stages = " ".join(map(str, self.shape.rank_of_stage))
        head = f"microbatches {self.shape.num_microbatches}, rank of stage {stages}"
        return "\n".join([head, *(" ".join(map(str, actions)) for actions in self.ranks)])

    @classmethod
    def parse(cls, text: str) -> "Program":
        """Read what `str` prints. Raises ProgramError saying line and word."""
        raise ProgramError(f"not parsed yet: {text[:20]!r}")

    @property
    def num_actions(self) -> int:
        return sum(map(len, self.ranks))
