"""The splits of a dataset: which runs, and digests that tell whether they are still what they were."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hops.errors import ResearchError
from hops.files import atomic_write
from hops.research.git import remove_tree

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Runs of one split that the loop may read: digests by name, our copy, and where it was copied from."""

    name: str
    digests: Mapping[str, str]
    copy: Path
    source: Path


def digests_of(folder: Path) -> dict[str, str]:
    """Digest of every run folder in `folder`, by name. Raises ResearchError if there is none."""
    try:
        runs = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise ResearchError(f"{folder}: {error.strerror}; expected a folder of run folders") from error
    if not runs:
        raise ResearchError(f"{folder} has no run folders in it")
    return {run.name: digest(run) for run in runs}


def digest(run: Path) -> str:
    """SHA-256 over the names and contents of all files of a run folder, in order of name."""
    total = hashlib.sha256()
    for path in sorted(each for each in run.rglob("*") if not each.is_dir()):
        content = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                content.update(chunk)
        total.update(f"{path.relative_to(run).as_posix()}\0{content.hexdigest()}\n".encode())
    return total.hexdigest()


def write_split(path: Path, title: str, digests: Mapping[str, str]) -> None:
    """A split file: `DIGEST  NAME` a line."""
    with atomic_write(path) as out:
        out.write(f"# {title}\n")
        out.writelines(f"{value}  {name}\n" for name, value in digests.items())


def write_sealed(path: Path, digests: Mapping[str, str]) -> None:
    """The sealed split's file: digests in an order that tells nothing, and no names."""
    with atomic_write(path) as out:
        out.write(f"# Sealed test split: {len(digests)} runs by digest of their content; no names, no figures.\n")
        out.writelines(f"{value}\n" for value in sorted(digests.values()))


def read_split(path: Path) -> dict[str, str]:
    """Digests by name."""
    lines = [line.split(maxsplit=1) for line in _lines(path)]
    if not all(len(line) == 2 for line in lines):
        raise ResearchError(f"{path}: expected `DIGEST  NAME` on every line")
    return {name: value for value, name in lines}


def read_sealed(path: Path) -> tuple[str, ...]:
    """Digests of the sealed runs; none if there is no such split."""
    return tuple(_lines(path)) if path.exists() else ()


def heal(split: Split) -> list[str]:
    """Make our copy of a split what it was, from its source if need be; says in sentences what had been changed.

    Raises ResearchError for a run of which neither the copy nor the source is what it was.
    """
    found = []
    here = {path.name for path in split.copy.iterdir()} if split.copy.is_dir() else set()
    for name in sorted(here - set(split.digests)):
        remove_tree(split.copy / name)
        found.append(f"{split.name} data: {name} had been added")
    for name, value in split.digests.items():
        copy, source = split.copy / name, split.source / name
        if copy.is_dir() and digest(copy) == value:
            continue
        if not source.is_dir() or digest(source) != value:
            raise ResearchError(
                f"{split.name} run {name} is not what it was, neither in {copy} nor in {source}\n"
                f"expected: content with digest {value}\nfix: put the original back into {source}"
            )
        replace_run(source, copy)
        found.append(f"{split.name} data: {name} had been changed")
    return found


def replace_run(source: Path, target: Path) -> None:
    """Copy a run folder, whole or not at all."""
    temporary = target.with_name(f".copying-{os.getpid()}-{target.name}")
    remove_tree(temporary)
    shutil.copytree(source, temporary)
    remove_tree(target)
    temporary.replace(target)


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ResearchError(f"{path}: {error.strerror}; expected a split file") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
