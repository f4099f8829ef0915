"""Outputs appear whole or not at all: they are written under a temporary name and moved into place."""

import gzip
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

from hops.errors import UsageError

GZIP_LEVEL: Final = 1  # the default, 6, takes six times as long to pack a trace a third smaller


def check_writable(paths: Iterable[Path]) -> None:
    """Raise UsageError for a path that could not be written: to be asked before long work. It makes nothing."""
    for path in paths:
        if path.is_dir():
            raise UsageError(f"cannot write {path}: it is a folder; choose another path")
        above = next(each for each in (path.parent, *path.parent.parents) if each.exists())
        if not above.is_dir():
            raise UsageError(f"cannot write {path}: {above} is not a folder; choose another path")
        if not os.access(above, os.W_OK | os.X_OK):
            raise UsageError(f"cannot write {path}: writing into {above} is not permitted; choose another path")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with its suffixes, that becomes `path` when the block ends well.

    Folders above it are made. Raises UsageError if the system refuses, naming the path.
    """
    path = Path(path)
    temporary = path.with_name(f".writing-{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}; choose another path") from error
    finally:
        if temporary.is_file():
            temporary.unlink()


@contextmanager
def atomic_bytes(path: Path) -> Iterator[BinaryIO]:
    """A stream of bytes whose content becomes the file `path`; gzipped if its name ends in `.gz`.

    The bytes depend on what is written only: the gzip header bears neither time nor name.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as raw:
        if temporary.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=GZIP_LEVEL) as packed:
            yield cast("BinaryIO", packed)


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """A text stream (UTF-8, Unix line ends) of the same kind."""
    with atomic_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as text:
        yield text
