"""Rows of public tables: read with all complaints, resolved, put into a spec's words, or refused with the reason."""

import json

import pytest

from hops.errors import UsageError
from hops.published.job import PublishedJob, precision_of, recompute_of
from hops.published.models import bare, dense_layers, named_model
from hops.published.profiles import chosen, knows
from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow, UnreadRow, read_rows
from hops.published.units import measured_seconds
from hops.spec.load import from_dict

ROW = {
    "id": "x-1",
    "source": "vtrain-single",
    "model": "gpt-h1024-l16",
    "shape": {"layers": 16, "hidden": 1024, "heads": 16},
    "gpu": "A100",
    "n_gpus": 8,
    "gpus_per_node": 8,
    "tp": 2,
    "pp": 2,
    "mbs": 2,
    "gbs": 32,
    "seq": 1024,
    "precision": "fp16",
    "zero": 0,
    "step_s": 0.5,
}


def read(data):
    from dataclasses import fields

    from hops.decode.decode import Where, decode

    found = decode(PublishedRow, data, Where(name="row", strict=False))
    return {each.name: getattr(found, each.name) for each in fields(PublishedRow)}


def document(**changes):
    return PublishedJob.of(PublishedRow(**read({**ROW, **changes}))).document()


def test_a_row_becomes_a_spec_whose_sizes_multiply():
    spec = from_dict(document())
    mesh = spec.mesh()
    assert (mesh.tensor, mesh.pipeline, mesh.data, mesh.num_ranks) == (2, 2, 2, 8)
    assert spec.pipeline.microbatches == 32 // (2 * 2)
    assert spec.pipeline.recompute == "full"  # what Megatron-DeepSpeed of that source does
    assert spec.pipeline.model.vocab == 50432  # 50257 padded to a multiple of 128 x 2


def test_copies_follow_from_the_devices_where_they_are_not_stated():
    assert document(n_gpus=16)["parallel"]["data"] == 4
    assert document(cp=2, n_gpus=16)["parallel"]["context"] == 2


def test_a_stated_virtual_pipeline_is_interleaved():
    found = document(vp=2)["pipeline"]
    assert found["schedule"] == {"name": "interleaved_1f1b", "chunks": 2}


def test_layers_that_do_not_divide_leave_fewer_to_the_ends():
    shape = {"layers": 22, "hidden": 1024, "heads": 16}
    found = document(shape=shape, pp=8, tp=1)["pipeline"]["partition"]
    assert found == [2, 3, 3, 3, 3, 3, 3, 2]


def test_a_stated_layout_is_spelled_out():
    flags = {"pipeline-model-parallel-layout": "Et*2|(tt|)*2tL", "vocab-size": 1000, "swiglu": True}
    shape = {"layers": 7, "hidden": 1024, "heads": 16}
    found = document(shape=shape, pp=4, tp=1, gbs=32, source="megatron-golden", options={"flags": flags})
    assert found["pipeline"]["partition"] == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tp": None}, "the row does not state tp, without which there is no job"),
        ({"seq": None, "gbs": None}, "the row does not state seq, gbs, without which there is no job"),
        ({"gpu": None}, "the row does not state its device"),
        ({"gpu": "TPU v9"}, "the device 'TPU v9' is not known"),
        ({"n_gpus": 6}, "6 devices are no multiple of tp 2 x cp 1 x pp 2 = 4"),
        ({"gbs": 30}, "30 samples are not divided by 2 copies into microbatches of 2"),
        ({"kind": "lora"}, "a lora run trains few parameters of a frozen model"),
        ({"metric": "F time of one layer"}, "F time of one layer is the time of one layer by itself"),
        ({"model": "mimo_vlm"}, "has layers of a kind"),
        ({"model": "unheard", "shape": None}, "no model is known by the name 'unheard'"),
        ({"schedule": "snake"}, "the schedule 'snake' is not known"),
        ({"recompute": "selective: everything"}, "recomputation of everything is not known"),
        ({"precision": "int4"}, "the precision 'int4' is not known"),
    ],
)
def test_what_is_no_spec_is_refused_with_its_reason(changes, reason):
    with pytest.raises(RowRefusedError) as error:
        document(**changes)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bf16", ("bf16", None)),
        ("FP8-CS", ("bf16", {"format": "fp8", "scaling": "current"})),
        ("MXFP8", ("bf16", {"format": "fp8", "scaling": "block"})),
        ("amp_fp8", ("bf16", {"format": "fp8", "scaling": "delayed"})),
        ("NVFP4", ("bf16", {"format": "fp4", "scaling": "block"})),
    ],
)
def test_precisions_are_recipes(text, expected):
    assert precision_of(PublishedRow(**read({**ROW, "precision": text})), quantized_weights=False) == expected


def test_recompute_names_modules():
    def of(text):
        return recompute_of(PublishedRow(**read({**ROW, "recompute": text})))

    assert of("none") == of("selective: (none)") == "none"
    assert of("full") == "full"
    assert of("selective: mlp,core_attn") == {"kind": "selective", "modules": ["mlp", "core_attn"]}


def test_names_of_models_are_found_however_they_are_written():
    assert bare("Qwen3_30B_a3B") == "qwen330ba3b"
    assert named_model("LLAMA3_70B") is named_model("llama3-70b")
    assert named_model("deepseekv2").experts.count == 160
    assert named_model("gpt-unheard") is None


def test_layers_without_experts_by_megatrons_frequency():
    assert dense_layers("([0]*3+[1]*2)", 5) == (0, 1, 2)
    assert dense_layers(1, 4) == ()
    assert dense_layers("2", 4) == (1, 3)
    with pytest.raises(RowRefusedError, match="names 5 layers, but the model has 6"):
        dense_layers("([0]*3+[1]*2)", 6)


def test_flops_per_second_become_seconds():
    """Half of the scores count, except where a source counts all of them."""
    stated = read({**ROW, "step_s": None, "tflops_per_gpu": 100.0})
    job = PublishedJob.of(PublishedRow(**stated))
    whole = job.model.model_flop(sequence_length=1024, samples=32)
    scores = 6.0 * 1024 * 32 * 16 * 1024 * 2 * 1024
    assert measured_seconds(job.row, job) == pytest.approx((whole - scores / 2) / (100e12 * 8))
    full = PublishedJob.of(PublishedRow(**{**stated, "source": "nemo-long-seq"}))
    assert measured_seconds(full.row, full) == pytest.approx(
        full.model.model_flop(sequence_length=1024, samples=32) / (100e12 * 8)
    )


def test_a_file_is_read_line_by_line_and_a_wrong_row_is_refused_not_fatal(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n\n" + json.dumps({**ROW, "id": "x-2", "tp": "two", "pp": -1}) + "\n")
    good, bad = read_rows(path)
    assert isinstance(good, PublishedRow)
    assert isinstance(bad, UnreadRow)
    assert bad.id == "x-2"
    assert f"{path}:3" in bad.reason
    assert "tp" in bad.reason
    assert "pp" in bad.reason  # all that is wrong is said


def test_what_is_no_json_lines_is_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("id,source\n")
    with pytest.raises(UsageError, match=r"rows.jsonl:1:1: is not JSON"):
        read_rows(path)
    path.write_text("")
    with pytest.raises(UsageError, match="is empty, expected published rows"):
        read_rows(path)


@pytest.mark.parametrize(
    ("source", "note", "profile"),
    [
        ("vtrain-single", "", "published-megatron-deepspeed"),
        ("megatron-bridge", "release 26.04.01; LLAMA3", "published-megatron-bridge-26.02"),
        ("megatron-bridge", "release 25.11; LLAMA3", "published-megatron-bridge-2025"),
        ("megatron-bridge", "", "published-megatron-bridge"),
        ("megatron-golden", "", "published-megatron"),
        ("somebody-else", "", "published"),
    ],
)
def test_a_row_is_predicted_with_the_profile_of_its_framework(source, note, profile):
    job = PublishedJob.of(PublishedRow(**read({**ROW, "source": source, "note": note})))
    assert chosen(None)(job) == profile
    assert knows(profile, "a100-sxm-80")
    assert chosen("none")(job) is None
