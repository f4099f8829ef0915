"""A catalog file: its form, in which every number may name its source, and how a kind is made of it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from hops.decode.decode import Where, decode, opened
from hops.decode.document import Complaint
from hops.decode.quantities import Bandwidth, Bytes, FlopRate, Seconds, problem, quantity
from hops.errors import CatalogError, UsageError
from hops.hardware.devices import (
    COLLECTIVE_SHARE,
    PRECISIONS,
    DeviceKind,
    GroupRate,
    InSwitch,
    Interconnect,
    Source,
    Topology,
)
from hops.units import Dimension, shown

POWER: Final = Dimension(
    name="a power",
    example="700 W",
    scales={"W": Fraction(1), "kW": Fraction(1000)},
    shown=("W", "kW"),
    hints={"w": "write W", "watts": "write W"},
)
PRICE: Final = Dimension(
    name="a price",
    example="2.50 USD/h",
    scales={"USD/h": Fraction(1)},
    shown=("USD/h",),
    hints={"$/h": "write USD/h", "USD": "write USD/h", "USD/hour": "write USD/h"},
)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
Q = TypeVar("Q")


def _matches(pattern: re.Pattern[str], expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise problem(f"got {shown(text)}, expected {expected}")
        return text

    return AfterValidator(check)


CatalogName = Annotated[str, _matches(_NAME, "a name of a-z, 0-9 and single '-', such as rtx-4090")]
Month = Annotated[str, _matches(_DATE, "year and month such as 2024-09")]
Text = Annotated[str, _matches(re.compile(r".*\S.*", re.DOTALL), "a text")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited(Generic[Q]):
    """A value and the key of its source in `sources`; a value written alone is stated by the file itself."""

    value: Q
    source: str


def _long(value: object) -> object:
    return value if isinstance(value, dict) else {"value": value, "source": ""}


CITED: Final = BeforeValidator(_long)


def _unsupported(rate: object) -> object:
    return None if rate == "unsupported" else rate


Peak = Annotated[Cited[Annotated[FlopRate | None, BeforeValidator(_unsupported)]], CITED]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSource:
    """A document with all that is needed to find it."""

    document: Text
    url: Text
    date: Month


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPeak:
    """A dense rate for every precision, or `unsupported`, so that none is forgotten; fp4, which few have, may lack."""

    fp32: Peak
    tf32: Peak
    fp16: Peak
    bf16: Peak
    fp8: Peak
    fp4: Peak = Cited(value=None, source="")

    def __post_init__(self) -> None:
        if not any(getattr(self, name).value for name in PRECISIONS):
            raise UsageError("got 'unsupported' for every precision, expected at least one rate")


Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenInSwitch:
    """All-reduces inside the switch: their share of the bandwidth, and the fewest members that use it."""

    share: Annotated[Cited[Share], CITED]
    members: Annotated[Cited[Annotated[int, Field(ge=2)]], CITED]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRate:
    """A measured all-reduce: members, time of the smallest one, bus bandwidth of large ones."""

    members: Annotated[int, Field(ge=2)]
    latency: Seconds
    bus_bandwidth: Bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFile:
    """A file that describes an interconnect."""

    interconnect: CatalogName
    title: Text
    aliases: tuple[CatalogName, ...] = ()
    topology: Topology
    bandwidth: Annotated[Cited[Bandwidth], CITED]
    latency: Annotated[Cited[Seconds], CITED]
    collective_share: Annotated[Cited[Share], CITED] | None = None
    in_switch: WrittenInSwitch | None = None
    measured: Annotated[Cited[tuple[WrittenRate, ...]], CITED] | None = None
    sources: Mapping[str, WrittenSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFile:
    """A file that describes a device."""

    device: CatalogName
    title: Text
    vendor: Text
    aliases: tuple[CatalogName, ...] = ()
    peak: WrittenPeak
    memory: Annotated[Cited[Annotated[Bytes, Field(gt=0)]], CITED]
    memory_bandwidth: Annotated[Cited[Bandwidth], CITED]
    launch_overhead: Annotated[Cited[Seconds], CITED]
    operation_overhead: Annotated[Cited[Seconds], CITED]
    cache: Annotated[Cited[Annotated[Bytes, Field(gt=0)]], CITED] | None = None
    bus: Annotated[Cited[str], CITED]
    peer: Annotated[Cited[str], CITED] | None = None
    nic: Annotated[Cited[str], CITED]
    power: Annotated[Cited[Annotated[float, quantity(POWER), Field(gt=0)]], CITED]
    price: Annotated[Cited[Annotated[float, quantity(PRICE)]], CITED]
    sources: Mapping[str, WrittenSource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFile:
    """One file, read: what it describes, where that stands, and the source of every number."""

    file: Path
    written: DeviceFile | WireFile
    where: Where
    data: Any
    sources: Mapping[str, Source]

    def refusal(self, key: str, what: str) -> CatalogError:
        """The error for something that is wrong at a key."""
        return CatalogError(self.where.report(self.data, [Complaint(path=(key,), what=what)]))


def read_file(file: Path) -> CatalogFile:
    """One catalog file. Raises CatalogError with everything that is wrong with it."""
    data, where = opened(file, error=CatalogError, expected="a catalog file in YAML")
    heads = [key for key in ("device", "interconnect") if isinstance(data, dict) and key in data]
    if len(heads) != 1 and not where.complaints:
        got = "both" if heads else "neither" if isinstance(data, dict) else shown(data)
        what = f"got {got}, expected a mapping with either the key 'device' or 'interconnect'"
        raise CatalogError(where.report(data, [Complaint(path=(), what=what)]))
    written = decode(WireFile, data, where) if heads == ["interconnect"] else decode(DeviceFile, data, where)
    documents = {
        label: Source(document=each.document, url=each.url, date=each.date) for label, each in written.sources.items()
    }
    cited = dict(_cited(written))
    lost = [
        Complaint(
            path=(*key.split("."), "source"),
            what=f"got {shown(each.source)}, expected a key of sources: {', '.join(documents)}",
        )
        for key, each in cited.items()
        if each.source and each.source not in documents
    ]
    if lost:
        raise CatalogError(where.report(data, lost))
    stated = Source(document=f"stated in {file.name}")
    sources = {key: documents[each.source] if each.source else stated for key, each in cited.items()}
    return CatalogFile(file=file, written=written, where=where, data=data, sources=sources)


def _cited(
    written: DeviceFile | WireFile | WrittenPeak | WrittenInSwitch, prefix: str = ""
) -> Iterator[tuple[str, Cited[Any]]]:
    """All numbers with their keys, such as `peak.bf16`; not what a device does not have."""
    for each in fields(written):
        value = getattr(written, each.name)
        if isinstance(value, WrittenPeak | WrittenInSwitch):
            yield from _cited(value, f"{each.name}.")
        elif isinstance(value, Cited) and value.value is not None:
            yield f"{prefix}{each.name}", value


def interconnect_of(file: CatalogFile) -> Interconnect:
    """The interconnect that a file describes."""
    written = file.written
    assert isinstance(written, WireFile), "its key says so"
    return Interconnect(
        name=written.interconnect,
        title=written.title,
        aliases=written.aliases,
        topology=written.topology,
        bandwidth=written.bandwidth.value,
        latency_s=written.latency.value,
        collective_share=written.collective_share.value if written.collective_share else COLLECTIVE_SHARE,
        in_switch=None
        if written.in_switch is None
        else InSwitch(share=written.in_switch.share.value, members=written.in_switch.members.value),
        measured=_rates(written),
        sources=file.sources,
    )


def _rates(written: WireFile) -> tuple[GroupRate, ...]:
    if written.measured is None:
        return ()
    rates = (
        GroupRate(members=each.members, latency_s=each.latency, bus_bytes_per_s=each.bus_bandwidth)
        for each in written.measured.value
    )
    return tuple(sorted(rates, key=lambda rate: rate.members))


def device_of(file: CatalogFile, interconnect: Callable[[str], Interconnect]) -> DeviceKind:
    """The device kind that a file describes; `interconnect` looks one up by name. Raises CatalogError."""
    written = file.written
    assert isinstance(written, DeviceFile), "its key says so"

    def connection(key: str, name: str, *topologies: Topology) -> Interconnect:
        try:
            found = interconnect(name)
        except CatalogError as error:
            raise file.refusal(key, str(error)) from None
        if found.topology not in topologies:
            allowed = " or ".join(topologies)
            raise file.refusal(key, f"got {found.name!r} of topology {found.topology}, expected topology {allowed}")
        return found

    rates = {name: getattr(written.peak, name).value for name in PRECISIONS}
    return DeviceKind(
        name=written.device,
        title=written.title,
        vendor=written.vendor,
        aliases=written.aliases,
        rates={name: rate for name, rate in rates.items() if rate is not None},
        memory_bytes=written.memory.value,
        memory_bandwidth=written.memory_bandwidth.value,
        launch_s=written.launch_overhead.value,
        operation_s=written.operation_overhead.value,
        cache_bytes=written.cache.value if written.cache else 0,
        bus=connection("bus", written.bus.value, Topology.ROOT),
        peer=connection("peer", written.peer.value, Topology.SWITCH, Topology.MESH) if written.peer else None,
        nic=connection("nic", written.nic.value, Topology.NETWORK),
        power_w=written.power.value,
        price_per_hour=written.price.value,
        sources=file.sources,
    )
