"""A stage holds what the published formulas say."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.memory import StageMemory, rank_static_bytes, rank_workspace_bytes, stage_memory
from hops.model.partition import StageSlice
from hops.model.shards import StateShards
from hops.model.transformer import Transformer, get_model
from hops.model.workload import stage_parameters

ADAM = Optimizer.named("adam", element_bytes=2)
ONE_LAYER = StageSlice(layers=1, embedding=False, head=False)


def classic(h, a, vocab=50304):
    return Transformer.gpt(layers=1, hidden=h, heads=a, vocab=vocab, max_positions=4096)


def memory(model, part=ONE_LAYER, s=1024, b=1, optimizer=ADAM, shards=1, **how):
    batch = Microbatch(sequence_length=s, samples=b)
    return stage_memory(model, part, batch, Implementation(**how), optimizer, states=StateShards(optimizer=shards))


@settings(deadline=None, max_examples=60)
@given(
    s=st.sampled_from([64, 512, 4096]),
    b=st.integers(1, 8),
    a=st.integers(1, 32),
    width=st.sampled_from([32, 64, 128]),
)
def test_activation_bytes_of_one_classic_layer(s, b, a, width):
    """sbh(34 + 5as/h) kept by F, 32sbh kept for W (published.md section 2)."""
    h = a * width
    layer = memory(classic(h, a), s=s, b=b, attention="unfused")
    assert layer.activation_bytes == s * b * h * 34 + 5 * a * s * s * b
    assert layer.kept_for_weight_bytes == 32 * s * b * h


@pytest.mark.parametrize(
    ("how", "per_sbh"),
    [
        ({"attention": "flash"}, 34),
        ({"attention": "unfused", "recompute": "selective"}, 34),
        ({"attention": "unfused", "recompute": "full"}, 2),
        ({"attention": "flash", "recompute": "full"}, 2),
        ({"attention": "flash", "dropout": False}, 32),
    ],
)
def test_flash_attention_and_recompute_drop_the_scores_and_full_recompute_all_but_the_input(how, per_sbh):
    """Korthikanti et al. 2022, table 2."""
    assert memory(classic(1024, 16), s=512, b=2, **how).activation_bytes == per_sbh * 512 * 2 * 1024


def test_scores_without_dropout_are_kept_once():
    kept = memory(classic(1024, 16), attention="unfused", dropout=False)
    assert kept.activation_bytes == 32 * 1024 * 1024 + 2 * 16 * 1024**2


def test_full_recompute_needs_room_for_one_layer_made_again():
    model = classic(1024, 16)
    part = StageSlice(layers=4, embedding=False, head=False)
    whole = memory(model).activation_bytes
    for attention, scores in (("flash", 0), ("unfused", 5 * 16 * 1024**2)):
        full = memory(model, part, attention=attention, recompute="full")
        assert full.workspace_bytes == whole - 2 * 1024 * 1024 + scores
        assert memory(model, part, attention=attention, recompute="selective").workspace_bytes == scores
        assert memory(model, part, attention=attention).workspace_bytes == 0


def test_stages_of_one_rank_share_their_workspace():
    stages = [StageMemory(weights_bytes=5, workspace_bytes=3), StageMemory(gradients_bytes=7, workspace_bytes=4)]
    assert rank_workspace_bytes(stages) == 4
    assert rank_static_bytes(stages) == 16
    assert rank_static_bytes(stages[:1]) == stages[0].static_bytes


def test_the_ends_keep_their_inputs_and_fp32_logits():
    """4sbh(1 + v/h) on the last stage, a dropout mask on the first (Korthikanti et al. 2022, section 4.3)."""
    model = classic(512, 8, vocab=1000)
    s, h, v = 256, 512, 1000
    first = memory(model, StageSlice(layers=0, embedding=True, head=False), s=s)
    last = memory(model, StageSlice(layers=0, embedding=False, head=True), s=s)
    assert first.activation_bytes == s * h
    assert last.activation_bytes == 4 * s * h + 4 * s * v
    assert last.kept_for_weight_bytes == 2 * s * h + 2 * s * v


def test_adam_in_mixed_precision_holds_18_bytes_per_parameter():
    model = get_model("llama3-8b")
    part = StageSlice(layers=8, embedding=True, head=False)
    parameters = stage_parameters(model, part)
    held = memory(model, part)
    assert (held.weights_bytes, held.gradients_bytes, held.optimizer_bytes) == (
        2 * parameters,
        4 * parameters,
        12 * parameters,
    )
    assert held.static_bytes == 18 * parameters


@pytest.mark.parametrize("shards", [2, 8])
def test_sharding_over_replicas_leaves_6_plus_12_over_d_bytes_per_parameter(shards):
    """Megatron-LM's distributed optimizer."""
    model = get_model("llama3-8b")
    parameters = stage_parameters(model, ONE_LAYER)
    assert memory(model, shards=shards).static_bytes == 6 * parameters + -(-12 * parameters // shards)


@pytest.mark.parametrize(
    ("kind", "element_bytes", "state", "step"),
    [
        ("adam", 2, 12, 50),
        ("adam", 4, 8, 20 + 16 + 8),
        ("sgd_momentum", 2, 8, 20 + 16 + 6),
        ("sgd", 2, 4, 20 + 8 + 6),
        ("sgd", 4, 0, 20 + 0 + 8),
    ],
)
def test_bytes_that_optimizers_hold_and_move(kind, element_bytes, state, step):
    optimizer = Optimizer.named(kind, element_bytes=element_bytes)
    assert optimizer.state_bytes == state
    assert optimizer.step_bytes(element_bytes) == step


def test_unfused_adam_moves_21_fp32_values_in_its_step_instead_of_7():
    fused, unfused = (Optimizer.named("adam", element_bytes=2, fused=choice).step_bytes(2) for choice in (True, False))
    assert unfused - fused == (21 - 7) * 4


def test_gradients_of_two_bytes_halve_their_memory():
    halved = replace(ADAM, gradient_bytes=2.0)
    assert 2 * memory(classic(64, 1), optimizer=halved).gradients_bytes == memory(classic(64, 1)).gradients_bytes


def test_an_empty_stage_memory_holds_nothing():
    assert StageMemory().static_bytes == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Optimizer.named("adagrad", element_bytes=2), "unknown optimizer 'adagrad': known are adam, sgd_mom"),
        (
            lambda: Optimizer(state_bytes=-1.0, master_weights=False),
            "state_bytes of an optimizer must be at least 0, but got -1.0",
        ),
        (lambda: memory(classic(64, 1), shards=0), "optimizer_shards must be at least 1, but got 0"),
    ],
)
def test_impossible_optimizers_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value).startswith(message)
