"""Reads profiles from JSON, one object in a file or one a line, and says what is wrong with them and where."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hops.errors import UsageError
from hops.program.shape import Shape
from hops.timing.stage_costs import StageCosts

PER_STAGE_MS = ("forward_ms", "input_backward_ms", "weight_backward_ms", "fused_backward_ms")
PER_STAGE_BYTES = ("activation_bytes", "kept_for_weight_bytes")
REQUIRED = ("name", "microbatches", *PER_STAGE_MS, "hop_ms", *PER_STAGE_BYTES, "memory_bytes")
OPTIONAL = ("rank_of_stage", "blocking")
MOST_BYTES = 1 << 50  # activation of a microbatch; keeps sums over a program far from overflow
LONGEST_MS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProfile:
    """A profile and what its file calls it."""

    name: str
    profile: StageCosts


def read_profiles(path: Path) -> list[NamedProfile]:
    """All profiles of a `.json` file (one object) or of any other (one object a line; empty lines are skipped).

    Raises UsageError, naming file and line, for anything that is no valid profile.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 text: byte {error.start} ({error.reason})") from error
    profiles = [profile_from_json(where, _parse(where, part)) for where, part in _parts(path, text)]
    if not profiles:
        raise UsageError(f"{path}: holds no profile; expected one JSON object, or one a line")
    return profiles


def profile_from_json(where: str, value: Any) -> NamedProfile:
    """A profile from a parsed JSON object; `where` begins every message.

    Keys: name, microbatches, forward_ms, input_backward_ms, weight_backward_ms, fused_backward_ms, hop_ms (one fewer
    than stages), activation_bytes, kept_for_weight_bytes, memory_bytes (per rank, null for no limit); optional:
    rank_of_stage (default: stage s on rank s), blocking (default false). Raises UsageError.
    """
    fields = _Fields(where, value)
    stages = len(fields.list_of("forward_ms"))
    size = fields.count("microbatches")
    ranks = tuple(fields.ranks(stages)) if "rank_of_stage" in fields.value else tuple(range(stages))
    shape = Shape(num_microbatches=size, rank_of_stage=ranks)
    forward, into, weight, fused = (tuple(fields.times(key, stages)) for key in PER_STAGE_MS)
    activation, kept = (tuple(fields.sizes(key, stages)) for key in PER_STAGE_BYTES)
    for stage, (whole, part) in enumerate(zip(activation, kept, strict=True)):
        if part > whole:
            fields.fail(f"kept_for_weight_bytes[{stage}]", part, f"at most activation_bytes[{stage}], {whole}")
    profile = StageCosts(
        shape=shape,
        forward_s=forward,
        input_backward_s=into,
        weight_backward_s=weight,
        fused_backward_s=fused,
        hop_s=tuple(fields.times("hop_ms", stages - 1)),
        blocking=fields.flag("blocking"),
        activation_bytes=activation,
        kept_for_weight_bytes=kept,
        budget_bytes=tuple(fields.limits(shape, activation)),
    )
    return NamedProfile(name=fields.text("name"), profile=profile)


def _parts(path: Path, text: str) -> Iterator[tuple[str, str]]:
    if path.suffix == ".json":
        yield str(path), text
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f"{path}:{number}", line


def _parse(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.colno}" if error.lineno == 1 else f"{where}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: not JSON: {error.msg}; expected one profile object") from error


class _Fields:
    """Checked access to the keys of one object."""

    def __init__(self, where: str, value: Any) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise UsageError(f"{where}: a profile is a JSON object, got {_short(value)}")
        self.value: dict[str, Any] = value
        known = (*REQUIRED, *OPTIONAL)
        for key in value:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                raise UsageError(f"{where}: unknown key {key!r}: {hint}")
        missing = [key for key in REQUIRED if key not in value]
        if missing:
            raise UsageError(f"{where}: missing {', '.join(missing)}")

    def fail(self, path: str, got: Any, expected: str) -> None:
        raise UsageError(f"{self.where}: {path}: got {_short(got)}, expected {expected}")

    def text(self, key: str) -> str:
        value = self.value[key]
        if not isinstance(value, str):
            self.fail(key, value, "a text")
        return str(value)

    def flag(self, key: str) -> bool:
        if key not in self.value:
            return False
        value = self.value[key]
        if not isinstance(value, bool):
            self.fail(key, value, "true or false")
        return bool(value)

    def count(self, key: str) -> int:
        value = self.value[key]
        if not _is_integer(value) or not 1 <= value <= 1 << 20:
            self.fail(key, value, "a whole number of microbatches, 1 to 1048576")
        return int(value)

    def list_of(self, key: str, length: int | None = None) -> list[Any]:
        values = self.value[key]
        if not isinstance(values, list) or (length is None and not values):
            self.fail(key, values, "a list with one value per stage")
        if length is not None and len(values) != length:
            self.fail(key, f"{len(values)} values", f"{length}, since forward_ms has {len(self.value['forward_ms'])}")
        return list(values)

    def times(self, key: str, length: int) -> Iterator[float]:
        """Seconds from milliseconds."""
        for index, value in enumerate(self.list_of(key, length)):
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or not 0 <= value <= LONGEST_MS:
                self.fail(f"{key}[{index}]", value, "milliseconds, 0 or more")
            yield float(value) / 1e3

    def sizes(self, key: str, length: int) -> Iterator[int]:
        for index, value in enumerate(self.list_of(key, length)):
            if not _is_integer(value) or not 0 <= value <= MOST_BYTES:
                self.fail(f"{key}[{index}]", value, f"whole bytes, 0 to {MOST_BYTES}")
            yield int(value)

    def ranks(self, stages: int) -> Iterator[int]:
        values = self.list_of("rank_of_stage", stages)
        for index, value in enumerate(values):
            if not _is_integer(value) or not 0 <= value < stages:
                self.fail(f"rank_of_stage[{index}]", value, f"a rank, 0 to {stages - 1}")
        if set(values) != set(range(max(values) + 1)):
            self.fail("rank_of_stage", values, "every rank from 0 to the highest to have a stage")
        yield from map(int, values)

    def limits(self, shape: Shape, activation: tuple[int, ...]) -> Iterator[int | None]:
        values = self.list_of("memory_bytes")
        if len(values) != shape.num_ranks:
            self.fail("memory_bytes", f"{len(values)} values", f"{shape.num_ranks}, one per rank")
        for rank, value in enumerate(values):
            path = f"memory_bytes[{rank}]"
            if value is None:
                yield None
                continue
            if not _is_integer(value) or value < 0:
                self.fail(path, value, "whole bytes, or null for no limit")
            needed = sum(activation[stage] for stage in shape.stages_of(rank))
            if value < needed:
                self.fail(path, value, f"at least the {needed} bytes that one microbatch takes")
            yield int(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
