"""The catalog: every kind of device and interconnect by name, ours and the user's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from hops.cluster.device import DeviceKind
from hops.cluster.interconnect import Interconnect
from hops.cluster.names import unknown
from hops.cluster.reading import Record, read_device, read_file, read_interconnect
from hops.errors import CatalogError

DATA = Path(__file__).parent / "data"
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


@cache
def _builtin_records() -> tuple[Record, ...]:
    return tuple(read_file(file) for file in sorted(DATA.rglob("*.yaml")))


def _load(extra: tuple[Path, ...]) -> Catalog:
    records = [*_builtin_records(), *(read_file(file) for path in extra for file in _files(path))]
    wires = [record for record in records if "interconnect" in record.content]
    interconnects = _shelf("interconnect", [(record.file, read_interconnect(record)) for record in wires])
    kinds = [record for record in records if "device" in record.content]
    devices = _shelf("device", [(record.file, read_device(record, interconnects.get)) for record in kinds])
    return Catalog(devices=devices, interconnects=interconnects)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob("*.yaml"))
    if not files:
        raise CatalogError(f"{path}: got a folder without *.yaml, expected catalog files; add one, or name a file")
    return files


def _shelf(family: str, read: Iterable[tuple[Path, Entry]]) -> Shelf[Entry]:
    entries: dict[str, Entry] = {}
    by_any_name: dict[str, Entry] = {}
    file_of: dict[str, Path] = {}
    for file, entry in read:
        for name in (entry.name, *entry.aliases):
            if name in file_of:
                raise CatalogError(
                    f"{file}: {family} name {name!r} is taken by {file_of[name]}: names and aliases must differ; rename"
                )
            file_of[name] = file
            by_any_name[name] = entry
        entries[entry.name] = entry
    return Shelf(family=family, entries=entries, by_any_name=by_any_name)
