"""A `config.json` gives the published number of parameters, to the last digit; keys that are not known are refused.

Shapes and totals of the checkpoints are facts of their public files: the classes' defaults and published model cards.
Totals marked `counted` were not found printed elsewhere, but follow from the same sums.
"""

import json
from dataclasses import replace

import pytest

from hops.errors import CatalogError, UsageError
from hops.model.hugging_face import FAMILIES, hugging_face_model, read_hugging_face
from hops.model.models import find_model, known_models
from hops.model.transformer import MODELS, get_model


def llama(layers, hidden, ffn, heads, kv, vocab, **more):
    return {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        **({} if kv is None else {"num_key_value_heads": kv}),
        "vocab_size": vocab,
        **more,
    }


def qwen3_moe(layers, hidden, heads, kv, experts, width):
    shape = llama(layers, hidden, 3 * hidden, heads, kv, 151936, head_dim=128)
    return shape | {
        "model_type": "qwen3_moe",
        "num_experts": experts,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": width,
    }


def deepseek(family, layers, hidden, ffn, heads, vocab, q, experts, width, shared, dense, top_k=8):
    return {
        "model_type": family,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": vocab,
        "q_lora_rank": q,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": experts,
        "num_experts_per_tok": top_k,
        "moe_intermediate_size": width,
        "n_shared_experts": shared,
        "first_k_dense_replace": dense,
        "moe_layer_freq": 1,
    }


def glm(layers, hidden, ffn, experts, width, dense, norms, mtp=0):
    return llama(layers, hidden, ffn, 96, 8, 151552, head_dim=128) | {
        "model_type": "glm4_moe",
        "attention_bias": True,
        "use_qk_norm": norms,
        "n_routed_experts": experts,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": width,
        "n_shared_experts": 1,
        "first_k_dense_replace": dense,
        "num_nextn_predict_layers": mtp,
    }


def gpt_oss(layers, experts):
    return llama(layers, 2880, 2880, 64, 8, 201088, head_dim=64) | {
        "model_type": "gpt_oss",
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
    }


def gpt2(layers, hidden, heads):
    return {"model_type": "gpt2", "n_layer": layers, "n_embd": hidden, "n_head": heads, "vocab_size": 50257}


CLASSIC = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
V3 = deepseek("deepseek_v3", 61, 7168, 18432, 128, 129280, 1536, 256, 2048, 1, 3)
GEMMA2 = {"model_type": "gemma2", "head_dim": 256, "sliding_window": 4096}
CHECKPOINTS = {
    "gpt2": (gpt2(12, 768, 12), 124_439_808),
    "gpt2-xl": (gpt2(48, 1600, 25), 1_557_611_200),
    "opt-6.7b": (CLASSIC | {"model_type": "opt", "ffn_dim": 16384, "vocab_size": 50272}, 6_658_473_984),  # counted
    "gpt-neox-20b": (llama(44, 6144, 24576, 64, None, 50432, model_type="gpt_neox"), 20_554_567_680),
    "bloom-7b1": (
        {"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32, "vocab_size": 250880},
        7_069_016_064,
    ),
    "bloom-176b": (
        {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880},
        176_247_271_424,
    ),
    "falcon-7b": (  # counted
        {
            "model_type": "falcon",
            "num_hidden_layers": 32,
            "hidden_size": 4544,
            "num_attention_heads": 71,
            "vocab_size": 65024,
            "multi_query": True,
        },
        6_921_720_704,
    ),
    "mpt-7b": (  # counted; shape from memory
        {
            "model_type": "mpt",
            "n_layers": 32,
            "d_model": 4096,
            "n_heads": 32,
            "vocab_size": 50432,
            "attn_config": {"alibi": True},
        },
        6_649_286_656,
    ),
    "llama-2-7b": (llama(32, 4096, 11008, 32, 32, 32000), 6_738_415_616),
    "llama-2-13b": (llama(40, 5120, 13824, 40, 40, 32000), 13_015_864_320),
    "llama-2-70b": (llama(80, 8192, 28672, 64, 8, 32000), 68_976_648_192),
    "llama-3.1-8b": (llama(32, 4096, 14336, 32, 8, 128256), 8_030_261_248),
    "llama-3.1-70b": (llama(80, 8192, 28672, 64, 8, 128256), 70_553_706_496),
    "llama-3.1-405b": (llama(126, 16384, 53248, 128, 8, 128256), 405_853_388_800),
    "llama-3.2-1b": (llama(16, 2048, 8192, 32, 8, 128256, tie_word_embeddings=True), 1_235_814_400),  # counted
    "llama-3.2-3b": (llama(28, 3072, 8192, 24, 8, 128256, tie_word_embeddings=True), 3_212_749_824),  # counted
    "mistral-7b": (llama(32, 4096, 14336, 32, 8, 32000, model_type="mistral"), 7_241_732_096),
    "mixtral-8x7b": (llama(32, 4096, 14336, 32, 8, 32000, model_type="mixtral"), 46_702_792_704),
    "mixtral-8x22b": (llama(56, 6144, 16384, 48, 8, 32768, model_type="mixtral"), 140_630_071_296),
    "qwen2.5-7b": (llama(28, 3584, 18944, 28, 4, 152064, model_type="qwen2"), 7_615_616_512),
    "qwen2.5-32b": (llama(64, 5120, 27648, 40, 8, 152064, model_type="qwen2"), 32_763_876_352),
    "qwen2.5-72b": (llama(80, 8192, 29568, 64, 8, 152064, model_type="qwen2"), 72_706_203_648),  # counted
    "qwen3-8b": (llama(36, 4096, 12288, 32, 8, 151936, model_type="qwen3"), 8_190_735_360),
    "qwen3-32b": (llama(64, 5120, 25600, 64, 8, 151936, model_type="qwen3"), 32_762_123_264),  # counted
    "qwen3-30b-a3b": (qwen3_moe(48, 2048, 32, 4, 128, 768), 30_532_122_624),
    "qwen3-235b-a22b": (qwen3_moe(94, 4096, 64, 4, 128, 1536), 235_093_634_560),
    "qwen1.5-moe-a2.7b": (
        llama(24, 2048, 5632, 16, 16, 151936)
        | {
            "model_type": "qwen2_moe",
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
        },
        14_315_784_192,
    ),
    "gemma-7b": (llama(28, 3072, 24576, 16, 16, 256000, model_type="gemma", head_dim=256), 8_537_680_896),
    "gemma-2-2b": (llama(26, 2304, 9216, 8, 4, 256000, **GEMMA2), 2_614_341_888),
    "gemma-2-9b": (llama(42, 3584, 14336, 16, 8, 256000, **GEMMA2), 9_241_705_984),  # shape from memory
    "phi-3-mini": (llama(32, 3072, 8192, 32, 32, 32064, model_type="phi3"), 3_821_079_552),
    "deepseek-v2-lite": (
        deepseek("deepseek_v2", 27, 2048, 10944, 16, 102400, None, 64, 1408, 2, 1, top_k=6),
        15_706_484_224,
    ),
    "deepseek-v2": (
        deepseek("deepseek_v2", 60, 5120, 12288, 128, 102400, 1536, 160, 1536, 2, 1, top_k=6),
        235_741_434_880,
    ),
    "deepseek-v3": (V3, 671_026_419_200),
    # counted by the sizes of arXiv 2502.16982, and not read off a checkpoint
    "moonlight-16b": (deepseek("deepseek_v3", 27, 2048, 11264, 16, 163840, None, 64, 1408, 2, 1, 6), 15_960_110_208),
    "kimi-k2": (deepseek("kimi_k2", 61, 7168, 18432, 64, 163840, 1536, 384, 2048, 1, 1), 1_026_408_232_448),
    "glm-4.5-air": (glm(46, 4096, 10944, 128, 1408, 1, norms=False), 106_852_251_264),
    "glm-4.5": (glm(92, 5120, 12288, 160, 1536, 3, norms=True), 352_797_829_024),
    "gpt-oss-20b": (gpt_oss(24, 32), 20_914_757_184),
    "gpt-oss-120b": (gpt_oss(36, 128), 116_829_156_672),
}


def model(config):
    return hugging_face_model(config).transformer


@pytest.mark.parametrize(("config", "parameters"), CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_parameters_are_those_of_the_published_checkpoint(config, parameters):
    assert model(config).parameters == parameters


NAMES = {"llama-3.2-1b": "llama3.2-1b", "llama-3.2-3b": "llama3.2-3b"}
OWN = {"gpt2", "gpt2-xl", "llama-2-7b", "llama-2-13b", "llama-2-70b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"}


@pytest.mark.parametrize("name", [name for name in CHECKPOINTS if name not in OWN])
def test_published_models_are_known_by_name(name):
    known = find_model(NAMES.get(name, name))
    assert known.parameters == CHECKPOINTS[name][1]
    assert replace(known, max_positions=1) == replace(model(CHECKPOINTS[name][0]), max_positions=1)


def test_names_are_those_of_this_package_and_of_published_models():
    assert set(known_models()) == set(MODELS) | {NAMES.get(name, name) for name in CHECKPOINTS if name not in OWN}
    assert find_model("gpt3") is get_model("gpt3-175b")
    with pytest.raises(CatalogError) as error:
        find_model("deepseek-v4")
    assert str(error.value).startswith("unknown model 'deepseek-v4': did you mean 'deepseek-v3'? known are gpt2, gpt2-")


def test_every_family_is_tried():
    assert {config["model_type"] for config, _ in CHECKPOINTS.values()} | {"gemma3_text"} == set(FAMILIES)


@pytest.mark.parametrize(
    ("config", "saved", "hidden", "vocab"),
    [
        (V3, 684_489_845_504, 7168, 129280),
        (glm(46, 4096, 10944, 128, 1408, 1, norms=False), 110_468_824_832, 4096, 151552),
    ],
    ids=["deepseek-v3", "glm-4.5-air"],
)
def test_a_head_for_one_token_more_is_a_layer_a_projection_and_norms(config, saved, hidden, vocab):
    """Checkpoints hold copies of embedding and head beside it, which training shares."""
    more = model(config | {"num_nextn_predict_layers": 1})
    assert (more.layers, more.mtp_layers) == (config["num_hidden_layers"] + 1, 1)
    assert more.parameters + 2 * vocab * hidden == saved


def test_active_parameters_of_qwen3_30b():
    """3.35 billion with embedding and head, as its card says A3B."""
    made = model(CHECKPOINTS["qwen3-30b-a3b"][0])
    idle = 48 * (128 - 8) * 3 * 2048 * 768
    assert made.parameters - idle == 3_353_032_704
    layer = made.layer(0)
    assert made.matrix_parameters(layer) - made.matrix_parameters(layer, active=True) == idle // 48


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        (CHECKPOINTS["gemma-2-2b"][0], (4096, 0)),
        (llama(26, 1152, 6912, 4, 1, 262144, model_type="gemma3_text", sliding_window=512), (512,) * 5 + (0,)),
        (CHECKPOINTS["gpt-oss-20b"][0], (128, 0)),
        (CHECKPOINTS["mistral-7b"][0], (4096,)),
        (CHECKPOINTS["mistral-7b"][0] | {"sliding_window": None}, (0,)),
        (CHECKPOINTS["qwen3-8b"][0], (0,)),
        (llama(2, 64, 128, 4, 4, 100, model_type="qwen2", use_sliding_window=True, max_window_layers=1), (0, 4096)),
        (
            llama(2, 64, 128, 4, 4, 99, model_type="gemma2", layer_types=["full_attention", "sliding_attention"]),
            (0, 4096),
        ),
    ],
)
def test_windows_follow_the_pattern_of_the_family_or_the_layers_listed(config, windows):
    assert model(config).windows == windows


def test_gemma3_counts_head_norms_and_four_norms():
    """Gemma 3 1B: 999,885,952 parameters (from memory of its card)."""
    config = llama(26, 1152, 6912, 4, 1, 262144, model_type="gemma3_text", head_dim=256)
    assert model(config).parameters == 999_885_952


def test_the_text_of_a_model_that_reads_more_is_in_a_section_of_its_own():
    text = CHECKPOINTS["gemma-2-2b"][0]
    whole = {"model_type": "gemma3", "architectures": ["X"], "text_config": text}
    assert hugging_face_model(whole).transformer == model(text)
    with pytest.raises(UsageError) as error:
        hugging_face_model(whole | {"vision_config": {"hidden_size": 1152}})
    assert "vision_config: is no key of gemma2 that HOPS knows" in str(error.value)
    assert hugging_face_model(whole | {"vision_config": {}}, without=("vision_config",)).transformer == model(text)


def test_every_key_is_applied_or_changes_nothing():
    config = llama(32, 4096, 11008, 32, 32, 32000, rope_theta=1e4, torch_dtype="bfloat16", rms_norm_eps=1e-5)
    found = hugging_face_model(config)
    assert found.nothing == ("rms_norm_eps", "rope_theta", "torch_dtype")
    assert set(found.applied) | set(found.nothing) == set(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "lama"}, "config.json: got model_type 'lama'; did you mean llama? known are llama, mistral, "),
        ({"model_type": None}, "config.json: got no model_type; known are llama, "),
        ({"hidden_size": "wide"}, "config.json: hidden_size: got 'wide', expected a whole number from 1 on"),
        ({"num_hidden_layers": None}, "config.json: no num_hidden_layers, which every llama has"),
        ({"num_attention_heads": 33}, "config.json: num_attention_heads: got 33 for a hidden size of 4096, expected"),
        ({"num_key_value_heads": 5}, "config.json: kv_heads must divide heads: every group of heads shares one head"),
        ({"attention_bias": True}, "config.json: attention_bias: biases in attention or MLP alone is not modelled"),
        ({"tie_word_embeddings": "no"}, "config.json: tie_word_embeddings: got 'no', expected true or false"),
        (
            {"num_expert": 8},
            "config.json: num_expert: is no key of llama that HOPS knows; leave it out if it changes nothing",
        ),
        (
            {"num_attention_head": 8},
            "config.json: num_attention_head: is no key of llama that HOPS knows; did you mean num_attention_heads?",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(change, message):
    with pytest.raises(UsageError) as error:
        hugging_face_model(llama(32, 4096, 11008, 32, 32, 32000) | change)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            CHECKPOINTS["opt-6.7b"][0] | {"word_embed_proj_dim": 512},
            "config.json: word_embed_proj_dim: an embedding narrower than the hidden state is not modelled",
        ),
        (
            CHECKPOINTS["opt-6.7b"][0] | {"do_layer_norm_before": False},
            "config.json: do_layer_norm_before: do_layer_norm_before false is not modelled",
        ),
        (
            CHECKPOINTS["mpt-7b"][0] | {"attn_config": {"alibi": False}},
            "config.json: attn_config: alibi False is not modelled",
        ),
        (
            CHECKPOINTS["gpt2"][0] | {"n_ctx": 512},
            "config.json: n_ctx: a context other than n_positions is not modelled",
        ),
        (
            CHECKPOINTS["gpt-oss-20b"][0] | {"layer_types": ["linear_attention"]},
            "config.json: layer_types: got a list, expected a list of full_attention or sliding_attention",
        ),
        (
            CHECKPOINTS["qwen3-30b-a3b"][0] | {"mlp_only_layers": "none"},
            "config.json: mlp_only_layers: got 'none', expected a list of whole numbers",
        ),
        (CHECKPOINTS["mixtral-8x7b"][0] | {"num_experts_per_tok": 9}, "config.json: top_k must be at most the 8 exper"),
    ],
)
def test_what_families_cannot_be_followed_in_is_refused(config, message):
    with pytest.raises(UsageError) as error:
        hugging_face_model(config)
    assert str(error.value).startswith(message)


def test_all_complaints_come_at_once():
    with pytest.raises(UsageError) as error:
        hugging_face_model({"model_type": "llama", "hidden_size": 64, "vocab_size": -1, "novel": 1})
    assert str(error.value).splitlines() == [
        "config.json: no num_attention_heads, which every llama has",
        "config.json: no num_hidden_layers, which every llama has",
        "config.json: no intermediate_size, which every llama has",
        "config.json: vocab_size: got -1, expected a whole number from 1 on",
        "config.json: novel: is no key of llama that HOPS knows; leave it out if it changes nothing",
    ]


def test_a_file_is_read_with_its_name_in_every_complaint(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CHECKPOINTS["llama-2-7b"][0]))
    assert read_hugging_face(path).transformer.parameters == 6_738_415_616
    path.write_text("[1]")
    with pytest.raises(UsageError) as error:
        read_hugging_face(path)
    assert str(error.value) == f"{path}: got a list, expected the config.json of a Hugging Face model, a mapping"
    with pytest.raises(UsageError) as error:
        read_hugging_face(tmp_path / "none.json")
    assert str(error.value).endswith("there is no such file; expected the config.json of a Hugging Face model")
