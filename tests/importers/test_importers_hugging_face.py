"""A shape written out in a spec's words is the same shape when it is read."""

import pytest

from hops.importers.hugging_face import written_shape
from hops.model.hugging_face import hugging_face_model
from hops.model.transformer import MODELS
from hops.spec.model import ModelChoice


@pytest.mark.parametrize("name", MODELS)
def test_a_written_shape_is_read_as_the_same(name):
    assert ModelChoice(**written_shape(MODELS[name])).transformer() == MODELS[name]


@pytest.mark.parametrize(
    "more",
    [
        {"num_attention_heads": 16, "model_type": "gemma3_text", "head_dim": 32},
        {"model_type": "gpt_oss", "num_local_experts": 4, "num_experts_per_tok": 2},
        {"model_type": "bloom"},
        {
            "model_type": "deepseek_v3",
            "kv_lora_rank": 32,
            "moe_intermediate_size": 64,
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "num_nextn_predict_layers": 1,
        },
    ],
    ids=lambda more: more["model_type"],
)
def test_uncommon_shapes_too(more):
    base = {"num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8}
    config = base | {"vocab_size": 1024} | more
    if config["model_type"] == "bloom":
        del config["intermediate_size"]
    shape = hugging_face_model(config).transformer
    assert ModelChoice(**written_shape(shape)).transformer() == shape
