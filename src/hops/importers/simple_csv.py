"""Anybody's runs as a small CSV: one line per action, with a header that says the unit of its times.

    iteration,stage,op,microbatch,start_us,end_us
    0,0,F,0,1000.5,2000

Needed are iteration, stage, op (F, B, I, W or OPTIMIZER), microbatch (empty for OPTIMIZER), and start and end in one
unit (_ns, _us, _ms or _s) of one clock. Optional are rank (else: the stage), device and host.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from hops.errors import TraceError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import IMPORTERS, Imported, Importer
from hops.importers.events import EventFilter, Events, first_line, numbered_lines, plain_name
from hops.metrics.summary import RunFacts
from hops.program.action import Op

HEADER = "iteration,stage,op,microbatch,start_us,end_us"
_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(start|end)_(ns|us|ms|s)")
_NEEDED = ("iteration", "stage", "op", "microbatch", "start", "end")
_OPTIONAL = ("rank", "device", "host")
_OPS = {op.name: op for op in (Op.F, Op.B, Op.I, Op.W, Op.OPTIMIZER)}
_LARGEST = 2**31 - 1


@IMPORTERS.register("csv")
class SimpleCsv(Importer):
    """A file of the form above, `.gz` and `.zst`, too."""

    def recognises(self, path: Path) -> bool:
        return plain_name(path).lower().endswith(".csv") and "iteration" in first_line(path).split(",")

    def read(self, path: Path, *, lenient: bool = False, align_clocks: bool = False) -> Imported:
        sieve = EventFilter(lenient=lenient)
        lines = numbered_lines(path)
        columns, unit_ns = _columns(path, next(lines, (1, ""))[1])
        events = Events([path])
        names: dict[int, tuple[str, str]] = {}
        for number, text in lines:
            if not text.strip():
                continue
            try:
                _add(events, names, number, _values(columns, text), unit_ns)
            except ValueError as error:
                sieve.drop("bad line", f"{path}:{number}: {error}")
        if not len(events):
            raise TraceError(f"{path}: no event in it, expected lines under the header {HEADER}")
        found = assemble(events, _origin(path, names), sieve, align_clocks=align_clocks)
        return Imported(trace=found.trace, facts=RunFacts(), dropped=sieve.dropped, notes=found.notes)


def _columns(path: Path, header: str) -> tuple[Sequence[str], int]:
    """Names of the columns, times without their unit; and the unit in nanoseconds."""
    found = [name.strip() for name in header.split(",")]
    times = {name: match for name in found if (match := _TIME.fullmatch(name))}
    units = {match[2] for match in times.values()}
    columns = [times[name][1] if name in times else name for name in found]
    missing = [name for name in _NEEDED if name not in columns]
    unknown = [name for name in columns if name not in _NEEDED + _OPTIONAL]
    if missing or unknown or len(units) != 1 or len(set(columns)) < len(columns):
        raise TraceError(
            f"{path}:1: got the columns {header[:100]!r}, expected such as {HEADER}, times in one unit of "
            f"{', '.join(_NS)}, and if you like {', '.join(_OPTIONAL)}"
        )
    return columns, _NS[units.pop()]


def _values(columns: Sequence[str], text: str) -> Mapping[str, str]:
    values = [value.strip() for value in next(csv.reader([text]))]
    if len(values) != len(columns):
        raise ValueError(f"got {len(values)} values ({text[:60]!r}), expected {len(columns)}: {','.join(columns)}")
    return dict(zip(columns, values, strict=True))


def _add(
    events: Events, names: dict[int, tuple[str, str]], number: int, values: Mapping[str, str], unit_ns: int
) -> None:
    if values["op"] not in _OPS:
        raise ValueError(f"op: got {values['op']!r}, expected one of {', '.join(_OPS)}")
    op = _OPS[values["op"]]
    stage = _count(values, "stage")
    rank = _count(values, "rank") if "rank" in values else stage
    microbatch = _count(values, "microbatch") if op.is_action else -1
    start, end = (_nanoseconds(values, name, unit_ns) for name in ("start", "end"))
    if end < start:
        raise ValueError(f"end: got {values['end']}, before start {values['start']}, expected later")
    name = (_text(values, "device"), _text(values, "host"))
    if names.setdefault(rank, name) != name:
        raise ValueError(f"device and host of rank {rank}: got {name}, expected {names[rank]} as on the lines before")
    events.add(_count(values, "iteration"), rank, stage, op, microbatch, 0, number, start, end)


def _text(values: Mapping[str, str], name: str) -> str:
    return values[name] if name in values else ""  # noqa: SIM401 (an absent column is an empty one)


def _count(values: Mapping[str, str], name: str) -> int:
    text = values[name]
    if not text.isascii() or not text.isdigit() or int(text) > _LARGEST:
        raise ValueError(f"{name}: got {text!r}, expected a whole number from 0 to {_LARGEST}")
    return int(text)


def _nanoseconds(values: Mapping[str, str], name: str, unit_ns: int) -> int:
    try:
        exact = Decimal(values[name]) * unit_ns
    except InvalidOperation:
        exact = Decimal("NaN")
    if not exact.is_finite() or not 0 <= exact < 2**63:
        raise ValueError(f"{name}: got {values[name]!r}, expected a number >= 0")
    return round(exact)


def _origin(path: Path, names: Mapping[int, tuple[str, str]]) -> Origin:
    missing = next(rank for rank in range(len(names) + 1) if rank not in names)
    if missing < len(names):
        raise TraceError(f"{path}: no line of rank {missing}, expected ranks from 0 to {max(names)} without a gap")
    ranks = range(len(names))
    return Origin(
        devices=tuple(names[rank][0] or f"rank {rank}" for rank in ranks),
        hosts=tuple(names[rank][1] or f"host {rank}" for rank in ranks),
    )
