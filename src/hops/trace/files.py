"""Raw events in files: the name's ending says the format.

# {"format": "hops-trace/1", "source": "simulated", ...}
    iteration,rank,stream,stage,op,microbatch,peer,start_ns,end_ns,bytes
    0,0,COMPUTE,0,F,0,-1,0,1000000,0

Streams and ops are written by name. Written and read in pieces, so that memory stays small beside the trace itself.
"""

import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from hops.decode.decode import Where, decode_json
from hops.decode.quantities import Count, Index, Positive, Several
from hops.errors import TraceError, UsageError
from hops.files import atomic_bytes, atomic_path
from hops.program.action import Op
from hops.trace.lines import ROWS_AT_ONCE, lines, names, numbers
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace, TraceMeta, check_columns

FORMAT: Final = "hops-trace/1"
EXAMPLE = (
    '{"format": "hops-trace/1", "source": "measured", "num_microbatches": 8, "rank_of_stage": [0, 1], '
    '"devices": ["H100", "L4"], "hosts": ["a", "b"]}'
)


def metadata_to_json(meta: TraceMeta) -> str:
    """One line of JSON. A link of unlimited bandwidth has null; routes are [source, target, [links]]."""
    links = [
        {"name": link.name, "bandwidth_bytes_per_s": link.bandwidth if isfinite(link.bandwidth) else None}
        for link in meta.links
    ]
    plain = {
        "format": FORMAT,
        "source": meta.source,
        "schedule": meta.schedule,
        "num_microbatches": meta.num_microbatches,
        "rank_of_stage": meta.rank_of_stage,
        **({"copies": meta.copies} if meta.copies > 1 else {}),
        **({"slices": meta.slices} if meta.slices > 1 else {}),
        "devices": meta.devices,
        "hosts": meta.hosts,
        "links": links,
        "routes": [[source, target, list(crossed)] for (source, target), crossed in meta.routes.items()],
    }
    return json.dumps(plain, allow_nan=False, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLink:
    """A link as metadata has it; null is unlimited."""

    name: str
    bandwidth_bytes_per_s: Positive | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMeta:
    """Metadata as files have it; schedule, links and routes may be missing, more keys are let be."""

    format: Literal["hops-trace/1"] = FORMAT
    source: Literal["simulated", "measured"]
    schedule: str = ""
    num_microbatches: Count
    rank_of_stage: Several[Index]
    copies: Count = 1
    slices: Count = 1
    devices: Several[str]
    hosts: tuple[str, ...]
    links: tuple[WrittenLink, ...] = ()
    routes: tuple[tuple[Index, Index, tuple[Index, ...]], ...] = ()

    def __post_init__(self) -> None:
        if len(self.hosts) != len(self.devices):
            raise TraceError(f"got {len(self.hosts)} hosts for {len(self.devices)} devices, expected one each per rank")
        if max(self.rank_of_stage) >= len(self.devices):
            got = f"rank_of_stage {list(self.rank_of_stage)} names ranks beyond the {len(self.devices)} devices"
            raise TraceError(f"{got}, expected one of them for every stage")
        if len(self.rank_of_stage) % self.copies:
            raise TraceError(f"{len(self.rank_of_stage)} stages are not {self.copies} copies of as many stages each")
        if self.num_microbatches % self.slices:
            raise TraceError(
                f"{self.num_microbatches} slices are no whole number of microbatches of {self.slices} each"
            )
        if any(link >= len(self.links) for _, _, crossed in self.routes for link in crossed):
            raise TraceError(f"routes name links beyond the {len(self.links)} there are, expected indices into links")


def metadata_from_json(text: str, where: Where) -> TraceMeta:
    """Read what `metadata_to_json` writes; schedule, links and routes may be missing. Raises TraceError."""
    try:
        written = decode_json(WrittenMeta, text, replace(where, error=TraceError, strict=False))
    except TraceError as error:
        raise TraceError(f"{error}\nexpected metadata such as {EXAMPLE}") from None
    links = ((link.name, link.bandwidth_bytes_per_s) for link in written.links)
    return TraceMeta(
        source=written.source,
        schedule=written.schedule,
        num_microbatches=written.num_microbatches,
        rank_of_stage=written.rank_of_stage,
        copies=written.copies,
        slices=written.slices,
        devices=written.devices,
        hosts=written.hosts,
        links=tuple(LinkMeta(name=name, bandwidth=inf if rate is None else rate) for name, rate in links),
        routes={(source, target): crossed for source, target, crossed in written.routes},
    )


HEADER = ",".join(COLUMNS)
_LINES_AT_ONCE = 65_536
_NAMES = {"stream": Stream, "op": Op}


def write_csv(trace: Trace, path: Path) -> None:
    """Write all rows; gzipped if the name ends in `.gz`. Raises UsageError if the file cannot be written."""
    with atomic_bytes(path) as out:
        out.write(f"# {metadata_to_json(trace.meta)}\n{HEADER}\n".encode())
        for low in range(0, len(trace), ROWS_AT_ONCE):
            columns = (_texts(name, getattr(trace, name)[low : low + ROWS_AT_ONCE]) for name in COLUMNS)
            first, *others = columns
            out.write(lines(first, *(part for column in others for part in (b",", column))))


def read_csv(path: Path) -> Trace:
    """Read what `write_csv` writes. Raises TraceError with file and line."""
    path = Path(path)
    try:
        with _open(path) as lines:
            meta = _head(path, lines)
            parts = list(_parts(path, lines, meta))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    columns = {
        name: np.concatenate([np.zeros(0, dtype=COLUMNS[name]), *(part[n] for part in parts)])
        for n, name in enumerate(COLUMNS)
    }
    return Trace.from_columns(columns, meta)


def _texts(name: str, column: NDArray[np.integer]) -> NDArray[np.uint8]:
    if name in _NAMES:
        return names(column, [member.name for member in _NAMES[name]])  # members count from 0
    return numbers(column)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8")
    return path.open(encoding="utf-8")


def _head(path: Path, lines: TextIO) -> TraceMeta:
    first, second = lines.readline(), lines.readline().rstrip("\r\n")
    if not first.startswith("#"):
        raise TraceError(f"{path}:1: got {first[:40].strip()!r}, expected a comment with metadata: # {EXAMPLE}")
    meta = metadata_from_json(f" {first[1:]}", Where(name=str(path), line=1))
    if second != HEADER:
        raise TraceError(f"{path}:2: got {second[:80]!r}, expected the column names {HEADER}")
    return meta


def _parts(path: Path, lines: TextIO, meta: TraceMeta) -> Iterator[list[NDArray[np.int64]]]:
    number = 3
    while part := list(islice(lines, _LINES_AT_ONCE)):
        try:
            rows = [line.rstrip("\r\n").split(",") for line in part]
            columns = [_numbers(name, texts) for name, texts in zip(COLUMNS, zip(*rows, strict=True), strict=True)]
            check_columns(dict(zip(COLUMNS, columns, strict=True)), meta)
        except (ValueError, KeyError, OverflowError):
            for offset, line in enumerate(part):
                _find_fault(f"{path}:{number + offset}", line.rstrip("\r\n"), meta)
            raise
        yield columns
        number += len(part)


def _numbers(name: str, texts: tuple[str, ...]) -> NDArray[np.int64]:
    if name in _NAMES:
        values = {member.name: member.value for member in _NAMES[name]}
        return np.array([values[text] for text in texts], dtype=np.int64)
    return np.array([int(text) for text in texts], dtype=np.int64)


def _find_fault(where: str, line: str, meta: TraceMeta) -> None:
    """Raise TraceError if this line is the wrong one."""
    texts = line.split(",")
    if len(texts) != len(COLUMNS):
        raise TraceError(f"{where}: got {len(texts)} values ({line[:60]!r}), expected {len(COLUMNS)}: {HEADER}")
    columns = []
    for name, text in zip(COLUMNS, texts, strict=True):
        try:
            columns.append(_numbers(name, (text,)))
        except (ValueError, KeyError, OverflowError) as error:
            expected = f"one of {', '.join(member.name for member in _NAMES[name])}" if name in _NAMES else "an integer"
            raise TraceError(f"{where}: {name}: got {text!r}, expected {expected}") from error
    try:
        check_columns(dict(zip(COLUMNS, columns, strict=True)), meta)
    except ValueError as error:
        raise TraceError(f"{where}: got {line!r}; {error}") from error


_KEY = b"hops"


def write_parquet(trace: Trace, path: Path) -> None:
    """Write all rows. Raises UsageError if pyarrow is missing or the file cannot be written."""
    arrow, parquet = _pyarrow()
    table = arrow.table({name: getattr(trace, name) for name in COLUMNS})
    table = table.replace_schema_metadata({_KEY: metadata_to_json(trace.meta).encode()})
    with atomic_path(path) as temporary:
        parquet.write_table(table, temporary, compression="zstd")


def read_parquet(path: Path) -> Trace:
    """Read what `write_parquet` writes. Raises TraceError naming the file, UsageError if pyarrow is missing."""
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, arrow.ArrowInvalid) as error:
        raise TraceError(f"{path}: cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    missing = [name for name in COLUMNS if name not in table.column_names]
    if _KEY not in metadata or missing:
        lacks = f"the columns {', '.join(missing)}" if missing else "metadata 'hops' in its schema"
        raise TraceError(f"{path}: no HOPS trace: it lacks {lacks}; write it with `hops trace convert`")
    meta = metadata_from_json(metadata[_KEY].decode(), Where(name=str(path)))
    columns = {name: table[name].to_numpy() for name in COLUMNS}
    try:
        check_columns(columns, meta)
    except ValueError as error:
        raise TraceError(f"{path}: {error}") from error
    return Trace.from_columns(columns, meta)


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed: run `pip install 'hops-sim[parquet]'`, "
            "or write a name that ends in .csv or .csv.gz"
        ) from error


_FORMATS = {".csv": (write_csv, read_csv), ".csv.gz": (write_csv, read_csv), ".parquet": (write_parquet, read_parquet)}


def write_events(trace: Trace, path: Path | str) -> None:
    """Write a trace as `.csv`, `.csv.gz` or `.parquet`; `read_events` gives back an equal one.

    Raises UsageError for another ending, or if the file cannot be written.
    """
    _FORMATS[_ending(Path(path))][0](trace, Path(path))


def read_events(path: Path | str) -> Trace:
    """Read a trace from a file of raw events. Raises TraceError saying file and line, UsageError for another ending."""
    return _FORMATS[_ending(Path(path))][1](Path(path))


def _ending(path: Path) -> str:
    for ending in _FORMATS:
        if path.name.lower().endswith(ending):
            return ending
    raise UsageError(f"{path}: unknown format of raw events: expected a name that ends in {', '.join(_FORMATS)}")
