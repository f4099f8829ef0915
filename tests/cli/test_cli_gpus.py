"""`hops init --from-gpus`: the driver's names become the catalog's, and what is not known is refused."""

import subprocess

import pytest

from hops.cli.gpus import FoundGpu, catalog_name
from hops.errors import UsageError
from hops.hardware.catalog import Catalog

GIB = 1 << 30
CATALOG = Catalog.load()
KINDS = [CATALOG.device(name) for name in CATALOG.device_names()]


@pytest.mark.parametrize(
    ("name", "mib", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "h100-sxm"),
        ("NVIDIA H100 PCIe", 81559, "h100-pcie"),
        ("NVIDIA H200", 143771, "h200-sxm"),
        ("NVIDIA A100-SXM4-40GB", 40960, "a100-sxm-40"),
        ("NVIDIA A100-SXM4-80GB", 81920, "a100-sxm-80"),
        ("NVIDIA A100-PCIE-40GB", 40960, "a100-pcie-40"),
        ("NVIDIA L4", 23034, "l4"),
        ("NVIDIA A10G", 23028, "a10g"),
        ("Tesla T4", 15360, "t4"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
    ],
)
def test_names_of_the_driver_are_found_in_the_catalog(name, mib, expected):
    assert catalog_name(FoundGpu(name=name, memory_bytes=mib << 20), KINDS) == expected


def test_a_device_that_is_not_in_the_catalog_is_refused():
    with pytest.raises(UsageError, match="the catalog has no NVIDIA X9 with 10 GiB; add its figures"):
        catalog_name(FoundGpu(name="NVIDIA X9", memory_bytes=10 * GIB), KINDS)
    with pytest.raises(UsageError, match="the catalog has no NVIDIA H100 NVL with 94 GiB"):
        catalog_name(FoundGpu(name="NVIDIA H100 NVL", memory_bytes=94 * GIB), KINDS)


def answered(monkeypatch, text):
    done = subprocess.CompletedProcess(args=(), returncode=0, stdout=text)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_init_writes_a_spec_of_the_machines_gpus_that_runs(command, monkeypatch, tmp_path):
    answered(monkeypatch, "NVIDIA H100 80GB HBM3, 81559\n" * 4)
    assert command("init", "mine.yaml", "--from-gpus")[0] == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "devices: [{type: h100-sxm, count: 4}]" in (tmp_path / "mine.yaml").read_text()
    assert command("run", "mine.yaml", "-q")[0] == 0


@pytest.mark.parametrize(("text", "says"), [("", "says ''"), ("NVIDIA H100, [N/A]\n", "says 'NVIDIA H100, [N/A]'")])
def test_a_driver_that_names_none_is_said(command, monkeypatch, text, says):
    answered(monkeypatch, text)
    code, _, err = command("init", "mine.yaml", "--from-gpus")
    assert code == 2
    assert says in err
    assert "leave out --from-gpus" in err


def test_without_the_drivers_tool_it_says_so(command, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = command("init", "mine.yaml", "--from-gpus")
    assert code == 2
    assert "there is no nvidia-smi here" in err
