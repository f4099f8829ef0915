"""One profile as a file: its events in nanoseconds, and what it says of its process, job and host."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hops.errors import TraceError

_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)")
_HOST_IN_NAME = re.compile(r"(.+)_\d+(?:\.\d+)*\.pt\.trace")  # of torch.profiler.tensorboard_trace_handler
HOST, GPU, OPERATOR = "user_annotation", "gpu_user_annotation", "cpu_op"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """An annotation or operator: when in ns since 1970 (or since the profiler's zero), and on which thread.

    `place`: its index in traceEvents.
    """

    name: str
    category: str
    start_ns: int
    end_ns: int
    thread: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was read.

    Attributes:
        file: it is from.
        rank: in the job; None if neither the profile nor the file's name says it.
        world_size: ranks of the job, None if unknown; groups: process groups of the job that it lists.
        device, host: names.
    """

    file: Path
    rank: int | None
    world_size: int | None
    groups: tuple[tuple[int, ...], ...]
    device: str
    host: str
    timed: tuple[Timed, ...]


def load(file: Path) -> Profile:
    """Read a profile as a whole: Kineto writes one JSON document, and profiles are short. Raises TraceError."""
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        plain = json.loads(raw)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise TraceError(
            f"{file}: cannot be read as a profile: {error}; expected whole JSON: record it again"
        ) from error
    if not isinstance(plain, dict) or not isinstance(plain.get("traceEvents"), list):
        raise TraceError(f"{file}: got no traceEvents, expected what torch.profiler's export_chrome_trace writes")
    job = _object(plain.get("distributedInfo"))
    name = _RANK_IN_NAME.search(file.name)
    rank = _count(job.get("rank"))
    return Profile(
        file=file,
        rank=int(name[1]) if rank is None and name else rank,
        world_size=_count(job.get("world_size")),
        groups=tuple(_groups(job.get("pg_config"))),
        device=_device(plain, job),
        host=_host(file, plain),
        timed=tuple(_timed(file, plain)),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _groups(config: Any) -> Iterator[tuple[int, ...]]:
    """Ranks of every group; a list that the profiler shortened is text, and is passed over."""
    for group in config if isinstance(config, list) else []:
        ranks = _object(group).get("ranks")
        if isinstance(ranks, list) and all(_count(rank) is not None for rank in ranks):
            yield tuple(sorted(ranks))


def _device(plain: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    properties = plain.get("deviceProperties")
    first = _object(properties[0]) if isinstance(properties, list) and properties else {}
    if "name" in first:
        return str(first["name"])
    return "CPU" if job.get("backend") == "gloo" else "unknown device"


def _host(file: Path, plain: Mapping[str, Any]) -> str:
    """As the profile has it, else as its default name begins; "" if neither says it."""
    for key in ("host_name", "hostname"):
        if isinstance(plain.get(key), str) and plain[key]:
            return str(plain[key])
    name = _HOST_IN_NAME.match(file.name)
    return name[1] if name and not _RANK_IN_NAME.search(name[1]) else ""


def _timed(file: Path, plain: Mapping[str, Any]) -> Iterator[Timed]:
    base_ns = plain.get("baseTimeNanoseconds") or 0
    if _count(base_ns) is None:
        raise TraceError(f"{file}: baseTimeNanoseconds: got {base_ns!r}, expected nanoseconds since 1970")
    for place, event in enumerate(plain["traceEvents"]):
        if not isinstance(event, dict) or event.get("ph") != "X" or event.get("cat") not in (HOST, GPU, OPERATOR):
            continue
        start, end = _interval(file, place, event, int(base_ns))
        yield Timed(
            name=str(event.get("name")),
            category=event["cat"],
            start_ns=start,
            end_ns=end,
            thread=f"{event.get('pid')}/{event.get('tid')}",
            place=place,
        )


def _interval(file: Path, place: int, event: Mapping[str, Any], base_ns: int) -> tuple[int, int]:
    """Start and end in ns. Kineto counts microseconds."""
    times = event.get("ts"), event.get("dur")
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 for value in times):
        raise TraceError(f"{file}: traceEvents[{place}]: ts and dur: got {times}, expected microseconds >= 0")
    exact = [Decimal(str(value)) * 1000 for value in times]
    if not all(value.is_finite() and base_ns + value < 2**62 for value in exact):
        raise TraceError(f"{file}: traceEvents[{place}]: ts and dur: got {times}, expected times before the year 2116")
    start, duration = (round(value) for value in exact)
    return base_ns + start, base_ns + start + duration
