"""What one device of a group keeps: the formulas of the literature, with s, b, h, a as usual and t tensor parts."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.kinds import Experts
from hops.model.memory import stage_memory
from hops.model.partition import StageSlice
from hops.model.shards import REPLICATED, WHOLE, Shards, StateShards
from hops.model.transformer import Transformer
from hops.model.workload import stage_parameters, stage_work

ONE = StageSlice(layers=1, embedding=False, head=False)
ADAM = Optimizer.named("adam", element_bytes=2)
MOE = Transformer(
    layers=4, hidden=512, ffn_hidden=2048, heads=8, kv_heads=8, head_dim=64, vocab=4096, max_positions=4096, gated=True,
    positions="rotary", norm="rms", biases=False, tied=False, experts=Experts(count=16, top_k=4, hidden=256),
)  # fmt: skip


def classic(h, a, vocab=4096):
    return Transformer.gpt(layers=1, hidden=h, heads=a, vocab=vocab, max_positions=4096)


def memory(model, shards, part=ONE, s=1024, b=1, states=REPLICATED, **how):
    batch = Microbatch(sequence_length=s, samples=b)
    return stage_memory(model, part, batch, Implementation(**how), ADAM, shards=shards, states=states)


shapes = st.tuples(
    st.sampled_from([512, 2048]), st.integers(1, 4), st.sampled_from([8, 16, 32]), st.sampled_from([1, 2, 4, 8])
)


@settings(deadline=None, max_examples=60)
@given(shapes)
def test_activations_of_a_tensor_parallel_layer(shape):
    """sbh(10 + 24/t + 5as/ht): Korthikanti et al. 2022, equation 2."""
    s, b, a, t = shape
    h = 64 * a
    layer = memory(classic(h, a), Shards(tensor=t), s=s, b=b, attention="unfused")
    assert layer.activation_bytes == 10 * s * b * h + 24 * s * b * h // t + 5 * a * s * s * b // t


@settings(deadline=None, max_examples=60)
@given(shapes)
def test_activations_of_a_layer_with_sequence_parallelism(shape):
    """sbh/t (34 + 5as/h): the same, equation 4; 34sbh/t with the attention core made again (equation 6)."""
    s, b, a, t = shape
    h = 64 * a
    split = Shards(tensor=t, sequence=True)
    layer = memory(classic(h, a), split, s=s, b=b, attention="unfused")
    assert layer.activation_bytes == (34 * s * b * h + 5 * a * s * s * b) // t
    core = memory(classic(h, a), split, s=s, b=b, attention="unfused", recompute="selective")
    assert core.activation_bytes == 34 * s * b * h // t
    full = memory(classic(h, a), split, s=s, b=b, attention="unfused", recompute="full")
    assert full.activation_bytes == 2 * s * b * h // t


def test_the_ends_keep_their_part_of_the_logits():
    """4sbh/t (1 + v/h) with sequence parallelism, and a mask of sbh/t on the first stage (section 4.3)."""
    s, h, v, t = 1024, 512, 4096, 4
    model, split = classic(h, 8, v), Shards(tensor=t, sequence=True)
    last = memory(model, split, StageSlice(layers=0, embedding=False, head=True), s=s)
    first = memory(model, split, StageSlice(layers=0, embedding=True, head=False), s=s)
    assert last.activation_bytes == 4 * s * h // t + 4 * s * v // t
    assert first.activation_bytes == s * h // t


@pytest.mark.parametrize("cp", [2, 4])
def test_context_parallelism_divides_all_activations(cp):
    model = classic(512, 8)
    for attention in ("flash", "unfused"):
        whole, mine = (memory(model, shards, attention=attention) for shards in (WHOLE, Shards(context=cp)))
        assert cp * mine.activation_bytes == whole.activation_bytes
        assert cp * mine.kept_for_weight_bytes == whole.kept_for_weight_bytes


def test_w_needs_inputs_whole_again_that_were_divided_by_tokens():
    """Gathered in I: h of qkv and MLP whole, the rest over t (Qi et al. 2023 count 32sbh for t = 1)."""
    s, h, t = 1024, 512, 4
    for split in (False, True):
        layer = memory(classic(h, 8), Shards(tensor=t, sequence=split), s=s)
        assert layer.kept_for_weight_bytes == 2 * s * (h * 4 + (3 * h + h + 4 * h + 4 * h) // t)


def test_experts_keep_the_rows_that_came_to_them():
    """Input, both halves of a gated MLP and its product: 2sbk(h + 3f) bytes; scores in fp32 twice."""
    tokens, h, f = 1024, 512, 256
    dense = memory(replace(MOE, experts=None), WHOLE, dropout=False).activation_bytes
    experts = memory(MOE, WHOLE, dropout=False).activation_bytes
    assert experts - dense == 2 * tokens * (4 * (h + 3 * f) - 3 * 2048) + 2 * 4 * tokens * 16


@pytest.mark.parametrize("ep", [2, 8])
def test_expert_parallelism_divides_weights_of_experts_only(ep):
    whole, mine = memory(MOE, WHOLE), memory(MOE, Shards(expert=ep))
    experts = 16 * 3 * 512 * 256
    assert whole.weights_bytes - mine.weights_bytes == 2 * (experts - experts // ep)
    assert whole.activation_bytes == mine.activation_bytes


def test_imbalance_and_capacity_change_what_experts_keep():
    plain, fuller = (memory(MOE, WHOLE, expert_imbalance=each).activation_bytes for each in (1.0, 2.0))
    rows = 2 * 1024 * 4 * (512 + 3 * 256)
    assert fuller - plain == rows
    assert memory(MOE, WHOLE, expert_capacity=2.0).activation_bytes == fuller


@pytest.mark.parametrize(
    ("module", "elements"),
    [
        ("mlp", 0),
        ("moe_act", 4 * 256),
        ("layernorm", 2 * 512),
        ("moe", 4 * (512 + 3 * 256) + 2 * 2 * 16),
        ("shared_experts", 0),
    ],
)
def test_recomputed_modules_keep_no_more_than_their_input(module, elements):
    plain = memory(MOE, WHOLE)
    again = memory(MOE, WHOLE, recompute="selective", recompute_modules=(module,))
    assert plain.activation_bytes - again.activation_bytes == 2 * 1024 * elements
    assert again.workspace_bytes == 2 * 1024 * elements


def test_block_recompute_keeps_the_layers_after_the_first_ones():
    part = StageSlice(layers=4, embedding=False, head=False)
    whole, full = memory(MOE, WHOLE, part), memory(MOE, WHOLE, part, recompute="full")
    some = memory(MOE, WHOLE, part, recompute="full", recompute_layers=1)
    assert 4 * some.activation_bytes == 3 * whole.activation_bytes + full.activation_bytes


@pytest.mark.parametrize(("stage", "bytes_each"), [(0, (2, 4, 12)), (1, (2, 4, 3)), (2, (2, 1, 3)), (3, (0.5, 1, 3))])
def test_zero_divides_states_then_gradients_then_weights(stage, bytes_each):
    """Rajbhandari et al. 2020, figure 1, for 4 replicas and fp32 gradients."""
    model = classic(512, 8)
    parameters = stage_parameters(model, ONE)
    held = memory(model, WHOLE, states=StateShards.zero(stage, 4))
    assert (held.weights_bytes, held.gradients_bytes, held.optimizer_bytes) == tuple(
        -(-parameters * each // 1) for each in bytes_each
    )


def test_experts_have_fewer_replicas():
    """6 + 12/d bytes of Megatron-LM's distributed optimizer, d of experts being their own."""
    held = memory(MOE, Shards(expert=4), states=StateShards.zero(1, 16, 4))
    work = stage_work(MOE, ONE, Microbatch(sequence_length=1024), Implementation(), Shards(expert=4))
    experts, dense = work.expert_parameters, work.parameters - work.expert_parameters
    assert experts == 4 * 3 * 512 * 256
    assert held.optimizer_bytes == 12 * dense // 16 + 12 * experts // 4
    assert held.gradients_bytes == 4 * (dense + experts)


def test_stages_of_zero_that_there_are_not_are_refused():
    with pytest.raises(UsageError) as error:
        StateShards.zero(4, 8)
    assert str(error.value) == "the stage of ZeRO must be 0, 1, 2 or 3, but got 4"


@pytest.mark.parametrize(("unit", "inputs"), [(1, 4), (2, 2), (3, 2), (4, 1), (8, 1)])
def test_layers_made_again_together_keep_one_input_and_need_room_for_all(unit, inputs):
    """Megatron-LM's uniform method: an input per unit, and all layers of a unit at once in the backward pass."""
    part = StageSlice(layers=4, embedding=False, head=False)
    full, size = memory(MOE, WHOLE, part, recompute="full", recompute_unit=unit), 2 * 1024 * 512
    assert full.activation_bytes == inputs * size
    assert full.workspace_bytes == min(unit, 4) * memory(MOE, WHOLE).activation_bytes - size
