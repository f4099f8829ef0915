"""Events of a run as they are read: columns that grow, with the place in the files where each event stands."""

import gzip
import io
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from hops.errors import TraceError, UsageError
from hops.program.action import Op

Table = Mapping[str, NDArray[np.integer]]
Mask = NDArray[np.bool_]

# About 31 bytes an event, where a line of JSON has 350.
_KINDS = {
    "iteration": "i", "rank": "i", "stage": "i", "op": "b", "microbatch": "i", "pair": "b", "file": "h", "line": "I",
    "start_ns": "q", "end_ns": "q",
}  # fmt: skip


class Events:
    """Grows event by event. Times are nanoseconds of any one clock; `microbatch` and `stage` are -1 where none."""

    def __init__(self, files: Sequence[Path], *, mark: str = "{file}:{place}") -> None:
        """`mark`: how the place of an event reads; `place` is a line unless the format has another unit."""
        self.files = tuple(files)
        self._mark = mark
        self._columns = {name: array(kind) for name, kind in _KINDS.items()}
        self._appends = tuple(column.append for column in self._columns.values())

    def add(
        self, iteration: int, rank: int, stage: int, op: int, microbatch: int, file: int, line: int,
        start_ns: int, end_ns: int, *, pair: bool = False,
    ) -> None:  # fmt: skip
        """Add an event (by position: this runs once a line); `pair`: it ran together with its neighbour on the rank."""
        values = (iteration, rank, stage, op, microbatch, pair, file, line, start_ns, end_ns)
        for append, value in zip(self._appends, values, strict=True):
            append(value)

    def __len__(self) -> int:
        return len(self._columns["line"])

    def column(self, name: str) -> NDArray[np.integer]:
        """A view of the column; nothing can be added while it is in use."""
        column = self._columns[name]
        view = np.frombuffer(column, dtype=f"{column.typecode}") if column else np.zeros(0, dtype=column.typecode)
        view.setflags(write=False)
        return view

    def where(self, row: int) -> str:
        """`file:line` of an event."""
        return self._mark.format(file=self.files[self._columns["file"][row]], place=self._columns["line"][row])


def name_of(table: Table, row: int) -> str:
    """`2F0 of iteration 3 on rank 2`."""
    op = Op(int(table["op"][row]))
    what = f"{table['stage'][row]}{op.name}{table['microbatch'][row]}" if op.is_action else op.name.lower()
    return f"{what} of iteration {table['iteration'][row]} on rank {table['rank'][row]}"


class EventFilter:
    """Takes faults. Reasons are the few words under which dropped events are counted."""

    def __init__(self, *, lenient: bool) -> None:
        self._lenient = lenient
        self._dropped: Counter[str] = Counter()

    def drop(self, reason: str, message: str, *, events: int = 1) -> None:
        """Drop `events` and count them, or raise TraceError with the message."""
        if not self._lenient:
            raise TraceError(f"{message} (--lenient drops what is wrong and counts it)")
        self._dropped[reason] += events

    @property
    def dropped(self) -> Mapping[str, int]:
        """Events dropped, by reason, most first."""
        return MappingProxyType(dict(self._dropped.most_common()))


PACKED = (".gz", ".zst")


def plain_name(path: Path) -> str:
    """The file's name without the ending of its packing: `rank0.jsonl` of `rank0.jsonl.gz`."""
    return path.stem if path.suffix in PACKED else path.name


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1, without line ends; `.gz` and `.zst` are unpacked on the way.

    Raises TraceError saying after which line the file broke off, UsageError if `.zst` lacks its library.
    """
    number = 0
    try:
        with _open(path) as raw, io.TextIOWrapper(raw, encoding="utf-8") as text:
            for line in text:
                number += 1
                yield number, line.rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(
            f"{path}:{number + 1}: cannot be read on: {why}; expected text in UTF-8, whole to its end: copy it again"
        ) from error


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.open(path, "rb"))
    if path.suffix == ".zst":
        return _open_zstandard(path)
    return path.open("rb")


def _open_zstandard(path: Path) -> BinaryIO:
    try:
        zstandard = import_module("zstandard")
    except ImportError as error:
        raise UsageError(
            f"{path}: .zst needs zstandard, which is not installed: run `pip install 'hops-sim[zstd]'`, "
            "or unpack the file first (`unzstd`)"
        ) from error
    try:
        opened: BinaryIO = zstandard.open(path, "rb")
    except zstandard.ZstdError as error:
        raise TraceError(f"{path}:1: cannot be unpacked: {error}") from error
    return opened


def first_line(path: Path) -> str:
    """The first line of a file, "" if it is a folder, empty or unreadable: for guessing its format."""
    try:
        return next(numbered_lines(path), (1, ""))[1] if path.is_file() else ""
    except TraceError:
        return ""
