"""`hops import hf`: a model becomes a spec that runs, and every key of it is accounted for."""

import json
from pathlib import Path

import pytest

SMALL = {
    "model_type": "qwen2_moe",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "vocab_size": 1024,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 256,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
}


@pytest.fixture
def model(command):
    Path("config.json").write_text(json.dumps(SMALL))
    return command


def test_the_spec_runs(model):
    code, out, _ = model("import", "hf", "config.json", "--hosts", "2x1xl4", "-o", "s.yaml", "--microbatches", "4")
    assert code == 0
    assert "applied:\n  model_type\n" in out
    assert "change nothing that HOPS models:\n  rope_theta\n" in out
    assert out.endswith("wrote s.yaml; next: hops run s.yaml\n")
    text = Path("s.yaml").read_text()
    assert text.startswith("# config.json: a qwen2_moe of 0.006 billion parameters, imported from Hugging Face\n")
    assert "sequence_length: 512" in text
    assert "- count: 2\n" in text
    code, out, err = model("run", "s.yaml")
    assert (code, err) == (0, "")


def test_without_a_file_the_spec_goes_to_standard_output(model):
    code, out, err = model("import", "hf", "config.json", "--hosts", "1x2xh100", "--sequence-length", "128")
    assert code == 0
    assert "sequence_length: 128" in out
    assert "applied:" in err
    assert "applied:" not in out


def test_keys_that_are_not_known_are_refused_or_left_out_as_asked(model):
    Path("config.json").write_text(json.dumps(SMALL | {"novel": 1, "vision_config": {}}))
    code, out, err = model("import", "hf", "config.json", "--hosts", "1x2xl4", "-o", "s.yaml")
    assert (code, out) == (2, "")
    assert "config.json: novel: is no key of qwen2_moe that HOPS knows; leave it out if it changes nothing" in err
    assert not Path("s.yaml").exists()
    code, out, _ = model(
        "import", "hf", "config.json", "--hosts", "1x2xl4", "-o", "s.yaml", "--without", "novel,vision_config"
    )
    assert code == 0
    assert "left out, as asked:\n  novel\n  vision_config\n" in out


def test_more_devices_than_layers_are_refused_before_anything_is_written(model):
    code, _, err = model("import", "hf", "config.json", "-o", "s.yaml")
    assert code == 2
    assert "got 4 layers for 8 stages, expected at least one layer each; use fewer devices" in err
    assert not Path("s.yaml").exists()
