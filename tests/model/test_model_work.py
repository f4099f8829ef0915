"""A stage's work follows the published formulas, with s sequence length, b samples, h hidden, a heads."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch
from hops.model.partition import Partition, StageSlice
from hops.model.transformer import Transformer, get_model
from hops.model.workload import check_fit, stage_parameters, stage_work

UNFUSED = Implementation(attention="unfused")
ONE_LAYER = StageSlice(layers=1, embedding=False, head=False)

shapes = st.builds(
    lambda s, b, heads, width: (s, b, heads * width, heads),
    st.sampled_from([16, 64, 256, 1024]),
    st.integers(1, 8),
    st.integers(1, 32),
    st.sampled_from([16, 64, 128]),
)


def classic(h, a, layers=1, positions=1024):
    return Transformer.gpt(layers=layers, hidden=h, heads=a, vocab=50304, max_positions=positions)


def work(model, part=ONE_LAYER, s=1024, b=1, how=UNFUSED):
    return stage_work(model, part, Microbatch(sequence_length=s, samples=b), how)


@settings(deadline=None, max_examples=60)
@given(shapes)
def test_flops_of_one_classic_layer_with_full_attention(shape):
    """F sbh(24h + 4s), I sbh(24h + 8s), W 24sbh^2 (published.md section 2)."""
    s, b, h, a = shape
    layer = work(classic(h, a), s=s, b=b)
    assert layer.forward.flop == s * b * h * (24 * h + 4 * s)
    assert layer.input_backward.flop == s * b * h * (24 * h + 8 * s)
    assert layer.weight_backward.flop == 24 * s * b * h**2


def test_flops_of_all_stages_are_the_models_flops():
    """What MFU counts is F + I + W of all stages, embedding look-ups being free."""
    model = get_model("llama3-8b")
    partition = Partition.even(32, 4)
    total = sum(
        op.flop
        for stage in range(4)
        for each in [work(model, partition.slice(stage), s=2048, b=2)]
        for op in (each.forward, each.input_backward, each.weight_backward)
    )
    assert total == model.model_flop(sequence_length=2048, samples=2)


@pytest.mark.parametrize("name", ["gpt2", "llama2-70b", "llama3-8b"])
def test_matrix_flops_are_two_per_parameter_and_token_in_f_i_and_w(name):
    model = get_model(name)
    layer = work(model, how=Implementation(attention="flash"), s=512)
    linear = {"qkv", "projection", "mlp"}
    for op in (layer.forward, layer.input_backward, layer.weight_backward):
        flop = sum(kernel.flop for kernel in op.kernels if kernel.name in linear)
        assert flop == 2 * 512 * model.layer_matrix_parameters


def test_flash_attention_moves_no_scores_and_skips_the_masked_half():
    model = classic(1024, 16)
    flash, unfused = (work(model, how=Implementation(attention=kind), s=1024) for kind in ("flash", "unfused"))
    scores = 16 * 1024**2
    saved = unfused.forward.flop - flash.forward.flop
    assert saved == 2 * 1024**2 * 1024  # half of 4 s^2 h
    assert unfused.forward.bytes - flash.forward.bytes > 10 * scores


def test_flash_backward_does_five_products_where_forward_does_two():
    """Dao 2023: 2.5 times the forward flops."""
    flash = work(classic(1024, 16), how=Implementation(attention="flash"))
    forward, backward = (
        sum(kernel.flop for kernel in op.kernels if kernel.name == "attention")
        for op in (flash.forward, flash.input_backward)
    )
    assert backward == 2.5 * forward


def test_score_traffic_grows_with_heads_and_the_square_of_the_sequence():
    def softmax_bytes(model, s):
        return sum(kernel.total_bytes for kernel in work(model, s=s).forward.kernels if kernel.name == "softmax")

    base = softmax_bytes(classic(1024, 8), 512)
    assert softmax_bytes(classic(1024, 16), 512) == 2 * base
    assert softmax_bytes(classic(1024, 8), 1024) == 4 * base
    assert softmax_bytes(classic(2048, 8, positions=2048), 512) == base


def test_an_unfused_score_is_moved_as_often_as_the_kernels_say():
    """Without dropout: written, masked (2), softmax (2), read = 6 moves of 2 bytes."""
    how = replace(UNFUSED, dropout=False)
    with_scores, scores = work(classic(64, 1), s=1024, how=how), 1024**2
    moved = sum(k.total_bytes for k in with_scores.forward.kernels if k.name in ("softmax", "attention"))
    operands = 2 * (4 * 1024 * 64)  # Q, K; V and the context
    assert moved - operands == 12 * scores


def test_only_the_last_stage_has_head_and_loss_and_only_the_first_the_embedding():
    partition = Partition.even(12, 3)
    names = [
        {kernel.name for kernel in work(get_model("gpt2"), partition.slice(stage)).forward.ends} for stage in range(3)
    ]
    assert names == [{"embedding"}, set(), {"lm_head", "cross_entropy"}]


def test_head_flops_are_2sbhv_in_f_i_and_w():
    model = classic(512, 8)
    last = work(model, StageSlice(layers=0, embedding=False, head=True), s=256, b=2)
    for op in (last.forward, last.input_backward, last.weight_backward):
        assert op.flop == 2 * 256 * 2 * 512 * 50304


def test_unfused_cross_entropy_makes_nine_fp32_passes_over_the_logits_and_fused_none():
    model, part = classic(512, 8), StageSlice(layers=0, embedding=False, head=True)

    def loss_bytes(kind):
        last = work(model, part, s=256, how=Implementation(cross_entropy=kind))
        return sum(kernel.total_bytes for kernel in last.forward.ends if kernel.name == "cross_entropy")

    logits = 256 * 50304
    assert loss_bytes("unfused") == logits * (2 + 9 * 4)
    assert loss_bytes("fused") == logits * 2


def test_the_embedding_gradient_costs_the_whole_table_however_short_the_sequence():
    model, part = classic(512, 8), StageSlice(layers=0, embedding=True, head=False)
    short, long = (work(model, part, s=s).input_backward.bytes for s in (16, 32))
    per_token = (long - short) / 16
    assert short - 16 * per_token == 50304 * 512 * (2 + 2 + 8)


def test_full_recompute_repeats_the_forward_of_the_layers_and_selective_their_attention():
    part = StageSlice(layers=3, embedding=False, head=True)
    model = classic(512, 8, layers=3)
    none, selective, full = (
        work(model, part, s=512, how=replace(UNFUSED, recompute=kind)) for kind in ("none", "selective", "full")
    )
    assert none.recompute.kernels == ()
    assert selective.recompute.flop == 3 * 4 * 512**2 * 512
    assert full.recompute.flop == sum(kernel.flop for kernel in full.forward.layers)
    assert (none.recomputed_layers, selective.recomputed_layers, full.recomputed_layers) == (0, 0, 3)


def test_fused_gradient_accumulation_saves_two_moves_of_a_weight_gradient():
    model = classic(512, 8)
    unfused, fused = (
        work(model, how=replace(UNFUSED, fused_gradient_accumulation=choice)).weight_backward.bytes
        for choice in (False, True)
    )
    assert unfused - fused == 2 * 2 * model.layer_matrix_parameters


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40))
def test_work_of_the_layers_is_proportional_to_their_number(layers):
    one = work(classic(256, 4), s=128)
    many = work(classic(256, 4), StageSlice(layers=layers, embedding=False, head=False), s=128)
    for op in ("forward", "input_backward", "weight_backward"):
        assert getattr(many, op).flop == layers * getattr(one, op).flop
        assert getattr(many, op).bytes == layers * getattr(one, op).bytes


def test_a_message_is_sequence_x_samples_x_hidden_elements():
    assert work(classic(512, 8), s=256, b=3).message_bytes == 256 * 3 * 512 * 2
    assert work(classic(512, 8), s=256, b=3, how=replace(UNFUSED, element_bytes=4)).message_bytes == 256 * 3 * 512 * 4


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl", "llama2-7b", "llama3.1-405b"])
@pytest.mark.parametrize("stages", [1, 2, 5])
def test_parameters_of_all_stages_are_the_models_and_a_second_copy_of_a_tied_table(name, stages):
    model = get_model(name)
    partition = Partition.even(model.layers, stages)
    held = sum(stage_parameters(model, partition.slice(stage)) for stage in range(stages))
    copy = model.table_parameters if model.tied and stages > 1 else 0
    assert held == model.parameters + copy


def test_partition_and_sequence_must_fit_the_model():
    model, batch = get_model("gpt2"), Microbatch(sequence_length=1024)
    with pytest.raises(UsageError) as error:
        check_fit(model, Partition(layers=(5, 6)), batch)
    assert str(error.value) == "a partition must hold all 12 layers of the model, but got 5 + 6 = 11"
    with pytest.raises(UsageError) as error:
        check_fit(model, Partition.even(12, 2), Microbatch(sequence_length=2048))
    assert str(error.value) == "sequence_length must be at most the model's 1024 learned positions, but got 2048"
    check_fit(get_model("llama2-7b"), Partition.even(32, 2), Microbatch(sequence_length=10**6))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Microbatch(sequence_length=0), "sequence_length of a microbatch must be at least 1, but got 0"),
        (lambda: Microbatch(sequence_length=1, samples=0), "samples of a microbatch must be at least 1, but got 0"),
        (lambda: Implementation(element_bytes=3), "element_bytes must be 1, 2 or 4, but got 3"),
    ],
)
def test_impossible_microbatches_and_precisions_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message
