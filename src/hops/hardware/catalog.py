"""The catalog: every kind of device and interconnect by name, ours and the user's."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from hops.errors import CatalogError
from hops.hardware.catalog_file import CatalogFile, WireFile, device_of, interconnect_of, read_file
from hops.hardware.devices import DeviceKind, Interconnect


def unknown(family: str, name: str, known: Iterable[str], *, near: Iterable[str] | None = None) -> str:
    """The message for a name that is not known. `near` are further names that may have been meant, such as aliases."""
    names = list(known)
    closest = get_close_matches(name, names if near is None else list(near), n=1)
    hint = f"did you mean {closest[0]!r}? " if closest else ""
    return f"unknown {family} {name!r}: {hint}known are {', '.join(names)}"


DATA = Path(__file__).parent / "data"
_NAME_LINES = re.compile(r"^(?:device|interconnect): (\S+)|^aliases: \[(.*)\]", re.MULTILINE)
Entry = TypeVar("Entry", bound=DeviceKind | Interconnect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf(Generic[Entry]):
    """Entries of one family: by their own names, and by names and aliases together."""

    family: str
    entries: Mapping[str, Entry]
    by_any_name: Mapping[str, Entry]

    def get(self, name: str) -> Entry:
        """The entry of that name or alias; case and `_` for `-` do not matter. Raises CatalogError."""
        plain = name.lower().replace("_", "-")
        if plain in self.by_any_name:
            return self.by_any_name[plain]
        raise CatalogError(unknown(self.family, name, self.entries, near=self.by_any_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All kinds of devices and interconnects."""

    devices: Shelf[DeviceKind]
    interconnects: Shelf[Interconnect]

    @classmethod
    def load(cls, extra: Sequence[Path] = ()) -> "Catalog":
        """The built-in catalog, with the user's own files, or folders of `*.yaml`, added.

        Raises CatalogError if a file is wrong, or a name is taken (the message names both files).
        """
        return _load(tuple(Path(path) for path in extra))

    def device(self, name: str) -> DeviceKind:
        """The device of that name or alias. Raises CatalogError, with the nearest name, if there is none."""
        return self.devices.get(name)

    def interconnect(self, name: str) -> Interconnect:
        """The interconnect of that name or alias. Raises CatalogError, with the nearest name, if there is none."""
        return self.interconnects.get(name)

    def device_names(self) -> list[str]:
        """Names without aliases, ours first, each part sorted by file."""
        return list(self.devices.entries)

    def interconnect_names(self) -> list[str]:
        """Names without aliases, ours first, each part sorted by file."""
        return list(self.interconnects.entries)


class _OnDemand(Mapping[str, Entry]):
    """Entries by name, each made when it is asked for: most runs need a few of the catalog's files."""

    def __init__(self, makers: Mapping[str, Callable[[], Entry]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Entry:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """A file that describes one entry: its names (its own first, then aliases), and how to read it."""

    file: Path
    names: tuple[str, ...]
    read: Callable[[], Any]


def _load(extra: tuple[Path, ...]) -> Catalog:
    own = [read_file(file) for path in extra for file in _files(path)]
    wires = [_stated(file, interconnect_of) for file in own if isinstance(file.written, WireFile)]
    interconnects: Shelf[Interconnect] = _shelf("interconnect", [*_shipped("interconnects", interconnect_of), *wires])

    def device(file: CatalogFile) -> DeviceKind:
        return device_of(file, interconnects.get)

    kinds = [_stated(file, device) for file in own if not isinstance(file.written, WireFile)]
    return Catalog(devices=_shelf("device", [*_shipped("devices", device), *kinds]), interconnects=interconnects)


def _stated(file: CatalogFile, make: Callable[[CatalogFile], DeviceKind | Interconnect]) -> _Book:
    """A user's file, made at once so that its errors show."""
    entry = make(file)
    return _Book(file=file.file, names=(entry.name, *entry.aliases), read=lambda: entry)


def _shipped(folder: str, make: Callable[[CatalogFile], Entry]) -> list[_Book]:
    """Our own files of one family, by the names that stand in them."""

    def made_once(file: Path) -> Callable[[], Entry]:
        return cache(lambda: make(_shipped_file(file)))

    return [_Book(file=file, names=names, read=made_once(file)) for file, names in _shipped_names(folder)]


@cache
def _shipped_names(folder: str) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """Our own files with their names, from the two lines that hold them (a test reads the files in full)."""
    files = sorted((DATA / folder).glob("*.yaml"))
    return tuple((file, _names_in(file.read_text(encoding="utf-8"))) for file in files)


def _names_in(text: str) -> tuple[str, ...]:
    found = _NAME_LINES.findall(text)
    aliases = (alias.strip() for _, listed in found for alias in listed.split(","))
    return (*(name for name, _ in found if name), *(alias for alias in aliases if alias))


@cache
def _shipped_file(file: Path) -> CatalogFile:
    return read_file(file)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob("*.yaml"))
    if not files:
        raise CatalogError(f"{path}: got a folder without *.yaml, expected catalog files; add one, or name a file")
    return files


def _shelf(family: str, books: Iterable[_Book]) -> "Shelf[Any]":
    entries: dict[str, Callable[[], Any]] = {}
    by_any_name: dict[str, Callable[[], Any]] = {}
    file_of: dict[str, Path] = {}
    for book in books:
        for name in book.names:
            if name in file_of:
                raise CatalogError(
                    f"{book.file}: {family} name {name!r} is taken by {file_of[name]}: "
                    "names and aliases must differ; rename"
                )
            file_of[name] = book.file
            by_any_name[name] = book.read
        entries[book.names[0]] = book.read
    return Shelf(family=family, entries=_OnDemand(entries), by_any_name=_OnDemand(by_any_name))
