"""The catalog's numbers agree with cores, clocks and bus widths, and each has a source and a date."""

import re
from pathlib import Path

import pytest

from hops.errors import CatalogError
from hops.hardware.catalog import DATA, Catalog
from hops.hardware.devices import PRECISIONS, Topology
from hops.hardware.reference import render
from hops.hardware.tables import device_rows, interconnect_rows

CATALOG = Catalog.load()
DEVICES = CATALOG.device_names()
WIRES = CATALOG.interconnect_names()

# Multiprocessors (AMD: compute units, Intel: cores), clock of that unit in MHz, dense FLOP per clock and unit.
# Recomputed from the vendors' architecture papers and independent of the rates in the data files.
COMPUTE = [
    ("h100-sxm", "fp32", 132, 1980, 128 * 2),
    ("h100-sxm", "tf32", 132, 1830, 2048),
    ("h100-sxm", "fp16", 132, 1830, 4096),
    ("h100-sxm", "bf16", 132, 1830, 4096),
    ("h100-sxm", "fp8", 132, 1830, 8192),
    ("h100-pcie", "fp32", 114, 1755, 128 * 2),
    ("h100-pcie", "bf16", 114, 1620, 4096),
    ("h100-pcie", "fp8", 114, 1620, 8192),
    ("h200-sxm", "bf16", 132, 1830, 4096),
    ("h200-sxm", "tf32", 132, 1830, 2048),
    ("a100-sxm-80", "fp32", 108, 1410, 64 * 2),
    ("a100-sxm-80", "tf32", 108, 1410, 1024),
    ("a100-sxm-80", "bf16", 108, 1410, 2048),
    ("a100-sxm-40", "bf16", 108, 1410, 2048),
    ("a100-pcie-40", "fp16", 108, 1410, 2048),
    ("a100-pcie-80", "fp16", 108, 1410, 2048),
    ("l40s", "fp32", 142, 2520, 128 * 2),
    ("l40s", "bf16", 142, 2490, 1024),
    ("l40s", "fp8", 142, 2520, 2048),
    ("l4", "fp32", 58, 2040, 128 * 2),
    ("l4", "tf32", 58, 2040, 512),
    ("l4", "bf16", 58, 2040, 1024),
    ("l4", "fp8", 58, 2040, 2048),
    ("a10g", "fp32", 72, 1900, 128 * 2),
    ("a10g", "bf16", 72, 1900, 512),
    ("v100-sxm-32", "fp32", 80, 1530, 64 * 2),
    ("v100-sxm-32", "fp16", 80, 1530, 1024),
    ("t4", "fp32", 40, 1590, 64 * 2),
    ("t4", "fp16", 40, 1590, 1024),
    ("rtx-4090", "fp32", 128, 2520, 128 * 2),
    ("rtx-4090", "bf16", 128, 2520, 512),
    ("rtx-4090", "fp8", 128, 2520, 1024),
    ("rtx-3090", "fp32", 82, 1695, 128 * 2),
    ("rtx-3090", "bf16", 82, 1695, 512),
    ("mi300x", "fp32", 304, 2100, 256),
    ("mi300x", "tf32", 304, 2100, 1024),
    ("mi300x", "bf16", 304, 2100, 2048),
    ("mi300x", "fp8", 304, 2100, 4096),
    ("cpu-standard", "fp32", 56, 2000, 64),
    ("cpu-standard", "bf16", 56, 2000, 1024),
]

# Width of the memory interface in bits, data rate of one pin in Gbit/s.
MEMORY = [
    ("gh200", 6144, 5.2),
    ("mi250x", 8192, 3.2),
    ("mi325x", 8192, 6.0),
    ("mi355x", 8192, 8.0),
    ("rtx-5090", 512, 28.0),
    ("trainium2", 4096, 5.6),
    ("gaudi3", 8192, 3.6),
    ("h100-sxm", 5120, 2 * 2.619),
    ("h100-pcie", 5120, 2 * 1.593),
    ("h200-sxm", 6144, 6.25),
    ("b200-sxm", 8192, 8.0),
    ("a100-sxm-80", 5120, 2 * 1.593),
    ("a100-sxm-40", 5120, 2 * 1.215),
    ("a100-pcie-80", 5120, 2 * 1.512),
    ("a100-pcie-40", 5120, 2 * 1.215),
    ("l40s", 384, 18.0),
    ("l4", 192, 12.5),
    ("a10g", 384, 12.5),
    ("v100-sxm-32", 4096, 2 * 0.877),
    ("t4", 256, 10.0),
    ("rtx-4090", 384, 21.0),
    ("rtx-3090", 384, 19.5),
    ("mi300x", 8192, 5.2),
    ("cpu-standard", 8 * 64, 4.8),
    ("b300-sxm", 8192, 8.0),
    ("gb200", 8192, 8.0),
    ("gb300", 8192, 8.0),
    ("h20-sxm", 6144, 5.2),
    ("h800-sxm", 5120, 2 * 2.619),
    ("v100-sxm-16", 4096, 2 * 0.877),
]

UNLISTED = {
    "gh200",
    "mi250x",
    "mi325x",
    "mi355x",
    "rtx-5090",
    "trainium2",
    "gaudi3",
    "b300-sxm",
    "gb200",
    "gb300",
    "h20-sxm",
    "h800-sxm",
    "v100-sxm-16",
}  # nobody lists a price per GPU

# The rates that vendors print with sparsity, TFLOP/s: what must not be in the catalog.
SPARSE_BF16 = {
    "h100-sxm": 1979,
    "h100-pcie": 1513,
    "h200-sxm": 1979,
    "b200-sxm": 4500,
    "a100-sxm-80": 624,
    "a100-sxm-40": 624,
    "a100-pcie-80": 624,
    "a100-pcie-40": 624,
    "l40s": 733,
    "l4": 242,
    "a10g": 140,
    "rtx-4090": 330.4,
    "rtx-3090": 142,
    "mi300x": 2614.9,
}

# Lanes, Gbit/s per lane and direction, share of bits that are data.
SERIAL = [
    ("pcie3", 16, 8, 128 / 130),
    ("pcie4", 16, 16, 128 / 130),
    ("pcie5", 16, 32, 128 / 130),
    ("nvlink2", 8, 25, 1),
    ("nvlink3", 12 * 4, 50, 1),
    ("nvlink4", 18 * 2, 100, 1),
    ("nvlink4-8", 8 * 2, 100, 1),
    ("nvlink5", 18 * 2, 200, 1),
    ("infiniband-xdr", 4, 200, 1),
    ("infiniband-hdr", 4, 50, 1),
    ("infiniband-ndr", 4, 100, 1),
    ("ethernet-10", 1, 10, 1),
    ("ethernet-25", 1, 25, 1),
    ("ethernet-100", 4, 25, 1),
    ("infinity-fabric", 16, 32, 1),
    ("upi", 2 * 16, 10.4, 1),
]


@pytest.mark.parametrize(("name", "precision", "units", "mhz", "flop_per_clock"), COMPUTE)
def test_a_rate_is_units_times_clock_times_dense_flop_per_clock(name, precision, units, mhz, flop_per_clock):
    expected = units * mhz * 1e6 * flop_per_clock
    assert CATALOG.device(name).rate(precision) == pytest.approx(expected, rel=0.0125)


@pytest.mark.parametrize(("name", "bits", "gbit_per_pin"), MEMORY)
def test_memory_bandwidth_is_bus_width_times_data_rate(name, bits, gbit_per_pin):
    expected = bits / 8 * gbit_per_pin * 1e9
    assert CATALOG.device(name).memory_bandwidth == pytest.approx(expected, rel=0.025)


def test_memory_bandwidth_is_recomputed_for_every_device():
    assert sorted(name for name, *_ in MEMORY) == sorted(DEVICES)


@pytest.mark.parametrize(("name", "lanes", "gbit_per_lane", "data"), SERIAL)
def test_bandwidth_of_an_interconnect_is_lanes_times_rate_of_one_direction(name, lanes, gbit_per_lane, data):
    expected = lanes * gbit_per_lane * 1e9 / 8 * data
    assert CATALOG.interconnect(name).bandwidth == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("name", sorted(SPARSE_BF16))
def test_rates_are_dense_at_most_half_of_the_sparse_ones(name):
    sparse = SPARSE_BF16[name] * 1e12
    assert 0.98 * sparse / 2 <= CATALOG.device(name).rate("bf16") <= 1.001 * sparse / 2


@pytest.mark.parametrize("name", DEVICES)
def test_narrower_formats_are_at_least_as_fast(name):
    rates = CATALOG.device(name).rates
    present = [rates[precision] for precision in ("fp32", "tf32", "fp16", "fp8", "fp4") if precision in rates]
    assert present == sorted(present)


@pytest.mark.parametrize("name", DEVICES)
def test_every_number_of_a_device_has_a_vendor_source_and_a_date(name):
    kind = CATALOG.device(name)
    keys = {"memory", "memory_bandwidth", "launch_overhead", "operation_overhead", "bus", "nic", "power", "price"}
    keys |= {f"peak.{precision}" for precision in kind.rates} | ({"peer"} if kind.peer else set())
    keys |= {"cache"} if kind.cache_bytes else set()
    assert set(kind.sources) == keys
    for key, source in kind.sources.items():
        assert re.fullmatch(r"\d{4}-\d{2}", source.date), key
        assert source.document, key
        is_default = source.document.startswith("engineering default")
        assert source.url.startswith("https://") is not is_default, key
        usual = {"launch_overhead", "nic", "bus"} | ({"price", "cache"} if name in UNLISTED else set())
        assert not is_default or key in usual, key


@pytest.mark.parametrize("name", WIRES)
def test_every_number_of_an_interconnect_has_a_source_and_a_date(name):
    wire = CATALOG.interconnect(name)
    assert set(wire.sources) >= {"bandwidth", "latency"}
    assert set(wire.sources) <= {
        "bandwidth",
        "latency",
        "collective_share",
        "in_switch.share",
        "in_switch.members",
        "measured",
    }
    for source in wire.sources.values():
        assert re.fullmatch(r"\d{4}-\d{2}", source.date)
        assert source.document
        assert source.url


@pytest.mark.parametrize("file", sorted(DATA.rglob("*.yaml")), ids=lambda file: file.stem)
def test_a_file_bears_the_name_of_its_entry_and_cites_every_source_it_lists(file):
    text = file.read_text()
    assert f"\n{file.parent.name.removesuffix('s')}: {file.stem}\n" in text
    listed = re.findall(r"^  (\w+): \{document", text, re.MULTILINE)
    assert set(listed) == set(re.findall(r"source: (\w+)(?:\}|\n)", text))


def test_the_devices_and_interconnects_that_were_asked_for_are_there():
    assert set(DEVICES) >= {
        *("h100-sxm", "h100-pcie", "h200-sxm", "b200-sxm", "a100-sxm-40", "a100-sxm-80", "a100-pcie-40"),
        *("a100-pcie-80", "l40s", "l4", "a10g", "v100-sxm-32", "t4", "rtx-4090", "rtx-3090", "mi300x", "cpu-standard"),
    }
    assert set(WIRES) >= {
        *("nvlink3", "nvlink4", "nvlink5", "pcie4", "pcie5", "infiniband-hdr", "infiniband-ndr"),
        *("ethernet-10", "ethernet-25", "ethernet-100"),
    }


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("h100", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("a100", "a100-sxm-80"),
        ("h200", "h200-sxm"),
        ("b200", "b200-sxm"),
        ("v100", "v100-sxm-32"),
        ("RTX_4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("A10G", "a10g"),
        ("cpu", "cpu-standard"),
    ],
)
def test_aliases_resolve_and_case_does_not_matter(alias, name):
    assert CATALOG.device(alias) is CATALOG.device(name)


def test_interconnect_aliases_resolve():
    assert CATALOG.interconnect("ndr") is CATALOG.interconnect("infiniband-ndr")
    assert CATALOG.interconnect("25gbe") is CATALOG.interconnect("ethernet-25")


def test_every_own_name_and_alias_resolves_to_its_entry():
    for kind in CATALOG.devices.entries.values():
        assert all(CATALOG.device(name) is kind for name in (kind.name, *kind.aliases))
    for wire in CATALOG.interconnects.entries.values():
        assert all(CATALOG.interconnect(name) is wire for name in (wire.name, *wire.aliases))


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(CatalogError, match=r"^unknown device 'h10': did you mean 'h100'\? known are a100-pcie-40, "):
        CATALOG.device("h10")
    with pytest.raises(CatalogError, match=r"^unknown interconnect 'nvlnk4': did you mean 'nvlink4'\? known are "):
        CATALOG.interconnect("nvlnk4")
    with pytest.raises(CatalogError, match=r"^unknown device 'zzz': known are a100-pcie-40, "):
        CATALOG.device("zzz")


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("v100", {"tf32", "bf16", "fp8", "fp4"}),
        ("t4", {"tf32", "bf16", "fp8", "fp4"}),
        ("a100", {"fp8", "fp4"}),
        ("a10g", {"fp8", "fp4"}),
        ("rtx-3090", {"fp8", "fp4"}),
        ("cpu", {"tf32", "fp8", "fp4"}),
        ("l4", {"fp4"}),
        ("h100", {"fp4"}),
        ("mi300x", {"fp4"}),
        ("b200", set()),
    ],
)
def test_a_precision_that_a_device_lacks_is_said_to_be_absent(name, absent):
    assert set(PRECISIONS) - set(CATALOG.device(name).rates) == absent


def test_asking_for_an_absent_precision_names_those_there_are():
    with pytest.raises(CatalogError) as error:
        CATALOG.device("t4").rate("bf16")
    assert str(error.value) == (
        "device 't4' has no bf16: got precision 'bf16', expected one of fp32, fp16; "
        "choose one of these, or a device that has bf16"
    )


def test_overrides_change_what_is_stated_and_note_the_source():
    kind = CATALOG.device("t4")
    mine = kind.with_overrides(
        rates={"bf16": 1e12},
        memory_bytes=1,
        memory_bandwidth=2.0,
        launch_s=3.0,
        layer_s=4.0,
        price_per_hour=5.0,
        power_w=6.0,
    )
    assert mine.rates == {**kind.rates, "bf16": 1e12}
    assert (mine.memory_bytes, mine.memory_bandwidth, mine.launch_s, mine.layer_s) == (1, 2.0, 3.0, 4.0)
    assert (mine.price_per_hour, mine.power_w) == (5.0, 6.0)
    stated = {key for key, source in mine.sources.items() if source.document == "stated by the user"}
    assert stated == {
        *("peak.bf16", "memory", "memory_bandwidth", "launch_overhead", "layer_overhead", "price", "power")
    }
    assert kind.with_overrides() == kind


def test_hosts_and_links_of_devices_are_of_the_right_topology():
    for kind in CATALOG.devices.entries.values():
        assert kind.nic.topology is Topology.NETWORK
        assert kind.bus.topology is Topology.ROOT
        assert kind.peer is None or kind.peer.topology in {Topology.SWITCH, Topology.MESH}


def test_rows_say_of_every_entry_what_a_list_shows():
    rows = {row["name"]: row for row in device_rows(CATALOG)}
    assert set(rows) == set(DEVICES)
    assert rows["l4"] == {
        "name": "l4",
        "title": "NVIDIA L4 24 GB",
        "aliases": [],
        "memory_bytes": 45 * 2**29,
        "fp32_flop_per_s": 30.3e12,
        "tf32_flop_per_s": 60e12,
        "fp16_flop_per_s": 121e12,
        "bf16_flop_per_s": 121e12,
        "fp8_flop_per_s": 242.5e12,
        "fp4_flop_per_s": None,
        "memory_bytes_per_s": 300e9,
        "peer": None,
        "bus": "pcie4",
        "nic": "ethernet-25",
        "nic_bytes_per_s": 3.125e9,
        "power_w": 72,
        "price_usd_per_hour": 1.3232,
        "source": "NVIDIA L4 Tensor Core GPU Datasheet (dense is half of the sparse rates printed), 2023-04",
    }
    assert rows["t4"]["bf16_flop_per_s"] is None
    wires = [row["name"] for row in interconnect_rows(CATALOG)]
    assert wires[:3] == ["ethernet-10", "ethernet-25", "ethernet-100"]
    assert sorted(wires) == sorted(WIRES)


def test_the_reference_page_is_current():
    page = Path(__file__).parents[2] / "docs/reference/catalog.md"
    assert page.read_text() == render(CATALOG), "run: python -m hops.hardware.reference > docs/reference/catalog.md"


def test_names_are_known_without_reading_the_files_in_full():
    """The two lines that hold a shipped file's names say what the file says."""
    for shelf in (CATALOG.devices, CATALOG.interconnects):
        in_full = {name for entry in shelf.entries.values() for name in (entry.name, *entry.aliases)}
        assert set(shelf.by_any_name) == in_full
        assert all(shelf.entries[name].name == name for name in shelf.entries)
