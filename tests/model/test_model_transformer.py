"""Parameter counts are the published ones, to the last digit."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import CatalogError, UsageError
from hops.model.implementation import Implementation, Microbatch
from hops.model.partition import StageSlice
from hops.model.transformer import MODELS, Transformer, get_model
from hops.model.workload import stage_work

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
}


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_parameters_equal_those_of_the_released_checkpoint(name, parameters):
    assert get_model(name).parameters == parameters


def test_gpt3_has_the_175_billion_of_its_name():
    """The paper rounds (its table 2.1): 174.6 billion with the embedding, by the same count as GPT-2."""
    assert round(get_model("gpt3-175b").parameters / 1e9) == 175


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not model.gated])
def test_the_classic_shape_has_12_h2_matrix_parameters_per_layer(name):
    model = get_model(name)
    assert model.layer_matrix_parameters == 12 * model.hidden**2


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl", "gpt3-175b"])
@pytest.mark.parametrize("samples", [1, 4])
def test_model_flops_equal_the_formula_of_narayanan_et_al(name, samples):
    """72 B L s h^2 (1 + s/6h + V/12hL): arXiv 2104.04473, equation 3 without recompute."""
    model = get_model(name)
    s, h, layers, vocab = 1024, model.hidden, model.layers, model.vocab
    formula = 72 * samples * layers * s * h**2 * (1 + s / (6 * h) + vocab / (12 * h * layers))
    assert model.model_flop(sequence_length=s, samples=samples) == pytest.approx(formula, rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(
    layers=st.integers(1, 200),
    heads=st.integers(1, 64),
    head_dim=st.sampled_from([32, 64, 128]),
    vocab=st.integers(1, 200_000),
)
def test_parameters_grow_by_one_layer_per_layer(layers, heads, head_dim, vocab):
    shape = {"hidden": heads * head_dim, "heads": heads, "vocab": vocab, "max_positions": 128}
    one, more = Transformer.gpt(layers=layers, **shape), Transformer.gpt(layers=layers + 1, **shape)
    assert more.parameters - one.parameters == one.layer_parameters


def test_a_head_of_its_own_adds_one_table():
    shape = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000, "max_positions": 128}
    tied, untied = Transformer.gpt(**shape), Transformer.gpt(**shape, tied=False)
    assert untied.parameters - tied.parameters == 1000 * 64


def test_grouped_queries_shrink_keys_and_values_only():
    shape = {"layers": 1, "hidden": 512, "ffn_hidden": 1024, "heads": 8, "vocab": 100, "max_positions": 64}
    grouped, classic = Transformer.llama(**shape, kv_heads=2), Transformer.llama(**shape, kv_heads=8)
    assert classic.parameters - grouped.parameters == 2 * 512 * (8 - 2) * 64


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt2-medum", "unknown model 'gpt2-medum': did you mean 'gpt2-medium'? known are gpt2, gpt2-medium, "),
        ("LLAMA3-8B", "unknown model 'LLAMA3-8B': did you mean 'llama3-8b'? known are "),
        ("bert", "unknown model 'bert': "),
    ],
)
def test_an_unknown_name_gets_the_nearest_and_all_known(name, message):
    with pytest.raises(CatalogError) as error:
        get_model(name)
    assert str(error.value).startswith(message)
    assert all(known in str(error.value) for known in MODELS)


def test_aliases_are_the_same_models():
    assert get_model("gpt2-small") is get_model("gpt2")
    assert get_model("gpt3") is get_model("gpt3-175b")


GPT = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "max_positions": 32}
LLAMA = {**GPT, "ffn_hidden": 128}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Transformer.gpt(**{**GPT, "layers": 0}), "layers of a transformer must be at least 1, but got 0"),
        (
            lambda: Transformer.gpt(**{**GPT, "heads": 5}),
            "heads must divide hidden, but got 5 heads for a hidden size of 64",
        ),
        (
            lambda: Transformer.llama(**LLAMA, kv_heads=3),
            (
                "kv_heads must divide heads: every group of heads shares one head of keys and values, "
                "but got 4 heads and 3 kv_heads"
            ),
        ),
    ],
)
def test_impossible_shapes_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message


def test_causal_attention_counts_the_pairs_that_are_seen():
    """Half of all pairs, and the diagonal; a window leaves w(w + 1)/2 + (s - w) w."""
    model, s = get_model("llama2-7b"), 1024
    full, causal = (model.model_flop(sequence_length=s, samples=2, attention=each) for each in ("full", "causal"))
    assert full - causal == 6 * s * 2 * 32 * (s - s // 2) * 2 * 4096
    local = replace(model, windows=(256, 0))
    assert local.model_flop(sequence_length=s, samples=2) == full
    seen = -(-(256 * 257 // 2 + 768 * 256) // s)
    assert causal - local.model_flop(sequence_length=s, samples=2, attention="causal") == (
        6 * s * 2 * 16 * (s // 2 - seen) * 2 * 4096
    )


def test_hardware_flops_are_models_flops_and_what_is_done_again():
    """Unfused attention does all pairs, so nothing else differs but recompute: a whole F for full (Narayanan: 4/3)."""
    model, batch = get_model("gpt2"), Microbatch(sequence_length=1024)
    part = StageSlice(layers=12, embedding=True, head=True)

    def flop(recompute):
        how = Implementation(attention="unfused", recompute=recompute)
        return stage_work(model, part, batch, how).hardware_flop

    counted = model.model_flop(sequence_length=1024, samples=1)
    assert flop("none") == counted
    head = 2 * 1024 * model.table_parameters
    assert flop("full") == counted + counted / 3 - head
