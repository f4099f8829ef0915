"""What a spec becomes for other runtimes: files that are read back as the same program, and refusals that say why."""

import tomllib

import pytest

from hops.errors import UsageError
from hops.exporters import EXPORTERS, launchable
from hops.exporters.torchtitan import module_names, schedule_name
from hops.importers.megatron.launch import launch_from_flags
from hops.importers.megatron.spec import spec_text
from hops.program.program import Program
from hops.program.pytorch_csv import parse_csv
from hops.program.shape import Shape
from hops.spec.load import loads

STATED = """\
pipeline:
  stage_times: {{forward: 2 ms, backward: 4 ms, message: 1 MiB}}
  microbatches: {microbatches}
  schedule: {schedule}
hardware: {{nodes: [{{name: a, devices: [{devices}]}}]}}
"""
MODEL = """\
pipeline:
  model: {{layers: 10, hidden: 512, heads: 8, kv_heads: 4, vocab: 8192, gated: true, positions: rotary, norm: rms,
    biases: false, tied: {tied}, max_positions: 1024, ffn_hidden: 1536}}
  sequence_length: 512
  microbatches: {microbatches}
  microbatch_size: 2
  partition: {partition}
  schedule: {schedule}
  recompute: {recompute}
  dropout: {dropout}
hardware: {{nodes: [{{name: a, devices: [h100, h100]}}, {{name: b, devices: [l4, l4]}}], interconnect: ethernet-25}}
optimizer: {{distributed: {distributed}, data_parallel: 2, reduction_interconnect: ethernet-25}}
"""


def stated(schedule, *, microbatches=8, ranks=4):
    devices = ", ".join(["h100"] * ranks)
    return launchable(loads(STATED.format(schedule=schedule, microbatches=microbatches, devices=devices)), "s.yaml")


def of_model(schedule="1f1b", **changes):
    usual = {
        "microbatches": 8, "partition": "[3, 3, 2, 2]", "recompute": "none", "dropout": "true", "tied": "true",
        "distributed": "false",
    }  # fmt: skip
    return launchable(loads(MODEL.format(schedule=schedule, **{**usual, **changes})), "s.yaml")


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "{name: interleaved_1f1b, chunks: 2}", "zb_h1", "zb_v"])
def test_torch_files_are_the_program(schedule):
    plan = stated(schedule)
    exported = EXPORTERS.get("torch")().export(plan)
    assert list(exported.files) == ["schedule.csv", "schedule_with_communication.csv"]
    for text in exported.files.values():
        assert parse_csv(text) == plan.program
    waits = "interleaved" not in schedule  # one queue for both directions
    assert ("would wait for ever" in exported.notes[-1]) is waits


def test_program_file_is_the_program():
    plan = stated("zb_v")
    (text,) = EXPORTERS.get("program")().export(plan).files.values()
    assert Program.parse(text) == plan.program


def test_a_policy_has_nothing_to_export():
    with pytest.raises(UsageError, match="hops_hetero_adaptive decides during the run and has no program to export"):
        stated("hops_hetero_adaptive")


def test_torchtitan_keys_say_placement_order_and_cut():
    exported = EXPORTERS.get("torchtitan")().export(of_model("zb_v", partition="[2, 1, 1, 1, 1, 1, 1, 2]"))
    table = tomllib.loads(exported.files["torchtitan.toml"])
    parallelism = table["parallelism"]
    parts = parallelism.pop("module_fqns_per_model_part")
    assert parallelism == {
        "pipeline_parallel_degree": 4,
        "pipeline_parallel_schedule": "ZBVZeroBubble",
        "pipeline_parallel_schedule_csv": "schedule.csv",
        "pipeline_parallel_microbatch_size": 2,
    }
    assert parts[0] == ["tok_embeddings", "layers.0", "layers.1"]
    assert parts[-1] == ["layers.8", "layers.9", "norm", "output"]
    assert table["training"] == {"local_batch_size": 16, "seq_len": 512}
    assert "--parallelism.pipeline_parallel_degree 4\n" in exported.files["torchtitan.flags"]
    assert "--parallelism.num_pp_microbatches 8\n" in exported.files["torchtitan.flags"]
    assert any("switch torch.compile off" in note for note in exported.notes)


def test_torchtitan_says_what_it_lacks_and_refuses_other_placements():
    exported = EXPORTERS.get("torchtitan")().export(stated("1f1b"))
    assert any("the spec names no model" in note for note in exported.notes)
    assert not any("torch.compile" in note for note in exported.notes)
    assert schedule_name(Shape.loop(3, num_microbatches=4, chunks=3)) == "Interleaved1F1B"
    with pytest.raises(UsageError, match="torchtitan cannot place stages on ranks 0 0 1 1: expected a loop"):
        schedule_name(Shape(num_microbatches=4, rank_of_stage=(0, 0, 1, 1)))
    assert module_names((0, 2)) == [["tok_embeddings"], ["layers.0", "layers.1", "norm", "output"]]


@pytest.mark.parametrize(
    ("schedule", "changes"),
    [
        ("1f1b", {}),
        ("1f1b", {"recompute": "full", "tied": "false", "distributed": "true"}),
        ("1f1b", {"recompute": "selective", "dropout": "false"}),
        ("{name: interleaved_1f1b, chunks: 2}", {"partition": "[2, 1, 1, 1, 1, 1, 1, 2]"}),
        ("{name: interleaved_1f1b, chunks: 2, microbatch_group_size: 8}", {"partition": "[2, 1, 1, 1, 1, 1, 1, 2]"}),
    ],
)
def test_megatron_flags_are_read_back_as_the_same_run(schedule, changes):
    plan = of_model(schedule, **changes)
    text = EXPORTERS.get("megatron")().export(plan).files["megatron.sh"]
    script = f'{text}torchrun --nproc_per_node 8 pretrain_gpt.py "${{MEGATRON_FLAGS[@]}}"'
    launch = launch_from_flags(script, ["h100", "h100", "l4", "l4"] * 2)
    again = launchable(loads(spec_text(launch)), "again")
    assert again.program == plan.program
    assert again.layers == plan.layers
    assert again.spec.pipeline.model is not None
    assert plan.spec.pipeline.model is not None
    assert again.spec.pipeline.model.transformer() == plan.spec.pipeline.model.transformer()
    for key in ("microbatches", "microbatch_size", "sequence_length", "recompute", "precision", "attention", "dropout"):
        assert getattr(again.spec.pipeline, key) == getattr(plan.spec.pipeline, key), key
    assert again.spec.optimizer.data_parallel == 2
    assert again.spec.optimizer.distributed == plan.spec.optimizer.distributed


@pytest.mark.parametrize("schedule", ["gpipe", "zb_h1", "zb_v"])
def test_megatron_refuses_what_it_does_not_run(schedule):
    with pytest.raises(
        UsageError, match=f"Megatron-LM cannot run the program of {schedule}: expected the order of 1f1b"
    ):
        EXPORTERS.get("megatron")().export(stated(schedule))


def test_megatron_without_a_model_has_the_pipeline_alone():
    exported = EXPORTERS.get("megatron")().export(stated("{name: interleaved_1f1b, chunks: 2}"))
    text = exported.files["megatron.sh"]
    assert "--num-virtual-stages-per-pipeline-rank 2\n" in text
    assert "--hidden-size" not in text
    assert any("the spec names no model" in note for note in exported.notes)


@pytest.mark.parametrize(
    ("schedule", "what"),
    [("chimera", "2 copies of the model"), ("{name: seq1f1b, slices: 3}", "3 slices per microbatch")],
)
@pytest.mark.parametrize("exporter", ["torch", "megatron"])
def test_a_stage_on_two_ranks_and_slices_are_no_words_of_other_runtimes(exporter, schedule, what):
    spec = loads(STATED.format(microbatches=4, schedule=schedule, devices="h100, h100"))
    with pytest.raises(UsageError) as caught:
        EXPORTERS.get(exporter)().export(launchable(spec, "spec"))
    if exporter == "torch":
        assert str(caught.value).startswith(f"the program has {what}, but PyTorch's schedules have one of each stage")


def test_two_copies_and_slices_go_into_hops_s_own_text_form():
    for schedule in ("chimera", "seq1f1b"):
        plan = launchable(loads(STATED.format(microbatches=4, schedule=schedule, devices="h100, h100")), "spec")
        assert Program.parse(EXPORTERS.get("program")().export(plan).files["program.txt"]) == plan.program
