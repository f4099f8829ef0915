"""Profiles in JSON files, one object in a file or one a line: what a search is given without a spec."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict

from hops.decode.decode import Where, decode, read, read_lines
from hops.decode.quantities import Several
from hops.errors import UsageError
from hops.program.shape import Shape
from hops.timing.stage_costs import StageCosts

Milliseconds = Annotated[float, Strict(), Field(ge=0, le=1e9)]
AnyBytes = Annotated[int, Strict(), Field(ge=0)]  # files write a huge number where there is no limit
WholeBytes = Annotated[int, Strict(), Field(ge=0, le=1 << 50)]  # keeps sums over a program far from overflow
Microbatches = Annotated[int, Strict(), Field(ge=1, le=1 << 20)]
PER_STAGE = (
    *("forward_ms", "input_backward_ms", "weight_backward_ms", "fused_backward_ms"),
    *("activation_bytes", "kept_for_weight_bytes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProfile:
    """A profile and what its file calls it."""

    name: str
    profile: StageCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenProfile:
    """A profile as a file has it: lists with a value per stage, milliseconds and bytes.

    Attributes:
        hop_ms: one fewer than stages.
        memory_bytes: per rank, null for no limit.
        rank_of_stage: null: stage s on rank s.
    """

    name: str
    microbatches: Microbatches
    forward_ms: Several[Milliseconds]
    input_backward_ms: tuple[Milliseconds, ...]
    weight_backward_ms: tuple[Milliseconds, ...]
    fused_backward_ms: tuple[Milliseconds, ...]
    hop_ms: tuple[Milliseconds, ...]
    activation_bytes: tuple[WholeBytes, ...]
    kept_for_weight_bytes: tuple[WholeBytes, ...]
    memory_bytes: tuple[AnyBytes | None, ...]
    rank_of_stage: tuple[WholeBytes, ...] | None = None
    blocking: bool = False

    def __post_init__(self) -> None:
        stages = len(self.forward_ms)
        lengths = {**dict.fromkeys(PER_STAGE, stages), "hop_ms": stages - 1}
        for key, length in lengths.items():
            _check_length(key, getattr(self, key), length, f"since forward_ms has {stages}")
        self._check_ranks(stages)
        _check_length("memory_bytes", self.memory_bytes, self.shape.num_ranks, "one per rank")
        for stage, (whole, part) in enumerate(zip(self.activation_bytes, self.kept_for_weight_bytes, strict=True)):
            if part > whole:
                raise UsageError(
                    f"kept_for_weight_bytes[{stage}]: got {part}, expected at most activation_bytes[{stage}], {whole}"
                )
        for rank, limit in enumerate(self.memory_bytes):
            needed = sum(self.activation_bytes[stage] for stage in self.shape.stages_of(rank))
            if limit is not None and limit < needed:
                raise UsageError(
                    f"memory_bytes[{rank}]: got {limit}, expected at least the {needed} bytes that one microbatch takes"
                )

    def _check_ranks(self, stages: int) -> None:
        ranks = self.shape.rank_of_stage
        _check_length("rank_of_stage", ranks, stages, f"since forward_ms has {stages}")
        gaps = [each for one, each in pairwise((-1, *sorted(ranks))) if each > one + 1]
        if gaps:
            raise UsageError(
                f"rank_of_stage: got rank {gaps[0]}, expected every rank from 0 to the highest to have a stage"
            )

    @property
    def shape(self) -> Shape:
        ranks = tuple(range(len(self.forward_ms))) if self.rank_of_stage is None else self.rank_of_stage
        return Shape(num_microbatches=self.microbatches, rank_of_stage=ranks)

    def named(self) -> NamedProfile:
        """The profile in seconds."""
        profile = StageCosts(
            shape=self.shape,
            forward_s=_seconds(self.forward_ms),
            input_backward_s=_seconds(self.input_backward_ms),
            weight_backward_s=_seconds(self.weight_backward_ms),
            fused_backward_s=_seconds(self.fused_backward_ms),
            hop_s=_seconds(self.hop_ms),
            blocking=self.blocking,
            activation_bytes=self.activation_bytes,
            kept_for_weight_bytes=self.kept_for_weight_bytes,
            budget_bytes=self.memory_bytes,
        )
        return NamedProfile(name=self.name, profile=profile)


def _check_length(key: str, values: tuple[object, ...], length: int, why: str) -> None:
    if len(values) != length:
        raise UsageError(f"{key}: got {len(values)} values, expected {length}, {why}")


def _seconds(milliseconds: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(each / 1e3 for each in milliseconds)


def read_profiles(path: Path) -> list[NamedProfile]:
    """All profiles of a `.json` file (one object) or of any other (one object a line; empty lines are skipped).

    Raises UsageError with the place of anything that is no valid profile.
    """
    expected = "profiles: one JSON object, or one a line"
    if path.suffix == ".json":
        return [read(WrittenProfile, path, expected=expected).named()]
    written = read_lines(WrittenProfile, path, expected=expected)
    if not written:
        raise UsageError(f"{path}: holds no profile; expected one JSON object, or one a line")
    return [each.named() for each in written]


def profile_from_json(where: str, value: object) -> NamedProfile:
    """A profile from a parsed JSON object; `where` begins every message. Raises UsageError."""
    return decode(WrittenProfile, value, Where(name=where)).named()
