"""Rows for `hops list devices` and `hops list links`: plain data, in SI units named by their keys."""

import re
from collections.abc import Iterable

from hops.hardware.catalog import Catalog, Entry
from hops.hardware.devices import PRECISIONS, Source

Value = str | float | int | list[str] | None


def device_rows(catalog: Catalog) -> list[dict[str, Value]]:
    """One row per kind of device, by name. Dense rates are None where the device lacks the format."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "aliases": list(kind.aliases),
            "memory_bytes": kind.memory_bytes,
            **{f"{precision}_flop_per_s": kind.rates.get(precision) for precision in PRECISIONS},
            "memory_bytes_per_s": kind.memory_bandwidth,
            "peer": kind.peer.name if kind.peer else None,
            "bus": kind.bus.name,
            "nic": kind.nic.name,
            "nic_bytes_per_s": kind.nic.bandwidth,
            "power_w": kind.power_w,
            "price_usd_per_hour": kind.price_per_hour,
            "source": _cited(kind.sources["memory_bandwidth"]),
        }
        for kind in by_name(catalog.devices.entries.values())
    ]


def interconnect_rows(catalog: Catalog) -> list[dict[str, Value]]:
    """One row per kind of interconnect, by name."""
    return [
        {
            "name": wire.name,
            "title": wire.title,
            "aliases": list(wire.aliases),
            "topology": wire.topology.value,
            "bytes_per_s": wire.bandwidth,
            "latency_ms": wire.latency_s * 1e3,
            "source": _cited(wire.sources["bandwidth"]),
        }
        for wire in by_name(catalog.interconnects.entries.values())
    ]


def by_name(entries: Iterable[Entry]) -> list[Entry]:
    """Sorted by name, with ethernet-25 before ethernet-100."""
    return sorted(entries, key=lambda entry: [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", entry.name)])


def _cited(source: Source) -> str:
    return f"{source.document}, {source.date}" if source.date else source.document
