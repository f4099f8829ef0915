"""Raw events as CSV: a comment line of metadata, a line of column names, one line per row.

    # {"format": "hops-trace/1", "source": "simulated", ...}
    iteration,rank,stream,stage,op,microbatch,peer,start_ns,end_ns,bytes
    0,0,COMPUTE,0,F,0,-1,0,1000000,0

Streams and ops are written by name. Written and read in pieces, so that memory stays small beside the trace itself.
"""

import gzip
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.errors import TraceError
from hops.files import atomic_write
from hops.trace.checks import check_columns
from hops.trace.metadata import EXAMPLE, metadata_from_json, metadata_to_json
from hops.trace.trace import COLUMNS, Stream, Trace, TraceMeta

HEADER = ",".join(COLUMNS)
_NAMES = {"stream": Stream, "op": Op}
_ROWS_AT_ONCE = 65_536


def write_csv(trace: Trace, path: Path) -> None:
    """Write all rows; gzipped if the name ends in `.gz`. Raises UsageError if the file cannot be written."""
    with atomic_write(path) as out:
        out.write(f"# {metadata_to_json(trace.meta)}\n{HEADER}\n")
        for low in range(0, len(trace), _ROWS_AT_ONCE):
            columns = [_texts(name, getattr(trace, name)[low : low + _ROWS_AT_ONCE]) for name in COLUMNS]
            out.writelines(f"{','.join(row)}\n" for row in zip(*columns, strict=True))


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


def _texts(name: str, column: NDArray[np.integer]) -> list[str]:
    if name in _NAMES:
        names = {member.value: member.name for member in _NAMES[name]}
        return [names[value] for value in column.tolist()]
    return [str(value) for value in column.tolist()]


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8")
    return path.open(encoding="utf-8")


def _head(path: Path, lines: TextIO) -> TraceMeta:
    first, second = lines.readline(), lines.readline().rstrip("\r\n")
    if not first.startswith("#"):
        raise TraceError(f"{path}:1: got {first[:40].strip()!r}, expected a comment with metadata: # {EXAMPLE}")
    meta = metadata_from_json(first[1:].strip(), where=f"{path}:1")
    if second != HEADER:
        raise TraceError(f"{path}:2: got {second[:80]!r}, expected the column names {HEADER}")
    return meta


def _parts(path: Path, lines: TextIO, meta: TraceMeta) -> Iterator[list[NDArray[np.int64]]]:
    number = 3
    while part := list(islice(lines, _ROWS_AT_ONCE)):
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
