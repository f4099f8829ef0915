"""One line of a Megatron-LM trace: every field checked before anything else sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hops.program.action import Op

_OPS = {"FORWARD": Op.F, "BACKWARD": Op.B, "OPTIMIZER": Op.OPTIMIZER}
_COUNTS = ("rank", "stage", "iteration", "microbatch")
_TIMES = ("start_wall_ns", "end_wall_ns")
_TEXTS = ("event_type", "phase", "device_id", "hostname")
_LARGEST = 2**31 - 1
_DURATION_TOLERANCE_MS = 1e-3


class Event(NamedTuple):
    """What one line says; `target` is the receiving device of a transfer, "" for a computation."""

    stage: int
    iteration: int
    microbatch: int
    op: Op
    start_ns: int
    end_ns: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCoordinates:
    """What all lines of one file must agree on."""

    rank: int
    device: str
    host: str


class BadLineError(Exception):
    """A line is wrong. `reason`: the few words it is counted under."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_object(text: str) -> Mapping[str, Any]:
    """The JSON object of a line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # brackets without end
        found = None
    if not isinstance(found, dict):
        shown = repr(text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}")
        cut = "" if text.rstrip().endswith("}") else ": the line is cut off"
        raise BadLineError("truncated or malformed line", f"got {shown}{cut}, expected one JSON object a line")
    return found


def read_place(line: Mapping[str, Any]) -> RankCoordinates:
    """Rank, device and host as a line has them."""
    _check_present(line)
    return RankCoordinates(rank=line["rank"], device=line["device_id"], host=line["hostname"])


def read_event(line: Mapping[str, Any], place: RankCoordinates) -> Event:
    """Check every field of a line of the rank's file. Raises BadLineError."""
    _check_present(line)
    for name, expected in (("rank", place.rank), ("device_id", place.device), ("hostname", place.host)):
        if line[name] != expected:
            raise BadLineError(
                f"wrong {name}", f"{name}: got {line[name]!r}, expected {expected!r} as in all lines of this rank"
            )
    start, end = line["start_wall_ns"], line["end_wall_ns"]
    if end < start:
        raise BadLineError(
            "end before start", f"end_wall_ns: got {end}, {start - end} ns before start_wall_ns {start}, expected later"
        )
    _check_duration(line, (end - start) / 1e6)
    phase, kind = line["phase"], line["event_type"]
    if phase not in _OPS:
        raise BadLineError("unknown phase", f"phase: got {phase!r}, expected one of {', '.join(_OPS)}")
    if kind not in ("compute", "transfer"):
        raise BadLineError("unknown event type", f"event_type: got {kind!r}, expected compute or transfer")
    target = _target(line) if kind == "transfer" else ""
    return Event(line["stage"], line["iteration"], line["microbatch"], _OPS[phase], start, end, target)


def _check_present(line: Mapping[str, Any]) -> None:
    for name in (*_COUNTS, *_TIMES, *_TEXTS):
        if name not in line:
            raise BadLineError("missing field", f"{name}: missing, expected it on every line")
    for name in _COUNTS:
        value = line[name]
        if type(value) is not int or not 0 <= value <= _LARGEST:
            raise BadLineError(f"bad {name}", f"{name}: got {value!r}, expected a whole number from 0 to {_LARGEST}")
    for name in _TIMES:
        value = line[name]
        if type(value) is not int or not 0 < value < 2**63:
            raise BadLineError(f"bad {name}", f"{name}: got {value!r}, expected nanoseconds since 1970, a whole number")
    for name in _TEXTS:
        if not isinstance(line[name], str) or not line[name]:
            raise BadLineError(f"bad {name}", f"{name}: got {line[name]!r}, expected a text")


def _check_duration(line: Mapping[str, Any], expected_ms: float) -> None:
    value = line.get("duration_ms")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not abs(value - expected_ms) <= _DURATION_TOLERANCE_MS:  # type: ignore[operator]
        raise BadLineError(
            "duration disagrees",
            f"duration_ms: got {value!r}, expected {expected_ms:.6f}, which is end_wall_ns - start_wall_ns",
        )


def _target(line: Mapping[str, Any]) -> str:
    if line["phase"] == "OPTIMIZER":
        raise BadLineError("unknown phase", "phase: got 'OPTIMIZER' of a transfer, expected FORWARD or BACKWARD")
    if line.get("src_device") != line["device_id"]:
        raise BadLineError(
            "wrong src_device",
            f"src_device: got {line.get('src_device')!r}, expected the line's own device_id {line['device_id']!r}",
        )
    target = line.get("dst_device")
    if not isinstance(target, str) or not target:
        raise BadLineError("wrong dst_device", f"dst_device: got {target!r}, expected a device's name")
    return target
