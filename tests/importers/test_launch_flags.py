"""Every flag of Megatron-LM is applied, changes nothing, or is refused; nothing is taken in without a word."""

import json
from pathlib import Path

import pytest
from shared_data import FACTS, missing

from hops.errors import UsageError
from hops.importers.megatron.flags import ALIASES, by_flag, by_name, find, page, rows
from hops.importers.megatron.launch import launch_from_flags
from hops.importers.megatron.source import Asked
from hops.importers.megatron.spec import spec_text
from hops.spec.load import loads

BASE = (
    "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
    "--micro-batch-size 1 --global-batch-size 8 --vocab-size 1000 --pipeline-model-parallel-size 2 --bf16 "
)


def launched(flags, devices=("h100",) * 2, **asked):
    return launch_from_flags(flags, devices, asked=Asked(**asked))


def spec_of(flags, devices=("h100",) * 2):
    return spec_text(launched(flags, devices))


# What to add to BASE so that an applied flag changes the spec: (before, with the flag).
CHANGES = {
    "num_layers": ("", "--num-layers 16"),
    "encoder_num_layers": ("--without", "--encoder-num-layers 16"),
    "hidden_size": ("", "--hidden-size 1024"),
    "ffn_hidden_size": ("", "--ffn-hidden-size 1024"),
    "num_attention_heads": ("", "--num-attention-heads 4"),
    "kv_channels": ("", "--kv-channels 128"),
    "group_query_attention": ("--num-query-groups 2", "--num-query-groups 2 --group-query-attention"),
    "num_query_groups": ("--group-query-attention", "--group-query-attention --num-query-groups 4"),
    "max_position_embeddings": ("", "--max-position-embeddings 1024"),
    "position_embedding_type": ("", "--position-embedding-type rope"),
    "use_rotary_position_embeddings": ("", "--use-rotary-position-embeddings"),
    "make_vocab_size_divisible_by": ("", "--make-vocab-size-divisible-by 1"),
    "vocab_size": ("", "--vocab-size 50257"),
    "padded_vocab_size": ("", "--padded-vocab-size 1001"),
    "pad_vocab_size": ("", "--no-pad-vocab-size"),
    "normalization": ("", "--normalization RMSNorm"),
    "swiglu": ("", "--swiglu"),
    "add_bias_linear": ("", "--disable-bias-linear"),
    "untie_embeddings_and_output_weights": ("", "--untie-embeddings-and-output-weights"),
    "seq_length": ("", "--seq-length 256"),
    "encoder_seq_length": ("--without", "--encoder-seq-length 256"),
    "micro_batch_size": ("", "--micro-batch-size 2"),
    "global_batch_size": ("", "--global-batch-size 16"),
    "bf16": ("--fp16", ""),
    "fp16": ("--without", "--fp16"),
    "attention_dropout": ("--hidden-dropout 0", "--hidden-dropout 0 --attention-dropout 0"),
    "hidden_dropout": ("--attention-dropout 0", "--attention-dropout 0 --hidden-dropout 0"),
    "transformer_impl": ("", "--transformer-impl local"),
    "use_flash_attn": ("--transformer-impl local", "--transformer-impl local --use-flash-attn"),
    "attention_backend": ("", "--attention-backend unfused"),
    "recompute_granularity": ("", "--recompute-granularity selective"),
    "recompute_activations": ("", "--recompute-activations"),
    "cross_entropy_loss_fusion": ("", "--cross-entropy-loss-fusion"),
    "gradient_accumulation_fusion": ("", "--no-gradient-accumulation-fusion"),
    "optimizer": ("", "--optimizer sgd"),
    "use_distributed_optimizer": ("", "--use-distributed-optimizer"),
    "grad_reduce_in_bf16": ("", "--grad-reduce-in-bf16"),
    "accumulate_allreduce_grads_in_fp32": ("--fp16", "--fp16 --accumulate-allreduce-grads-in-fp32"),
    "pipeline_model_parallel_size": ("", "--pipeline-model-parallel-size 1"),
    "num_layers_per_virtual_pipeline_stage": ("", "--num-layers-per-virtual-pipeline-stage 2"),
    "num_virtual_stages_per_pipeline_rank": ("", "--num-virtual-stages-per-pipeline-rank 2"),
    "decoder_first_pipeline_num_layers": ("", "--decoder-first-pipeline-num-layers 3"),
    "decoder_last_pipeline_num_layers": ("", "--decoder-last-pipeline-num-layers 3"),
    "account_for_embedding_in_pipeline_split": (
        "--num-layers 7 --decoder-last-pipeline-num-layers 3",
        "--num-layers 7 --account-for-embedding-in-pipeline-split",
    ),
    "account_for_loss_in_pipeline_split": (
        "--num-layers 7 --decoder-last-pipeline-num-layers 4",
        "--num-layers 7 --account-for-loss-in-pipeline-split",
    ),
    "pipeline_model_parallel_layout": ("", "--pipeline-model-parallel-layout 'Et*3|t*5L'"),
    "standalone_embedding_stage": ("", "--standalone-embedding-stage"),
    "microbatch_group_size_per_vp_stage": (
        "--num-virtual-stages-per-pipeline-rank 2",
        "--num-virtual-stages-per-pipeline-rank 2 --microbatch-group-size-per-virtual-pipeline-stage 4",
    ),
    "overlap_p2p_comm": (
        "--num-virtual-stages-per-pipeline-rank 2",
        "--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication",
    ),
    "use_tp_pp_dp_mapping": ("", "--use-tp-pp-dp-mapping"),
}
PRECISE = "--use-distributed-optimizer --use-precision-aware-optimizer"
CHANGES |= {
    "use_precision_aware_optimizer": ("--use-distributed-optimizer", PRECISE),
    "main_grads_dtype": (PRECISE, f"{PRECISE} --main-grads-dtype bf16"),
    "main_params_dtype": (f"{PRECISE} --fp16", f"{PRECISE} --fp16 --main-params-dtype fp16"),
    "exp_avg_dtype": (PRECISE, f"{PRECISE} --exp-avg-dtype bf16"),
    "exp_avg_sq_dtype": (PRECISE, f"{PRECISE} --exp-avg-sq-dtype fp8"),
    "store_param_remainders": (PRECISE, f"{PRECISE} --no-store-param-remainders"),
}
TENSOR, CONTEXT, EXPERTS = "--tensor-model-parallel-size 2", "--context-parallel-size 2", "--num-experts 4"
SHARED = f"{EXPERTS} --moe-shared-expert-intermediate-size 256"
LATENT = "--multi-latent-attention"
DIVIDED = {  # on four devices alike
    "tensor_model_parallel_size": ("", TENSOR),
    "sequence_parallel": (TENSOR, f"{TENSOR} --sequence-parallel"),
    "tp_comm_overlap": (TENSOR, f"{TENSOR} --tp-comm-overlap"),
    "context_parallel_size": ("", CONTEXT),
    "cp_comm_type": (CONTEXT, f"{CONTEXT} --cp-comm-type all_gather"),
    "hierarchical_context_parallel_sizes": (
        f"{CONTEXT} --cp-comm-type a2a+p2p",
        f"{CONTEXT} --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 1",
    ),
    "overlap_grad_reduce": ("", "--overlap-grad-reduce"),
    "overlap_param_gather": ("", "--overlap-param-gather"),
    "num_experts": ("", EXPERTS),
    "expert_model_parallel_size": (EXPERTS, f"{EXPERTS} --expert-model-parallel-size 2"),
    "expert_tensor_parallel_size": (f"{EXPERTS} {TENSOR}", f"{EXPERTS} {TENSOR} --expert-tensor-parallel-size 1"),
    "moe_router_topk": (EXPERTS, f"{EXPERTS} --moe-router-topk 1"),
    "moe_ffn_hidden_size": (EXPERTS, f"{EXPERTS} --moe-ffn-hidden-size 256"),
    "moe_shared_expert_intermediate_size": (EXPERTS, SHARED),
    "moe_shared_expert_gate": (SHARED, f"{SHARED} --moe-shared-expert-gate"),
    "moe_shared_expert_overlap": (SHARED, f"{SHARED} --moe-shared-expert-overlap"),
    "moe_layer_freq": (EXPERTS, f"{EXPERTS} --moe-layer-freq '([0]*1+[1]*7)'"),
    "moe_router_enable_expert_bias": (EXPERTS, f"{EXPERTS} --moe-router-enable-expert-bias"),
    "multi_latent_attention": ("", LATENT),
    "q_lora_rank": (LATENT, f"{LATENT} --q-lora-rank 64"),
    "kv_lora_rank": (LATENT, f"{LATENT} --kv-lora-rank 64"),
    "qk_head_dim": (LATENT, f"{LATENT} --qk-head-dim 64"),
    "qk_pos_emb_head_dim": (LATENT, f"{LATENT} --qk-pos-emb-head-dim 32"),
    "v_head_dim": (LATENT, f"{LATENT} --v-head-dim 64"),
}
# What needs more than a flag to be seen, or is only in configuration files; tested elsewhere.
ELSEWHERE = {
    "activation_func", "add_position_embedding", "recompute_method", "recompute_num_layers", "recompute_modules",
    "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage", "virtual_pipeline_model_parallel_size",
}  # fmt: skip


def test_every_applied_flag_has_its_effect_tested():
    applied = {row.name for row in rows() if row.treatment == "applied"}
    assert applied == set(CHANGES) | set(DIVIDED) | ELSEWHERE


@pytest.mark.parametrize("name", DIVIDED)
def test_a_flag_that_divides_a_job_changes_the_spec(name):
    before, after = DIVIDED[name]
    devices = ("h100",) * 4
    assert spec_of(BASE + before, devices) != spec_of(BASE + after, devices)


def test_a_divided_launch_lists_all_devices_and_its_axes():
    flags = f"{TENSOR} --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce"
    spec = loads(spec_of(BASE + flags, ("h100",) * 8))
    mesh = spec.mesh()
    assert (mesh.tensor, mesh.pipeline, mesh.data, mesh.num_ranks) == (2, 2, 2, 8)
    assert spec.pipeline.microbatches == 4
    assert spec.pipeline.model.vocab == 1024  # 1000 padded to a multiple of 128 x 2
    assert spec.parallel.overlap == ("gradients",)


def test_experts_are_divided_over_the_same_devices():
    flags = f"{EXPERTS} --moe-router-topk 2 --expert-model-parallel-size 4 --moe-layer-freq '([0]*1+[1]*7)'"
    spec = loads(spec_of(BASE + flags, ("h100",) * 8))
    assert spec.mesh().expert == 4
    assert spec.pipeline.model.experts.dense_layers == (0,)
    with pytest.raises(UsageError, match="names 3 layers, expected the 8 there are"):
        launched(BASE + f"{EXPERTS} --moe-layer-freq '([0]*1+[1]*2)'")


@pytest.mark.parametrize("name", CHANGES)
def test_an_applied_flag_changes_the_spec(name):
    before, after = CHANGES[name]
    base = BASE
    if before == "--without":
        before = ""
        dropped = {
            "encoder_num_layers": "--num-layers 8 ",
            "encoder_seq_length": "--seq-length 512 ",
            "fp16": "--bf16 ",
        }
        base = BASE.replace(dropped[name], "")
        before = {"encoder_num_layers": "--num-layers 8", "encoder_seq_length": "--seq-length 512", "fp16": ""}[name]
    if "--fp16" in before:
        base = base.replace("--bf16 ", "")
    devices = ("h100", "l4") * 2 if name == "use_tp_pp_dp_mapping" else ("h100", "l4")
    after_base = base if name != "bf16" else BASE
    assert spec_of(base + before, devices) != spec_of(after_base + after, devices)


@pytest.mark.skipif(not (FACTS / "megatron-flags.json").exists(), reason=missing(FACTS / "megatron-flags.json"))
def test_every_flag_of_megatron_is_in_the_table():
    facts = json.loads((FACTS / "megatron-flags.json").read_text())
    unknown = [flag for flag in facts["arguments"] if find(flag) is None]
    unknown += [
        name for name, about in facts["dataclass_fields"].items()
        if name not in by_name() and name not in {"num_moe_experts", "timers", "_cpu_offloading_context"}
        and "Callable" not in about["type"] and "ContextManager" not in about["type"]
        and about["class"] not in {"PretrainConfigContainer", "InferenceConfigContainer"}
    ]  # fmt: skip
    assert unknown == []


def test_the_table_is_sound():
    assert len({row.flag for row in rows() if row.flag}) == len([row for row in rows() if row.flag])
    assert len(by_flag()) == len([row for row in rows() if row.flag]), "two flags differ only in dashes"
    for row in rows():
        assert row.takes in {"none", "one", "many"}
        assert (row.takes == "none") == (row.sets in {"true", "false"}), row
        assert (row.treatment == "applied") == (row.why == ""), row
        assert row.needs in {"", "data_parallel"} or row.needs in by_name(), row


def written(row):
    return f"--{row.flag}" if row.takes == "none" else f"--{row.flag} 7"


def is_refused(row):
    """Beside BASE on four devices, which makes two copies of the pipeline."""
    passes = row.takes == "none" and row.sets == row.default
    return row.treatment == "refused" and row.needs in {"", "data_parallel"} and not passes


def test_flags_that_change_nothing_change_nothing_and_are_listed():
    """Those of the table, and those whose switch is off."""
    idle = [row for row in rows() if row.flag and row.treatment != "applied" and not is_refused(row)]
    launch = launched(f"{BASE} {' '.join(map(written, idle))}", ("h100",) * 4)
    assert spec_text(launch) == spec_of(BASE, ("h100",) * 4)
    names = {ALIASES.get(row.name, row.name): row for row in idle}  # of flags with one name the last one holds
    assert set(launch.arguments.nothing) == {written(row) for row in names.values()}


@pytest.mark.parametrize("row", [row for row in rows() if row.flag and is_refused(row)], ids=lambda row: row.flag)
def test_a_refused_flag_is_named_with_its_reason_and_its_default_passes(row):
    if row.name == "yaml_cfg":
        return
    with pytest.raises(UsageError) as error:
        launched(f"{BASE} {written(row)}", ("h100",) * 4)
    assert f"  {written(row)}: {row.why}" in str(error.value)
    if row.takes != "none" and row.default:
        assert launched(f"{BASE} --{row.flag} {row.default}").arguments.nothing == (f"--{row.flag} {row.default}",)


def test_a_refused_flag_can_be_left_out():
    launch = launched(BASE + "--squared-relu --no-such-flag 3", without=["squared_relu", "--no-such-flag"])
    assert launch.arguments.left_out == ("--squared-relu", "--no-such-flag")
    assert spec_text(launch) == spec_of(BASE)
    with pytest.raises(
        UsageError, match="--without squard-relu: the launch has no such flag; did you mean --squared-relu"
    ):
        launched(BASE, without=["squard-relu"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--nm-layers 8", "--nm-layers (did you mean --num-layers?): no flag of Megatron-LM is spelt so"),
        ("--xyzzy", "--xyzzy: no flag of Megatron-LM is spelt so"),
        ("--num-experts 8 --moe-token-dropping", "--moe-token-dropping: this choice of experts is not modelled"),
        ("--context-parallel-size 2 --cp-comm-type p2p a2a", "expected one of p2p"),
        (
            "--recompute-granularity full --recompute-method block --recompute-num-layers 1",
            "got '1', expected 4 or more",
        ),
        (
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
            "got '2', expected 1 with",
        ),
        (
            "--recompute-granularity selective --recompute-modules core_attn mlp",
            "got 'core_attn mlp', expected core_attn",
        ),
        ("--position-embedding-type none", "--position-embedding-type: got 'none', expected one of"),
        ("--no-position-embedding", "models without positions are not modelled"),
        ("--encoder-num-layers 4", "--encoder-num-layers: got '4', expected --num-layers 8"),
        ("--use-precision-aware-optimizer", "--use-distributed-optimizer beside it"),
        ("--lr 1 --bf16 maybe", "got 'maybe' after --bf16 where a flag was expected"),
        ("--lr", "--lr is without its value"),
        ("--num-attention-heads 7", "--hidden-size 512 is no multiple of --num-attention-heads 7"),
    ],
)
def test_what_cannot_be_followed_is_refused(flags, message):
    with pytest.raises(UsageError) as error:
        launched(BASE + flags)
    assert message in str(error.value)


def test_all_refused_and_unknown_flags_are_named_at_once():
    with pytest.raises(UsageError) as error:
        launched(BASE + "--num-experts 8 --moe-token-dropping --squared-relu --use-megatron-fsdp --hiden-size 3")
    text = str(error.value)
    for name in ("--moe-token-dropping", "--squared-relu", "--use-megatron-fsdp", "--hiden-size (did you mean"):
        assert name in text


def test_block_recomputation_of_all_layers_is_full():
    assert "recompute: full" in spec_of(
        BASE + "--recompute-granularity full --recompute-method block --recompute-num-layers 4"
    )


def test_a_tokenizer_that_decides_the_vocabulary_asks_for_it():
    flags = BASE.replace("--vocab-size 1000 ", "")
    with pytest.raises(UsageError, match="the tokenizer decides it when the run starts; add --vocab N"):
        launched(flags)
    assert "vocab: 128256" in spec_text(launched(flags, vocab=128256))
    assert launched(BASE, vocab=2000).arguments.notes[1:] == ("the launch says --vocab-size 1000; --vocab 2000 holds",)


def test_gradients_and_states_have_megatrons_bytes():
    """18, 20 and 16 bytes a parameter without sharing (bf16 with fp32 gradients, fp16, fp32)."""
    sizes = {"--bf16": (2, 4, None), "--fp16": (2, 2, 16), "": (4, 4, None)}
    for flags, wanted in sizes.items():
        launch = launched(BASE.replace("--bf16", flags))
        assert (launch.gradient_bytes, launch.state_bytes) == wanted[1:]
    precise = launched(BASE + PRECISE + " --main-grads-dtype bf16 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16")
    assert (precise.gradient_bytes, precise.state_bytes) == (2, 2 + 2 + 2)


def test_the_page_of_flags_is_current():
    shown = Path(__file__).parents[2] / "docs/reference/megatron-flags.md"
    assert shown.read_text() == page(), (
        "run: python -m hops.importers.megatron.flags > docs/reference/megatron-flags.md"
    )
