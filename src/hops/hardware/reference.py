"""The reference page of the catalog, written from the catalog itself.

`python -m hops.hardware.reference > docs/reference/catalog.md` renews it; a test says when that is due.
"""

from collections.abc import Iterable, Mapping, Sequence

from hops.hardware.catalog import Catalog
from hops.hardware.devices import PRECISIONS, DeviceKind, Interconnect, Source
from hops.hardware.tables import by_name
from hops.units import BANDWIDTH, format_bytes, format_time

HEADER = """\
# Catalog of devices and interconnects

Written by `python -m hops.hardware.reference` from the files in `src/hops/hardware/data`; do not edit by hand.
Rates are peak and dense (never with sparsity), with fp32 accumulation, in TFLOP/s; a dash means that the device lacks
the precision, and asking for it is an error. Memory is in powers of 1024, as DRAM is made; bandwidths are bytes per
second in powers of 1000, of one direction. What is marked *engineering default* is a guess until a profile is fitted.
How the numbers were chosen: [decision 0020](../decisions/0020-catalog-numbers.md); how links are shared:
[decision 0021](../decisions/0021-who-shares-a-link.md).

## Your own

A catalog of your own is a file like this (or a folder of them), one device or interconnect each, named in the spec:
`hardware: {catalog: [my-gpu.yaml]}`. `hops list devices --catalog my-gpu.yaml` shows how it is read. A number may name
its source, as in the shipped files: `memory: {value: 48 GiB, source: sheet}`.

```yaml my-gpu.yaml
device: my-gpu
title: My GPU
vendor: Me
peak: {fp32: 50 TFLOP/s, tf32: unsupported, fp16: 100 TFLOP/s, bf16: 100 TFLOP/s, fp8: unsupported}
memory: 48 GiB
memory_bandwidth: 1 TB/s
launch_overhead: 5 us
operation_overhead: 10 us
bus: pcie4
nic: my-wire
power: 300 W
price: 1 USD/h
```

```yaml my-wire.yaml
interconnect: my-wire
title: My network
topology: network
bandwidth: 50 Gbit/s
latency: 20 us
```
"""


def render(catalog: Catalog) -> str:
    """The page as Markdown."""
    kinds, wires = by_name(catalog.devices.entries.values()), by_name(catalog.interconnects.entries.values())
    parts = [HEADER, "## Devices\n", _devices(kinds), "## Device links and costs\n", _device_links(kinds)]
    parts += ["## Interconnects\n", _interconnects(wires), "## Sources of devices\n"]
    parts += [_sources(kind.name, kind.sources) for kind in kinds]
    parts += ["## Sources of interconnects\n"]
    parts += [_sources(wire.name, wire.sources) for wire in wires]
    return "\n".join(parts)


def _devices(kinds: Iterable[DeviceKind]) -> str:
    head = ["name", "aliases", *PRECISIONS, "memory", "memory bandwidth", "cache"]
    rows = [
        [
            f"`{kind.name}`",
            _code(kind.aliases),
            *(_tera(kind, precision) for precision in PRECISIONS),
            format_bytes(kind.memory_bytes),
            BANDWIDTH.pretty(kind.memory_bandwidth, digits=4),
            format_bytes(kind.cache_bytes) if kind.cache_bytes else "-",
        ]
        for kind in kinds
    ]
    return _table(head, rows)


def _device_links(kinds: Iterable[DeviceKind]) -> str:
    head = ["name", "peer", "bus", "NIC of its host", "launch", "dispatch per operation", "power", "price per hour"]
    rows = [
        [
            f"`{kind.name}`",
            kind.peer.name if kind.peer else "-",
            kind.bus.name,
            kind.nic.name,
            format_time(kind.launch_s),
            format_time(kind.operation_s),
            f"{kind.power_w:g} W",
            f"{kind.price_per_hour:.2f} USD",
        ]
        for kind in kinds
    ]
    return _table(head, rows)


def _interconnects(wires: Iterable[Interconnect]) -> str:
    head = ["name", "aliases", "what", "topology", "bandwidth", "latency"]
    rows = [
        [
            f"`{wire.name}`",
            _code(wire.aliases),
            wire.title,
            wire.topology.value,
            BANDWIDTH.pretty(wire.bandwidth, digits=4),
            format_time(wire.latency_s),
        ]
        for wire in wires
    ]
    return _table(head, rows)


def _sources(name: str, sources: Mapping[str, Source]) -> str:
    keys_of: dict[Source, list[str]] = {}
    for key, source in sources.items():
        keys_of.setdefault(source, []).append(key)
    lines = [f"**{name}**", ""]
    for source, keys in keys_of.items():
        place = f"<{source.url}>" if source.url.startswith("https:") else f"`{source.url}`"
        lines.append(f"- {', '.join(keys)}: {source.document}, {source.date}, {place}")
    return "\n".join([*lines, ""])


def _tera(kind: DeviceKind, precision: str) -> str:
    return f"{kind.rates[precision] / 1e12:g}" if precision in kind.rates else "-"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), ""])


if __name__ == "__main__":
    print(render(Catalog.load()), end="")
