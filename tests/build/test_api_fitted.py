"""Profiles in specs: found by name or file, applied by kinds of devices and hosts, and warned about far from home."""

from dataclasses import replace

import pytest

from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.cost.profile import read_profile, shipped_profile, write_profile
from hops.errors import SpecError
from hops.program.action import Op
from hops.spec.load import load, loads

SPEC = """
pipeline:
  model: {layers: 8, hidden: 1024, heads: 8, vocab: 50304, max_positions: 1024}
  schedule: 1f1b
  microbatches: 8
  sequence_length: 1024
  attention: unfused
  dropout: false
  fused_gradient_accumulation: false
  p2p: blocking_fused
hardware:
  transport: sockets
  nodes:
    - {name: a, instance_type: p5.4xlarge, devices: [h100], nic: {bandwidth: 100 Gbit/s}}
    - {name: b, instance_type: g6.4xlarge, devices: [l4], nic: {bandwidth: 25 Gbit/s}}
optimizer: {fused: false}
"""
PROFILED = ["hardware.profile=megatron-aws"]


def iteration_ms(*overrides, text=SPEC, folder="."):
    return summarize(simulate(loads(text, overrides=overrides, folder=folder))).iteration_time.mean_ms


def warned(*overrides, text=SPEC):
    return build(loads(text, overrides=[*PROFILED, *overrides])).warnings


def test_a_profile_changes_what_is_simulated():
    assert iteration_ms(*PROFILED) > 1.1 * iteration_ms()


def test_a_profile_is_a_shipped_name_or_a_file_beside_the_spec(tmp_path):
    profile = read_profile(shipped_profile("megatron-aws"))
    write_profile(profile, tmp_path / "mine.yaml")
    assert iteration_ms("hardware.profile=mine.yaml", folder=tmp_path) == iteration_ms(*PROFILED)
    slower = replace(profile, gap=replace(profile.gap, base_s=1.0))
    write_profile(slower, tmp_path / "mine.yaml")
    assert iteration_ms("hardware.profile=mine.yaml", folder=tmp_path) > 500


def test_a_profile_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"there is no file '.*none\.yaml', expected a profile"):
        loads(SPEC, overrides=["hardware.profile=none.yaml"], folder=tmp_path)


def test_the_kind_of_a_host_decides_its_dispatch_and_without_one_that_of_its_devices_hosts():
    forward = {
        kind: build(loads(SPEC, overrides=[*PROFILED, f"hardware.nodes[1].instance_type={kind}"])).costs.seconds(
            1, Op.F
        )
        for kind in ("g6.4xlarge", "g5.2xlarge", "unheard-of")
    }
    assert forward["g5.2xlarge"] > forward["g6.4xlarge"]
    assert forward["unheard-of"] == forward["g6.4xlarge"]


def test_sockets_limit_nics_to_what_a_core_moves():
    fast = ["hardware.nodes[1].nic.bandwidth=100 Gbit/s"]
    assert iteration_ms(*fast) > iteration_ms(*fast, "hardware.transport=rdma")


def test_a_stated_gap_goes_before_the_profiles():
    assert iteration_ms(*PROFILED) > iteration_ms(*PROFILED, "optimizer.host_gap=0 s")


def test_at_home_nothing_is_warned_of():
    assert warned() == ()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("pipeline.sequence_length=64", "sequence_length of 64 is far from what it was fitted on (256 to 4096)"),
        ("pipeline.microbatch_size=8", "microbatch_size of 8 is far from what it was fitted on (1 to 1)"),
        ("pipeline.partition=[6, 2]", None),
        ("pipeline.model.hidden=8192", "hidden of 8192 is far from what it was fitted on"),
        ("pipeline.attention=flash", "attention flash was not seen, only unfused"),
        ("hardware.transport=rdma", "transport rdma was not seen, only sockets"),
        (
            "hardware.nodes[0].devices[0].type=a100",
            "device a100-sxm-80 was not seen: the catalog's figures stand for it",
        ),
        ("hardware.nodes[0].instance_type=p6", "host kind p6 was not seen: that of other hosts stands for it"),
    ],
)
def test_far_from_what_a_profile_was_fitted_on_it_warns(override, message):
    found = warned(override)
    assert (message is None and found == ()) or any(message in each for each in found)


def test_stages_with_many_layers_are_warned_of():
    assert any(
        "layers per stage of 60" in each for each in warned("pipeline.model.layers=64", "pipeline.partition=[4, 60]")
    )


def test_an_imported_launch_takes_a_profile_by_name(tmp_path):
    """`hops import megatron --profile`; import_with a name that is not there is refused at once."""
    from typer.testing import CliRunner

    from hops.cli.importing import app

    flags = "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --vocab-size 50304 "
    flags += "--micro-batch-size 1 --pipeline-model-parallel-size 2 --max-position-embeddings 1024"
    command = ["megatron", "--flags", flags, "--devices", "h100,l4", "-o", str(tmp_path / "spec.yaml")]
    done = CliRunner().invoke(app, [*command, "--profile", "megatron-aws"], catch_exceptions=False)
    assert done.exit_code == 0
    assert load(tmp_path / "spec.yaml").hardware.profile == str(shipped_profile("megatron-aws"))
    refused = CliRunner().invoke(app, [*command, "--profile", "none.yaml"])
    assert isinstance(refused.exception, SpecError)
