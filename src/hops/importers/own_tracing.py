"""Runs that `hops.tracing` recorded: a file `rank<r>.hops.jsonl` per rank, whose lines hops.tracing.recorder describes.

Read are the actions and the optimizer step. Postings and collectives are checked and counted; what a message took on
the wire cannot be told from the two ends' own clocks alone, and is read by `hops import trace`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hops.errors import TraceError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import EventFilter, Events, numbered_lines, plain_name
from hops.metrics.summary import RunFacts
from hops.program.action import Op

_FILE = re.compile(r"rank(\d{1,6})\.hops\.jsonl")
_OPS = {"F": Op.F, "B": Op.B, "I": Op.I, "W": Op.W, "OPTIMIZER": Op.OPTIMIZER}
POSTINGS = ("SEND_F", "RECV_F", "SEND_B", "RECV_B")
_OTHERS = (*POSTINGS, "GRAD_REDUCE", "TIED_REDUCE", "COLLECTIVE", "HOST")
_HEADER = '{"hops_trace": 1, "rank": 0, "ranks": 4, "host": "n1", "device": "l4", "schedule": "", "clock": "unix"}'
_KEYS = {"hops_trace": int, "rank": int, "ranks": int, "host": str, "device": str, "schedule": str, "clock": str}
_LINE = '[0, "F", 0, 3, 1000, 2000]: iteration, what, stage, microbatch, start and end in ns'
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRank:
    """The first line of a file."""

    rank: int
    ranks: int
    host: str
    device: str
    schedule: str
    clock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLine:
    """Another line: one interval, in ns of the host's clock. `stage` and `microbatch` are -1 where there is none."""

    number: int
    iteration: int
    what: str
    stage: int
    microbatch: int
    start_ns: int
    end_ns: int
    pair: bool


@IMPORTERS.register("hops_tracing")
class OwnTracing(Importer):
    """A folder of them, or one file of a run with one rank."""

    def recognises(self, path: Path) -> bool:
        return bool(traced_files(path))

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        files = traced_files(path)
        headers = [header_of(file) for file in files]
        _check_ranks(path, files, headers)
        sieve = EventFilter(lenient=lenient)
        events = Events(files)
        for place, (file, header) in enumerate(zip(files, headers, strict=True)):
            for line in traced_lines(file, sieve):
                if line.what in _OPS:
                    events.add(
                        line.iteration, header.rank, max(line.stage, 0), _OPS[line.what], line.microbatch, place,
                        line.number, line.start_ns, line.end_ns, pair=line.pair,
                    )  # fmt: skip
        if not len(events):
            raise TraceError(f"{path}: no action in it, expected lines such as {_LINE}")
        origin = Origin(
            schedule=headers[0].schedule,
            devices=tuple(header.device for header in headers),
            hosts=tuple(header.host for header in headers),
        )
        found = assemble(events, origin, sieve, align_clocks=align_clocks)
        return Imported(trace=found.trace, facts=RunFacts(), dropped=sieve.dropped, notes=found.notes)


def traced_files(path: Path) -> list[Path]:
    """The files of a run in rank order; none if there are none."""
    found = list(path.iterdir()) if path.is_dir() else [path]
    named = [(int(match[1]), file) for file in found if (match := _FILE.fullmatch(plain_name(file)))]
    return [file for _, file in sorted(named)]


def header_of(file: Path) -> TracedRank:
    """Read the first line. Raises TraceError."""
    _, text = next(numbered_lines(file), (1, ""))
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or any(not isinstance(value.get(key), kind) for key, kind in _KEYS.items()):
        raise TraceError(f"{file}:1: got {text[:60]!r}, expected such as {_HEADER}")
    if value["hops_trace"] != 1:
        raise TraceError(f"{file}:1: got version {value['hops_trace']} of the format, expected 1: update HOPS")
    return TracedRank(**{key: value[key] for key in _KEYS if key != "hops_trace"})


def traced_lines(file: Path, sieve: EventFilter) -> Iterator[TracedLine]:
    """All lines but the first. Raises TraceError saying file and line; a lenient sieve drops what is wrong."""
    for number, text in numbered_lines(file):
        if number == 1 or not text.strip():
            continue
        try:
            yield _line(number, json.loads(text))
        except ValueError:
            sieve.drop("bad line", f"{file}:{number}: got {text[:60]!r}, expected such as {_LINE}")


def _line(number: int, value: object) -> TracedLine:
    if not isinstance(value, list) or len(value) not in (6, 7) or value[1] not in (*_OPS, *_OTHERS):
        raise ValueError
    iteration, what, stage, microbatch, start, end = value[:6]
    if value[6:] not in ([], [1]):
        raise ValueError
    if any(type(each) is not int for each in (iteration, stage, microbatch, start, end)):
        raise ValueError
    needed = 0 if what in {"F", "B", "I", "W"} else -1
    if not (0 <= iteration <= _LARGEST and needed <= min(stage, microbatch) and max(stage, microbatch) <= _LARGEST):
        raise ValueError
    if not 0 <= start <= end < 2**63:
        raise ValueError
    return TracedLine(
        number=number,
        iteration=iteration,
        what=what,
        stage=stage,
        microbatch=microbatch,
        start_ns=start,
        end_ns=end,
        pair=len(value) == 7,
    )


def _check_ranks(path: Path, files: Sequence[Path], headers: Sequence[TracedRank]) -> None:
    named: Mapping[int, Path] = {header.rank: file for file, header in zip(files, headers, strict=True)}
    ranks = headers[0].ranks
    missing = [rank for rank in range(ranks) if rank not in named]
    if missing or len(files) != ranks:
        what = f"no file of rank {missing[0]}" if missing else f"{len(files)} files"
        raise TraceError(f"{path}: {what}, expected rank0.hops.jsonl to rank{ranks - 1}.hops.jsonl of one run")
