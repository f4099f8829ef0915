"""A spec that names a Hugging Face file runs as the shape in it does."""

import json

import pytest

from hops.build.run import simulate
from hops.errors import SpecError
from hops.model.kinds import Experts
from hops.spec.load import load, loads
from hops.spec.text import dump

MIXTRAL = {
    "model_type": "mixtral",
    "num_hidden_layers": 8,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 4096,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
}
SPEC = """
simulation: {iterations: 2, seed: 1}
pipeline: {model: {hf: config.json}, microbatches: 4}
hardware: {nodes: [{devices: [{type: h100, count: 2}]}]}
"""
INLINE = SPEC.replace(
    "{hf: config.json}",
    "{layers: 8, hidden: 512, heads: 8, kv_heads: 4, vocab: 4096, ffn_hidden: 1024, max_positions: 1024, gated: true, "
    "positions: rotary, norm: rms, biases: false, tied: false, experts: {count: 8, top_k: 2, hidden: 1024}}",
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(MIXTRAL))
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def test_the_file_is_the_shape_in_it(folder):
    by_file, inline = load(folder / "spec.yaml"), loads(INLINE)
    assert by_file.pipeline.model.transformer() == inline.pipeline.model.transformer()
    assert by_file.pipeline.sequence_length == 1024
    assert simulate(by_file).trace == simulate(inline).trace


def test_written_out_it_is_the_same_spec_again(folder):
    spec = load(folder / "spec.yaml")
    assert loads(dump(spec), folder=folder) == spec


def test_parts_of_the_shape_may_be_changed(folder):
    changed = load(folder / "spec.yaml", overrides=["pipeline.model.layers=4", "pipeline.model.mtp_layers=1"])
    model = changed.pipeline.model.transformer()
    assert (model.layers, model.mtp_layers, model.hidden) == (4, 1, 512)
    assert model.experts == Experts(count=8, top_k=2, hidden=1024)


def test_a_file_written_anew_is_read_anew(folder):
    spec = load(folder / "spec.yaml")
    (folder / "config.json").write_text(json.dumps(MIXTRAL | {"num_hidden_layers": 16}))
    assert load(folder / "spec.yaml").pipeline.model.transformer().layers == 16
    assert spec.pipeline.model.layers == 8


def test_what_is_wrong_in_the_file_is_said_at_the_spec(folder):
    (folder / "config.json").write_text(json.dumps(MIXTRAL | {"model_type": "mamba"}))
    with pytest.raises(SpecError) as error:
        load(folder / "spec.yaml")
    expected = f"{folder}/spec.yaml:3:19: pipeline.model: {folder}/config.json: got model_type 'mamba'; "
    assert str(error.value).startswith(expected)
    (folder / "config.json").unlink()
    with pytest.raises(SpecError) as error:
        load(folder / "spec.yaml")
    assert "cannot be read: there is no such file; expected the config.json of a Hugging Face model" in str(error.value)
