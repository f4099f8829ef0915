"""Text files read line by line, packed or not, so that a file of any size takes the memory of one line."""

import gzip
import io
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from hops.errors import TraceError, UsageError

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
