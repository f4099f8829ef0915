"""A file of another tool in a spec's place is named, with what makes a spec of it."""

import pytest

from hops.errors import SpecError
from hops.spec.foreign import foreign
from hops.spec.load import load, loads


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("config.json", '{"model_type": "llama", "hidden_size": 4096}', "a Hugging Face config"),
        ("ds.json", '{"zero_optimization": {"stage": 1}}', "a DeepSpeed config"),
        ("model_config.yaml", "MODEL_ARGS: {--num-layers: 4}", "a model_config.yaml of Megatron-LM"),
        ("recipe.yaml", "model: {tensor_model_parallel_size: 2}", "a recipe of Megatron-Bridge"),
        ("run.toml", "[parallelism]\ntensor_parallel_degree = 2", "a configuration of torchtitan"),
        ("run.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py", "a launch script"),
    ],
)
def test_a_foreign_file_is_recognised(tmp_path, name, text, kind):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SpecError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: this looks like {kind}, expected a spec; ")


def test_the_fix_names_the_file():
    with pytest.raises(SpecError, match=r"hops import hf config.json -o spec.yaml makes one"):
        loads("model_type: gpt2", name="config.json")


def test_a_spec_is_never_foreign():
    assert foreign({"pipeline": {}, "model_type": "gpt2"}, "") is None
    assert foreign({"hardwar": {}}, "hardwar: {}") is None
