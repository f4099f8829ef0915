"""The catalog: every kind of device and interconnect by name, ours and the user's."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from hops.errors import CatalogError, UnitError
from hops.hardware.devices import PRECISIONS, DeviceKind, Interconnect, Source, Topology
from hops.units import Dimension, parse_bandwidth, parse_bytes, parse_compute, parse_time, shown


def unknown(family: str, name: str, known: Iterable[str], *, near: Iterable[str] | None = None) -> str:
    """The message for a name that is not known. `near` are further names that may have been meant, such as aliases."""
    names = list(known)
    closest = get_close_matches(name, names if near is None else list(near), n=1)
    hint = f"did you mean {closest[0]!r}? " if closest else ""
    return f"unknown {family} {name!r}: {hint}known are {', '.join(names)}"


POWER = Dimension(
    name="a power",
    example="700 W",
    scales={"W": Fraction(1), "kW": Fraction(1000)},
    shown=("W", "kW"),
    hints={"w": "write W", "watts": "write W"},
)
PRICE = Dimension(
    name="a price",
    example="2.50 USD/h",
    scales={"USD/h": Fraction(1)},
    shown=("USD/h",),
    hints={"$/h": "write USD/h", "USD": "write USD/h", "USD/hour": "write USD/h"},
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Record:
    """One mapping of a catalog file, read key by key; `used` collects the source of every number that was read."""

    file: Path
    content: Mapping[Any, Any]
    prefix: str = ""
    known: Mapping[str, Source] = field(default_factory=dict)
    used: dict[str, Source] = field(default_factory=dict)

    def error(self, key: str, message: str) -> CatalogError:
        return CatalogError(f"{self.file}: {self.prefix}{key}: {message}")

    def check_keys(self, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        """Raise for a key that is not known, or missing."""
        expected = (*required, *optional)
        for key in self.content:
            if key not in expected:
                raise self.error(str(key)[:80], unknown("key", str(key)[:80], expected))
        for key in required:
            if key not in self.content:
                raise self.error(key, f"missing: expected are {', '.join(required)}; add it")

    def text(self, key: str) -> str:
        value = self.content[key]
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"got {shown(value)}, expected a text")
        return value

    def name(self, key: str) -> str:
        return self._name(key, self.content[key])

    def names(self, key: str) -> tuple[str, ...]:
        if key not in self.content:
            return ()
        values = self.content[key]
        if not isinstance(values, list):
            raise self.error(key, f"got {shown(values)}, expected a list of names such as [h100]")
        return tuple(self._name(f"{key}[{index}]", value) for index, value in enumerate(values))

    def _name(self, key: str, value: object) -> str:
        if not isinstance(value, str) or _NAME.fullmatch(value) is None:
            raise self.error(key, f"got {shown(value)}, expected a name of a-z, 0-9 and single '-', such as rtx-4090")
        return value

    def record(self, key: str) -> "Record":
        value = self.content[key]
        if not isinstance(value, dict):
            raise self.error(key, f"got {shown(value)}, expected a mapping of keys to values")
        return Record(self.file, value, f"{self.prefix}{key}.", self.known, self.used)

    def sourced(self, key: str) -> object:
        """A value, written plainly or as {value, source}; its source is noted in `used`."""
        value = self.content[key]
        if not isinstance(value, dict):
            self.used[self.prefix + key] = Source(document=f"stated in {self.file.name}")
            return value
        inner = self.record(key)
        inner.check_keys(("value", "source"))
        label = inner.content["source"]
        if not isinstance(label, str) or label not in self.known:
            raise inner.error("source", f"got {shown(label)}, expected a key of sources: {', '.join(self.known)}")
        self.used[self.prefix + key] = self.known[label]
        return inner.content["value"]

    def number(self, key: str, parse: Callable[[object], float], *, positive: bool = True) -> float:
        value = self.sourced(key)
        try:
            number = parse(value)
        except UnitError as error:
            raise self.error(key, str(error)) from None
        if positive and not number:
            raise self.error(key, f"got {shown(value)}, expected more than 0")
        return number


def read_file(file: Path) -> Record:
    """One catalog file as a record with its sources read. Raises CatalogError if it cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogError(f"{file}: cannot be read: {error.strerror}; check the path") from None
    except (YAMLError, UnicodeDecodeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise CatalogError(f"{file}: is not YAML: {line}") from None
    heads = [key for key in ("device", "interconnect") if isinstance(content, dict) and key in content]
    if len(heads) != 1:
        got = "both" if heads else "neither" if isinstance(content, dict) else shown(content)
        raise CatalogError(f"{file}: got {got}, expected a mapping with either the key 'device' or 'interconnect'")
    bare = Record(file, content)
    return Record(file, content, known=_sources(bare) if "sources" in content else {})


def _sources(record: Record) -> dict[str, Source]:
    sources = record.record("sources")
    return {str(label): _source(sources.record(label)) for label in sources.content}


def _source(record: Record) -> Source:
    record.check_keys(("document", "url", "date"))
    date = record.text("date")
    if _DATE.fullmatch(date) is None:
        raise record.error("date", f"got {shown(date)}, expected year and month such as 2024-09")
    return Source(document=record.text("document"), url=record.text("url"), date=date)


def read_interconnect(record: Record) -> Interconnect:
    """The interconnect that a record describes. Raises CatalogError."""
    record.check_keys(("interconnect", "title", "topology", "bandwidth", "latency"), ("aliases", "sources"))
    topology = record.content["topology"]
    known = [member.value for member in Topology]
    if topology not in known:
        raise record.error("topology", f"got {shown(topology)}, expected one of {', '.join(known)}")
    return Interconnect(
        name=record.name("interconnect"),
        title=record.text("title"),
        aliases=record.names("aliases"),
        topology=Topology(topology),
        bandwidth=record.number("bandwidth", parse_bandwidth),
        latency_s=record.number("latency", parse_time, positive=False),
        sources=record.used,
    )


def read_device(record: Record, interconnect: Callable[[str], Interconnect]) -> DeviceKind:
    """The device kind that a record describes; `interconnect` looks one up by name. Raises CatalogError."""
    required = ("device", "title", "vendor", "peak", "memory", "memory_bandwidth", "launch_overhead")
    record.check_keys(
        (*required, "operation_overhead", "bus", "nic", "power", "price"), ("aliases", "peer", "cache", "sources")
    )

    def connection(key: str, *topologies: Topology) -> Interconnect:
        name = record.sourced(key)
        try:
            found = interconnect(str(name))
        except CatalogError as error:
            raise record.error(key, str(error)) from None
        if found.topology not in topologies:
            allowed = " or ".join(topologies)
            raise record.error(key, f"got {found.name!r} of topology {found.topology}, expected topology {allowed}")
        return found

    return DeviceKind(
        name=record.name("device"),
        title=record.text("title"),
        vendor=record.text("vendor"),
        aliases=record.names("aliases"),
        rates=_rates(record.record("peak")),
        memory_bytes=int(record.number("memory", parse_bytes)),
        memory_bandwidth=record.number("memory_bandwidth", parse_bandwidth),
        launch_s=record.number("launch_overhead", parse_time, positive=False),
        operation_s=record.number("operation_overhead", parse_time, positive=False),
        cache_bytes=int(record.number("cache", parse_bytes)) if "cache" in record.content else 0,
        bus=connection("bus", Topology.ROOT),
        peer=connection("peer", Topology.SWITCH, Topology.MESH) if "peer" in record.content else None,
        nic=connection("nic", Topology.NETWORK),
        power_w=record.number("power", POWER.parse),
        price_per_hour=record.number("price", PRICE.parse, positive=False),
        sources=record.used,
    )


def _rates(peak: Record) -> dict[str, float]:
    """FLOP/s by precision. Every precision is stated, as a rate or as `unsupported`, so that none is forgotten."""
    peak.check_keys(PRECISIONS)
    rates = {name: peak.number(name, parse_compute) for name in PRECISIONS if peak.content[name] != "unsupported"}
    if not rates:
        raise peak.error("fp32", "got 'unsupported' for every precision, expected at least one rate")
    return rates


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
    wires = [_stated(record, read_interconnect) for record in own if _is_wire(record)]
    interconnects: Shelf[Interconnect] = _shelf("interconnect", [*_shipped("interconnects", read_interconnect), *wires])

    def read(record: Record) -> DeviceKind:
        return read_device(record, interconnects.get)

    kinds = [_stated(record, read) for record in own if not _is_wire(record)]
    return Catalog(devices=_shelf("device", [*_shipped("devices", read), *kinds]), interconnects=interconnects)


def _is_wire(record: Record) -> bool:
    return "interconnect" in record.content


def _stated(record: Record, read: Callable[[Record], DeviceKind | Interconnect]) -> _Book:
    """A user's file, read at once so that its errors show."""
    entry = read(record)
    return _Book(file=record.file, names=(entry.name, *entry.aliases), read=lambda: entry)


def _shipped(folder: str, read: Callable[[Record], Entry]) -> list[_Book]:
    """Our own files of one family, by the names that stand in them."""

    def read_file_once(file: Path) -> Callable[[], Entry]:
        return cache(lambda: read(_shipped_record(file)))

    return [_Book(file=file, names=names, read=read_file_once(file)) for file, names in _shipped_names(folder)]


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
def _shipped_record(file: Path) -> Record:
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
