"""PyTorch profiler (Kineto) Chrome traces, one file per rank, reduced to the pipeline's actions.

Actions are what `record_function` names as one: `PP:2F0` (PyTorch's pipelining schedules) or `2F0`; `F 0 stage 2`;
and `Forward 0`, `Backward 0` of PyTorch's first schedules, whose stage is the rank. `Optimizer.step#...`, which the
profiler writes by itself, is the optimizer step, and `ProfilerStep#3` says the iteration. Times are those on the GPU
(category gpu_user_annotation) where the profile has them, else those of the host (user_annotation).
"""

import gzip
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hops.decode.decode import Where, decode_json
from hops.decode.quantities import Index, Instant
from hops.errors import TraceError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import EventFilter, Events
from hops.metrics.summary import RunFacts
from hops.program.action import Op

_HOST, _GPU = "user_annotation", "gpu_user_annotation"
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
_COMPACT = re.compile(r"(?:PP:)?(\d{1,9})([FBIW])(\d{1,9})")
_SPOKEN = re.compile(r"([FBIW]) ?(\d{1,9}) stage (\d{1,9})")
_FIRST_SCHEDULES = re.compile(r"(Forward|Backward) (\d{1,9})")
_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)")
_LATEST_US = 4e15  # in the year 2096 of the epoch; in nanoseconds it fits 64 bits
_FIX = "record it again"
_NAMES = "PP:2F0, 2F0, 'F 0 stage 2', 'Forward 0'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """An annotation: what ran (`stage` -1: the rank's own), when in ns, where in `traceEvents`, on which thread."""

    stage: int
    op: Op
    microbatch: int
    start_ns: int
    end_ns: int
    place: int
    thread: str


# The names of these fields are Kineto's own.
@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoRank:
    """Who wrote a profile."""

    rank: Index | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoDevice:
    """A device that a profile saw."""

    name: str = "unknown device"


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoFile:
    """A profile, as far as it is read; events are looked at one by one."""

    traceEvents: tuple[Any, ...]  # noqa: N815
    distributedInfo: KinetoRank | None = None  # noqa: N815
    deviceProperties: tuple[KinetoDevice, ...] = ()  # noqa: N815
    hostname: str | None = None
    baseTimeNanoseconds: Instant | None = None  # noqa: N815


@IMPORTERS.register("kineto")
class Kineto(Importer):
    """A profile `*.json` or `*.json.gz`, or a folder with one per rank."""

    def recognises(self, path: Path) -> bool:
        return bool(_files(path))

    def read(self, path: Path, *, lenient: bool = False) -> Imported:
        """Lenient: iterations that are incomplete (the profiler started or ended in them) are dropped and counted."""
        files = _files(path)
        if not files:
            raise TraceError(f"{path}: no profile in it, expected a *.json or *.json.gz per rank")
        profiles = [_load(file) for file in files]
        ranks = [_rank(file, profile, place) for place, (file, profile) in enumerate(zip(files, profiles, strict=True))]
        if sorted(ranks) != list(range(len(ranks))):
            raise TraceError(
                f"{path}: got profiles of ranks {sorted(ranks)}, expected one each of 0 to {len(ranks) - 1}"
            )
        events = Events(files, mark="{file}: traceEvents[{place}]")
        for number, (rank, profile) in enumerate(zip(ranks, profiles, strict=True)):
            for iteration, span in _spans(files[number], profile):
                stage = rank if span.stage < 0 else span.stage
                events.add(
                    iteration, rank, stage, span.op, span.microbatch, number, span.place, span.start_ns, span.end_ns
                )
        sieve = EventFilter(lenient=lenient)
        by_rank = [profiles[ranks.index(rank)] for rank in range(len(ranks))]
        origin = Origin(devices=tuple(map(_device, by_rank)), hosts=tuple(_hosts(by_rank)))
        trace, _ = assemble(events, origin, sieve)
        return Imported(trace=trace, facts=RunFacts(), dropped=sieve.dropped)


def _files(path: Path) -> list[Path]:
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and file.name.endswith((".json", ".json.gz"))]


def _load(file: Path) -> KinetoFile:
    """The profile as a whole: Kineto writes one JSON document, and profiles are short."""
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        text = raw.decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise TraceError(f"{file}: cannot be read as a profile: {error}; expected whole JSON: {_FIX}") from error
    try:
        return decode_json(KinetoFile, text, Where(name=str(file), error=TraceError, strict=False))
    except TraceError as error:
        raise TraceError(
            f"{error}\nexpected what torch.profiler's export_chrome_trace writes, whole JSON: {_FIX}"
        ) from None


def _rank(file: Path, profile: KinetoFile, place: int) -> int:
    """From the profile, else from the file's name, else from the order of the files."""
    if profile.distributedInfo is not None and profile.distributedInfo.rank is not None:
        return profile.distributedInfo.rank
    match = _RANK_IN_NAME.search(file.name)
    return int(match[1]) if match else place


def _device(profile: KinetoFile) -> str:
    return profile.deviceProperties[0].name if profile.deviceProperties else "unknown device"


def _hosts(profiles: Sequence[KinetoFile]) -> Iterator[str]:
    for rank, profile in enumerate(profiles):
        yield f"host of rank {rank}" if profile.hostname is None else profile.hostname


def _spans(file: Path, profile: KinetoFile) -> Iterator[tuple[int, _Span]]:
    """Every action with its iteration: times on the GPU where it has some, iterations as the host launched them."""
    base_ns = profile.baseTimeNanoseconds or 0
    steps: list[tuple[int, int, int]] = []
    found: dict[str, list[_Span]] = {_HOST: [], _GPU: []}
    for place, event in enumerate(profile.traceEvents):
        if not isinstance(event, dict) or event.get("ph") != "X" or event.get("cat") not in found:
            continue
        start, end = _interval(file, place, event, base_ns)
        if match := _STEP.fullmatch(str(event.get("name"))):
            steps += [(start, end, int(match[1]))] if event["cat"] == _HOST else []
        elif what := _action(str(event.get("name"))):
            thread = f"{event.get('pid')}/{event.get('tid')}"
            stage, op, microbatch = what
            found[event["cat"]].append(
                _Span(stage=stage, op=op, microbatch=microbatch, start_ns=start, end_ns=end, place=place, thread=thread)
            )
    if not found[_HOST]:
        raise TraceError(f"{file}: no pipeline action in it, expected record_function annotations such as {_NAMES}")
    return _numbered(file, found[_HOST], _of_main_thread(found[_GPU]), sorted(steps))


def _interval(file: Path, place: int, event: Mapping[str, Any], base_ns: int) -> tuple[int, int]:
    """Start and end in ns. Kineto counts microseconds."""
    times = event.get("ts"), event.get("dur")
    if not all(map(_is_time, times)):
        raise TraceError(f"{file}: traceEvents[{place}]: ts and dur: got {times}, expected microseconds >= 0")
    start, duration = (round(Decimal(str(value)) * 1000) for value in times)
    return base_ns + start, base_ns + start + duration


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _LATEST_US


def _action(name: str) -> tuple[int, Op, int] | None:
    """Stage (-1: the rank's), op and microbatch (-1: none) of an annotation; None if it is no action."""
    if match := _COMPACT.fullmatch(name):
        return int(match[1]), Op[match[2]], int(match[3])
    if match := _SPOKEN.fullmatch(name):
        return int(match[3]), Op[match[1]], int(match[2])
    if match := _FIRST_SCHEDULES.fullmatch(name):
        return -1, {"Forward": Op.F, "Backward": Op.B}[match[1]], int(match[2])
    return (-1, Op.OPTIMIZER, -1) if name.startswith("Optimizer.step#") else None


def _of_main_thread(spans: Sequence[_Span]) -> list[_Span]:
    """The spans on the stream that has most: an annotation shows on every stream that it put work on."""
    if not spans:
        return []
    main, _ = Counter(span.thread for span in spans).most_common(1)[0]
    return [span for span in spans if span.thread == main]


def _numbered(
    file: Path, host: Sequence[_Span], gpu: Sequence[_Span], steps: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[int, _Span]]:
    """Pair the n-th annotation of an action on the host with its n-th on the GPU, and give both the iteration."""
    launched, ran = _by_action(host), _by_action(gpu)
    for key, spans in launched.items():
        timed = ran[key] if gpu else spans
        if len(timed) != len(spans):
            raise TraceError(
                f"{file}: {key[1].name} of microbatch {key[2]} is annotated {len(spans)} times on the host and "
                f"{len(timed)} times on the GPU, expected as often: record whole iterations with a profiler schedule"
            )
        for nth, (span, times) in enumerate(zip(spans, timed, strict=True)):
            iteration = _step(span, steps) if steps else nth
            if iteration is not None:
                yield iteration, times


def _by_action(spans: Sequence[_Span]) -> dict[tuple[int, Op, int], list[_Span]]:
    groups: dict[tuple[int, Op, int], list[_Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: span.start_ns):
        groups[span.stage, span.op, span.microbatch].append(span)
    return groups


def _step(span: _Span, steps: Sequence[tuple[int, int, int]]) -> int | None:
    """The profiler step that an action was launched in; None outside all."""
    return next((number for start, end, number in steps if start <= span.start_ns < end), None)
