"""Users' catalog files are read as ours are; a wrong one gets a message that names file, key, what and expected."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hops.errors import CatalogError
from hops.hardware.catalog import DATA, Catalog

DEVICE = """\
device: toy
title: Toy device
vendor: Toys
aliases: [plaything]
peak: {fp32: 1 TFLOP/s, tf32: unsupported, fp16: 2 TFLOP/s, bf16: unsupported, fp8: unsupported}
memory: 8 GiB
memory_bandwidth: {value: 100 GB/s, source: sheet}
launch_overhead: 5 us
operation_overhead: 0 us
bus: pcie4
nic: toy-net
power: 1.5 kW
price: 0 USD/h
sources:
  sheet: {document: Toy sheet, url: "https://toys.example", date: 2025-01}
"""
WIRE = """\
interconnect: toy-net
title: Toy network
topology: network
bandwidth: 8 Gbit/s
latency: 20 us
"""


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return Catalog.load([folder])


def said(error, file, message):
    """Whether a line of the error says this of the file, with line and column."""
    lines = str(error.value).splitlines()
    return any(re.match(rf"{re.escape(str(file))}:\d+:\d+: {re.escape(message)}", line) for line in lines)


def test_a_folder_of_files_is_added_to_the_catalog(tmp_path):
    catalog = write(tmp_path, device=DEVICE, wire=WIRE)
    toy = catalog.device("plaything")
    assert toy.name == "toy"
    assert toy.rates == {"fp32": 1e12, "fp16": 2e12}
    assert (toy.memory_bytes, toy.memory_bandwidth, toy.power_w) == (8 * 2**30, 100e9, 1500)
    assert (toy.launch_s, toy.operation_s, toy.price_per_hour, toy.peer) == (5e-6, 0, 0, None)
    assert toy.bus is catalog.interconnect("pcie4")
    assert (toy.nic.bandwidth, toy.nic.latency_s) == (1e9, 20e-6)
    assert toy.sources["memory_bandwidth"].document == "Toy sheet"
    assert toy.sources["memory"].document == "stated in device.yaml"
    assert catalog.device_names()[-1] == "toy"
    assert catalog.interconnect_names()[-1] == "toy-net"


def test_files_may_be_named_one_by_one(tmp_path):
    write(tmp_path, device=DEVICE, wire=WIRE)
    catalog = Catalog.load([tmp_path / "device.yaml", tmp_path / "wire.yaml"])
    assert catalog.device("toy").nic.name == "toy-net"


def test_the_built_in_catalog_stays_as_it_is(tmp_path):
    write(tmp_path, device=DEVICE, wire=WIRE)
    assert "toy" not in Catalog.load().device_names()


def test_our_own_file_under_another_name_reads_as_the_same_device(tmp_path):
    text = (DATA / "devices/l4.yaml").read_text().replace("device: l4\n", "device: my-l4\n")
    mine, ours = write(tmp_path, mine=text).device("my-l4"), Catalog.load().device("l4")
    assert mine.sources == ours.sources
    assert (mine.rates, mine.memory_bytes, mine.bus) == (ours.rates, ours.memory_bytes, ours.bus)


@pytest.mark.parametrize(
    ("change", "name"), [(("device: toy", "device: l4"), "l4"), (("[plaything]", "[h100]"), "h100")]
)
def test_a_name_that_is_taken_names_both_files(tmp_path, change, name):
    with pytest.raises(CatalogError) as error:
        write(tmp_path, device=DEVICE.replace(*change), wire=WIRE)
    ours = DATA / "devices" / ("l4.yaml" if name == "l4" else "h100-sxm.yaml")
    assert str(error.value) == (
        f"{tmp_path}/device.yaml: device name '{name}' is taken by {ours}: names and aliases must differ; rename"
    )


def test_the_files_that_the_reference_page_shows_are_read(tmp_path):
    page = Path(__file__).parents[2] / "docs/reference/catalog.md"
    shown = re.findall(r"```yaml (\S+)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for name, text in shown:
        (tmp_path / name).write_text(text)
    catalog = Catalog.load([tmp_path])
    assert [name for name, _ in shown] == ["my-gpu.yaml", "my-wire.yaml"]
    assert catalog.device("my-gpu").memory_bytes == 48 * 2**30
    assert catalog.device("my-gpu").nic.bandwidth == 6.25e9


def test_two_files_of_the_user_with_one_name_are_both_named(tmp_path):
    with pytest.raises(CatalogError, match=r"b\.yaml: interconnect name 'toy-net' is taken by .*/a\.yaml"):
        write(tmp_path, a=WIRE, b=WIRE)


BAD_DEVICES = [
    ("memory: 8 GiB", "memory: 8", "memory: got 8, expected an amount of memory with its unit, such as 80 GiB"),
    ("memory: 8 GiB", "memory: 8 G", "memory: got '8 G', expected an amount of memory, such as 80 GiB: write GiB"),
    ("memory: 8 GiB", "memory: 0 GiB", "memory: got '0 GiB', expected more than 0"),
    ("memory: 8 GiB", "memory: -8 GiB", "memory: got '-8 GiB', expected an amount of memory of at least 0"),
    ("memory: 8 GiB", "memory: true", "memory: got true, expected an amount of memory"),
    ("memory: 8 GiB", "memory: .nan", "memory: got .nan, expected a finite number"),
    ("memory: 8 GiB", "memory:", "memory: got null, expected an amount of memory"),
    ("memory: 8 GiB", "memory: [8 GiB]", "memory: got a list, expected an amount of memory"),
    ("memory: 8 GiB\n", "", "memory: missing; add it"),
    ("memory: 8", "memroy: 8", "memroy: unknown key; did you mean memory?"),
    ("100 GB/s,", "100 Gb/s,", "memory_bandwidth.value: got '100 Gb/s', expected a bandwidth, such as 25 Gbit/s"),
    ("source: sheet", "source: shete", "memory_bandwidth.source: got 'shete', expected a key of sources: sheet"),
    (", source: sheet", "", "memory_bandwidth.source: missing; add it"),
    ("date: 2025-01", "date: 2025-13", "sources.sheet.date: got '2025-13', expected year and month such as 2024-09"),
    ("date: 2025-01", "date: 2025", "sources.sheet.date: got 2025, expected text"),
    ("document: Toy sheet, ", "", "sources.sheet.document: missing; add it"),
    ("fp8: unsupported", "fp8: none", "peak.fp8: got 'none', expected a compute rate, such as 312 TFLOP/s"),
    (", fp8: unsupported", "", "peak.fp8: missing; add it"),
    ("fp16: 2 TFLOP/s", "fp16: 2 TFLOPS", "peak.fp16: got '2 TFLOPS', expected a compute rate"),
    ("5 us", "5", "launch_overhead: got 5, expected a time with its unit, such as 1.5 ms or 15 us"),
    ("1.5 kW", "1500", "power: got 1500, expected a power with its unit, such as 700 W"),
    ("0 USD/h", "3 $/h", "price: got '3 $/h', expected a price, such as 2.50 USD/h: write USD/h"),
    ("bus: pcie4", "bus: pcie44", "bus: unknown interconnect 'pcie44': did you mean 'pcie4'? known are "),
    ("bus: pcie4", "bus: nvlink4", "bus: got 'nvlink4' of topology switch, expected topology root"),
    ("nic: toy-net", "nic: nvlink4", "nic: got 'nvlink4' of topology switch, expected topology network"),
    ("bus: pcie4", "bus: pcie4\npeer: pcie4", "peer: got 'pcie4' of topology root, expected topology switch or mesh"),
    ("device: toy", "device: Toy 1", "device: got 'Toy 1', expected a name of a-z, 0-9 and single '-'"),
    ("title: Toy device", "title: 5", "title: got 5, expected text"),
    ("[plaything]", "plaything", "aliases: got 'plaything', expected a list"),
    ("[plaything]", "[4090]", 'aliases[0]: got 4090, expected text; write "4090" if it is a name'),
    ("device: toy\n", "", "got neither, expected a mapping with either the key 'device' or 'interconnect'"),
    (
        "device: toy",
        "device: toy\ninterconnect: toy",
        "got both, expected a mapping with either the key 'device' or 'interconnect'",
    ),
    ("device: toy", "device: toy\ndevice: toy", "device: the key device is given twice, first at 1:1; remove one"),
    ("device: toy", "device: {", "not YAML: expected ',' or '}', but got ':' (while parsing a flow mapping)"),
]


@pytest.mark.parametrize(
    ("old", "new", "message"), BAD_DEVICES, ids=[new or f"no {old}" for old, new, _ in BAD_DEVICES]
)
def test_a_wrong_device_file_gets_a_pointed_message(tmp_path, old, new, message):
    assert DEVICE.count(old) >= 1
    with pytest.raises(CatalogError) as error:
        write(tmp_path, device=DEVICE.replace(old, new, 1), wire=WIRE)
    assert said(error, tmp_path / "device.yaml", message), str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("network\nb", "star\nb", "topology: got 'star', expected one of switch, mesh, root, socket, network"),
        ("network\nb", "[network]\nb", "topology: got a list, expected one of switch, mesh, root, socket"),
        ("8 Gbit/s", "0 Gbit/s", "bandwidth: got '0 Gbit/s', expected more than 0"),
        ("8 Gbit/s", "8 GiB", "bandwidth: got '8 GiB', expected a bandwidth"),
        ("20 us", "20 m", "latency: got '20 m', expected a time, such as 1.5 ms or 15 us: write ms"),
        ("latency: 20 us", "sources: 5", "sources: got 5, expected a mapping of keys to values"),
    ],
)
def test_a_wrong_interconnect_file_gets_a_pointed_message(tmp_path, old, new, message):
    with pytest.raises(CatalogError) as error:
        write(tmp_path, wire=WIRE.replace(old, new, 1))
    assert said(error, tmp_path / "wire.yaml", message), str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the document is empty, expected a mapping"),
        (b"- a\n- b\n", "got a list, expected a mapping"),
        (b"a: \x07", "not a YAML document: unacceptable character"),
        (b"&a [*a]", "[0]: the anchor 'a' contains itself; write the value out"),
        (b"device: &a {b: *a}\n", "title: missing"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path, content, message):
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(CatalogError) as error:
        Catalog.load([file])
    assert said(error, file, message), str(error.value)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(CatalogError) as error:
        Catalog.load([Path("/nowhere/x.yaml")])
    assert str(error.value) == "/nowhere/x.yaml: cannot be read: there is no such file; expected a catalog file in YAML"
    with pytest.raises(CatalogError) as error:
        Catalog.load([tmp_path])
    assert "got a folder without *.yaml, expected catalog files; add one, or name a file" in str(error.value)


def test_a_device_without_any_precision_is_refused(tmp_path):
    text = DEVICE.replace("1 TFLOP/s", "unsupported").replace("2 TFLOP/s", "unsupported")
    with pytest.raises(CatalogError, match=r"device\.yaml:5:7: peak: got 'unsupported' for every precision, exp"):
        write(tmp_path, device=text, wire=WIRE)


@pytest.mark.parametrize("file", [DATA / "devices/h100-sxm.yaml", DATA / "interconnects/nvlink4.yaml"])
def test_leaving_out_any_required_key_of_our_own_files_names_the_key(tmp_path, file):
    """So every key that the built-in files state is checked, and none is read by accident."""
    content = YAML(typ="safe", pure=True).load(file.read_text())
    yaml = YAML()
    optional = {"aliases", "peer", "cache", "sources", "device", "interconnect", "collective_share", "in_switch"}
    for key in [key for key in content if key not in optional]:
        copy = tmp_path / f"{key}.yaml"
        rest = {name: value for name, value in content.items() if name != key}
        with copy.open("w") as stream:
            yaml.dump(rest, stream)
        with pytest.raises(CatalogError) as error:
            Catalog.load([copy])
        assert said(error, copy, f"{key}: missing"), str(error.value)
