"""Work divided among devices: bytes of every collective in closed form, no work lost, and none of W's exchanged."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.axes import Axis
from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch
from hops.model.kernels import Collective, collectives
from hops.model.kinds import Experts, LatentAttention
from hops.model.partition import Partition, StageSlice
from hops.model.shards import WHOLE, Shards
from hops.model.transformer import Transformer, get_model
from hops.model.workload import check_fit, stage_parameters, stage_work

S, B, H, FFN, HEADS, KV, VOCAB = 1024, 2, 512, 2048, 8, 4, 4096
LLAMA = Transformer.llama(layers=4, hidden=H, ffn_hidden=FFN, heads=HEADS, kv_heads=KV, vocab=VOCAB, max_positions=4096)
MOE = replace(LLAMA, experts=Experts(count=16, top_k=4, hidden=256))
SHARED = replace(LLAMA, experts=Experts(count=16, top_k=4, hidden=256, shared_hidden=512))
LATENT = replace(
    LLAMA, latent=LatentAttention(query_rank=96, kv_rank=64, nope_dim=32, rope_dim=16, value_dim=48), head_dim=48
)
ONE = StageSlice(layers=1, embedding=False, head=False)
ENDS = StageSlice(layers=0, embedding=True, head=True)
SIZE = 2 * S * B * H  # bytes of one hidden state


def work(shards, model=LLAMA, part=ONE, **how):
    return stage_work(model, part, Microbatch(sequence_length=S, samples=B), Implementation(**how), shards)


def exchanged(op, axis=None):
    """Bytes by kind, of all calls."""
    found = Counter()
    for each in collectives(op.kernels):
        if axis is None or each.axis is axis:
            found[each.kind] += each.total_bytes
    return dict(found)


MANY = [
    Shards(tensor=2),
    Shards(tensor=4, sequence=True),
    Shards(context=4),
    Shards(context=2, context_kind="all_gather"),
    Shards(context=4, context_kind="all_to_all"),
    Shards(context=8, context_kind="hierarchical", context_inner=2),
    Shards(tensor=2, sequence=True, context=2),
]


@pytest.mark.parametrize("model", [LLAMA, LATENT], ids=["grouped", "latent"])
@pytest.mark.parametrize("shards", MANY)
def test_w_has_no_communication(shards, model):
    assert collectives(work(shards, model).weight_backward.kernels) == ()
    assert collectives(work(shards, model, ENDS).weight_backward.kernels) == ()


@pytest.mark.parametrize("shards", [Shards(expert=4), Shards(tensor=2, sequence=True, expert=4, expert_tensor=2)])
def test_w_of_experts_has_no_communication(shards):
    assert collectives(work(shards, SHARED).weight_backward.kernels) == ()


@pytest.mark.parametrize("model", [LLAMA, LATENT, SHARED, get_model("gpt2")], ids=["grouped", "latent", "moe", "gpt2"])
def test_a_group_of_one_exchanges_nothing_and_does_the_whole_work(model):
    whole = work(WHOLE, model, StageSlice(layers=1, embedding=True, head=True))
    for shards in (
        Shards(),
        Shards(sequence=True),
        Shards(context_kind="all_gather"),
        Shards(context_kind="all_to_all"),
    ):
        assert work(shards, model, StageSlice(layers=1, embedding=True, head=True)) == whole
    for op in (whole.forward, whole.input_backward, whole.weight_backward):
        assert collectives(op.kernels) == ()


@pytest.mark.parametrize("shards", MANY)
def test_the_devices_of_a_group_do_the_flops_of_the_whole(shards):
    """Attention, linear layers and head are divided with nothing left over and nothing done twice."""
    group = shards.tensor * shards.context
    for part in (ONE, ENDS):
        whole, mine = work(WHOLE, part=part), work(shards, part=part)
        for op in ("forward", "input_backward", "weight_backward"):
            assert group * getattr(mine, op).flop == getattr(whole, op).flop


@settings(deadline=None, max_examples=40)
@given(
    s=st.sampled_from([256, 1024]),
    b=st.integers(1, 4),
    heads=st.sampled_from([8, 16]),
    t=st.sampled_from([2, 4, 8]),
)
def test_tensor_parallelism_sums_twice_in_f_and_twice_in_i(s, b, heads, t):
    """Shoeybi et al. 2019, figure 4: all-reduces of bsh after attention and after the MLP, as many backwards."""
    model = Transformer.gpt(layers=1, hidden=heads * 64, heads=heads, vocab=1024, max_positions=1024)
    layer = stage_work(model, ONE, Microbatch(sequence_length=s, samples=b), Implementation(), Shards(tensor=t))
    bytes_each = 2 * s * b * heads * 64
    assert exchanged(layer.forward) == {"all_reduce": 2 * bytes_each}
    assert exchanged(layer.input_backward) == {"all_reduce": 2 * bytes_each}


def test_sequence_parallelism_gathers_and_scatters_and_gathers_once_more_for_w():
    """Korthikanti et al. 2022, section 4.2.2: as many bytes as all-reduces; the extra gather hides under dX's GEMM."""
    layer = work(Shards(tensor=4, sequence=True))
    assert exchanged(layer.forward) == {"all_gather": 2 * SIZE, "reduce_scatter": 2 * SIZE}
    assert exchanged(layer.input_backward) == {"all_gather": 4 * SIZE, "reduce_scatter": 2 * SIZE}
    again = [each for each in collectives(layer.input_backward.kernels) if each.hides_under in ("qkv", "mlp")]
    assert [(each.kind, each.bytes) for each in again] == [("all_gather", SIZE)] * 2
    sums = [each for each in collectives(layer.input_backward.kernels) if each.kind == "reduce_scatter"]
    assert {each.hides_under for each in sums} == {"weight_backward"}


def test_overlap_by_chunks_lets_the_collectives_of_f_hide_under_the_gemm_beside_them():
    plain, chunks = (work(Shards(tensor=4, sequence=True), tensor_overlap=choice) for choice in (False, True))
    assert {each.hides_under for each in collectives(plain.forward.kernels)} == {""}
    assert [each.hides_under for each in collectives(chunks.forward.kernels)] == ["qkv", "projection", "mlp", "mlp"]
    assert exchanged(plain.forward) == exchanged(chunks.forward)


def test_latent_attention_gathers_its_latents_instead_of_the_hidden_state():
    narrow = 2 * S * B * (96 + 64 + 16)
    layer = work(Shards(tensor=4, sequence=True), LATENT)
    assert exchanged(layer.forward) == {"all_gather": narrow + SIZE, "reduce_scatter": 2 * SIZE}


def test_the_ends_sum_the_embedding_and_three_numbers_per_token():
    plain, split = work(Shards(tensor=4), part=ENDS), work(Shards(tensor=4, sequence=True), part=ENDS)
    numbers = 4 * S * B
    assert exchanged(plain.forward) == {"all_reduce": SIZE + 3 * numbers}
    assert exchanged(split.forward) == {"reduce_scatter": SIZE, "all_gather": SIZE, "all_reduce": 3 * numbers}
    assert exchanged(plain.input_backward) == {"all_reduce": SIZE}
    assert exchanged(split.input_backward) == {"all_gather": 3 * SIZE - SIZE, "reduce_scatter": SIZE}
    fused = work(Shards(tensor=4), part=ENDS, cross_entropy="fused")
    assert exchanged(fused.forward) == exchanged(plain.forward)
    assert sum(each.calls for each in collectives(fused.forward.kernels)) == 3


KEYS = 2 * S * B * 2 * KV * (H // HEADS)  # bytes of keys and values of the whole sequence


@pytest.mark.parametrize("cp", [2, 4])
def test_a_ring_passes_keys_and_values_and_brings_their_gradients_home(cp):
    """Liu et al. 2023: n - 1 steps of b s/n 2 kv; the gradients take n."""
    layer = work(Shards(context=cp))
    (keys,) = collectives(layer.forward.kernels)
    assert (keys.kind, keys.axis, keys.bytes, keys.calls) == ("ring", Axis.CONTEXT, KEYS // cp, cp - 1)
    assert keys.hides_under == "attention"
    assert [(each.bytes, each.calls) for each in collectives(layer.input_backward.kernels)] == [
        (KEYS // cp, cp - 1),
        (KEYS // cp, cp),
    ]


def test_gathered_keys_and_values_are_gathered_again_and_their_gradients_scattered():
    layer = work(Shards(context=4, context_kind="all_gather"))
    assert exchanged(layer.forward) == {"all_gather": KEYS}
    assert exchanged(layer.input_backward) == {"all_gather": KEYS, "reduce_scatter": KEYS}


def test_exchanged_heads_move_queries_keys_values_and_context():
    """Jacobs et al. 2023, section 3.2: a device hands out its part of all four."""
    layer = work(Shards(context=4, context_kind="all_to_all"))
    four = (2 * SIZE + KEYS) // 4
    assert exchanged(layer.forward) == exchanged(layer.input_backward) == {"all_to_all": four}


def test_hierarchical_context_exchanges_heads_inside_and_rings_outside():
    layer = work(Shards(context=8, context_kind="hierarchical", context_inner=2))
    assert exchanged(layer.forward) == {"all_to_all": (2 * SIZE + KEYS) // 8, "ring": 3 * KEYS // 8}
    assert {(each.kind, each.part) for each in collectives(layer.forward.kernels)} == {
        ("all_to_all", "inner"),
        ("ring", "outer"),
    }


@pytest.mark.parametrize("ep", [2, 4, 16])
def test_tokens_travel_to_experts_and_back(ep):
    """Every device hands out its tokens top_k times, and gets as many back; I does both again."""
    layer = work(Shards(expert=ep), MOE)
    assert exchanged(layer.forward) == exchanged(layer.input_backward) == {"all_to_all": 2 * 4 * SIZE}


def test_tokens_of_tensor_groups_are_divided_before_they_travel():
    layer = work(Shards(tensor=4, sequence=True, expert=4), MOE)
    assert exchanged(layer.forward, Axis.EXPERT) == {"all_to_all": 2 * 4 * SIZE // 4}


def test_parts_of_an_expert_gather_rows_and_scatter_sums():
    layer = work(Shards(tensor=4, sequence=True, expert=2, expert_tensor=2), MOE)
    rows = 2 * (4 * SIZE // 4)  # of both members
    assert exchanged(layer.forward, Axis.EXPERT_TENSOR) == {"all_gather": rows, "reduce_scatter": rows}


@pytest.mark.parametrize(
    "shards", [WHOLE, Shards(expert=4), Shards(expert=16), Shards(tensor=2, sequence=True, expert=8, expert_tensor=2)]
)
def test_experts_do_top_k_rows_per_token_wherever_they_are(shards):
    """2 x rows x 3 h f flops with a gate; a group of `tensor` devices has one microbatch's tokens."""
    layer = work(shards, MOE)
    flop = sum(each.flop for each in layer.forward.kernels if each.name == "experts")
    assert shards.tensor * flop == 2 * (S * B * 4) * 3 * H * 256


def test_capacity_and_imbalance_change_the_rows_of_experts():
    def flop(**how):
        return sum(each.flop for each in work(Shards(expert=4), MOE, **how).forward.kernels if each.name == "experts")

    assert flop(expert_imbalance=1.5) == 1.5 * flop()
    assert flop(expert_capacity=1.25) == 1.25 * flop()
    assert flop(expert_capacity=1.25, expert_imbalance=1.5) == 1.25 * flop()
    padded = work(Shards(expert=4), MOE, expert_capacity=1.25)
    assert exchanged(padded.forward) == {"all_to_all": 2 * 4 * SIZE * 1.25}


def test_shared_experts_are_an_mlp_under_which_tokens_may_travel():
    layer = work(Shards(tensor=2, sequence=True, expert=4), SHARED, shared_expert_overlap=True)
    assert {e.hides_under for e in collectives(layer.forward.kernels) if e.axis is Axis.EXPERT} == {"shared_experts"}
    assert exchanged(layer.forward, Axis.TENSOR) == {"all_gather": 2 * SIZE, "reduce_scatter": 2 * SIZE}
    flop = sum(each.flop for each in layer.forward.kernels if each.name == "shared_experts")
    assert 2 * flop == 2 * S * B * 3 * H * 512


@pytest.mark.parametrize("shards", [*MANY, Shards(tensor=2, sequence=True, expert=4)])
def test_full_recompute_repeats_the_collectives_of_f_and_selective_those_of_its_modules(shards):
    model = SHARED if shards.expert > 1 else LLAMA
    full = work(shards, model, recompute="full")
    assert exchanged(full.recompute) == exchanged(full.forward)
    assert {each.name for each in full.recompute.kernels} == {"recompute"}
    core = work(shards, model, recompute="selective")
    assert exchanged(core.recompute) == exchanged(core.forward, Axis.CONTEXT)


def test_recomputed_modules_repeat_their_own_kernels():
    def flop(model, *modules):
        return work(WHOLE, model, recompute="selective", recompute_modules=modules).recompute.flop

    tokens = S * B
    assert flop(LLAMA, "mlp") == 2 * tokens * 3 * H * FFN
    assert flop(SHARED, "mlp") == 0
    assert flop(SHARED, "shared_experts") == 2 * tokens * 3 * H * 512
    assert flop(SHARED, "moe") == 2 * tokens * (3 * H * (4 * 256 + 512) + H * 16)
    assert flop(SHARED, "moe", "shared_experts", "moe_act") == flop(SHARED, "moe")
    assert flop(LATENT, "mla_up_proj") == 2 * tokens * (96 * HEADS * 48 + 64 * HEADS * (32 + 48))
    assert flop(LLAMA, "mla_up_proj") == 0
    assert flop(LLAMA, "layernorm") == 0
    moved = work(WHOLE, recompute="selective", recompute_modules=("layernorm",)).recompute.bytes
    assert moved == 2 * 2 * tokens * H * 2  # two norms read and write


@pytest.mark.parametrize(("layers", "again"), [(None, 3), (0, 0), (2, 2), (5, 3)])
def test_full_recompute_of_the_first_layers_of_a_stage(layers, again):
    part = StageSlice(layers=3, embedding=False, head=False)
    some = work(WHOLE, part=part, recompute="full", recompute_layers=layers)
    assert some.recomputed_layers == again
    assert some.recompute.flop == again * work(WHOLE).forward.flop


def test_unlike_layers_are_cut_in_their_own_order():
    """Dense layers first, then experts, then a head for one token more, which has the model's head in it."""
    model = replace(LLAMA, layers=6, experts=Experts(count=16, top_k=4, hidden=256, dense_layers=(0, 1)), mtp_layers=1)
    terms = [
        {kernel.name for kernel in work(WHOLE, model, Partition(layers=(2, 3, 1)).slice(stage)).forward.layers}
        for stage in range(3)
    ]
    both = {"mlp", "experts"}
    assert [both & each for each in terms[:2]] == [{"mlp"}, {"experts"}]
    assert {"experts", "mtp", "lm_head", "cross_entropy", "embedding"} <= terms[2]
    assert "lm_head" not in terms[0] | terms[1]


def test_windows_shorten_what_attention_sees():
    """w(w + 1)/2 + (s - w) w pairs instead of s(s + 1)/2."""
    local = replace(LLAMA, windows=(256, 0))
    one, other = (work(WHOLE, local, Partition(layers=(1, 3)).slice(stage)).forward for stage in (0, 1))

    def columns(op):
        return {kernel.columns for kernel in op.kernels if kernel.name == "attention"}

    assert columns(one) == {-(-(256 * 257 // 2 + 768 * 256) // 1024)}
    assert columns(other) == {512, next(iter(columns(one)))}


@pytest.mark.parametrize("model", [LLAMA, LATENT, MOE, SHARED, get_model("gpt2"), get_model("gpt3-175b")])
def test_counted_on_one_device_parameters_are_the_models(model):
    """Two ways of counting: closed forms of the model, and the linear layers that are launched."""
    part = StageSlice(layers=model.layers, embedding=True, head=True)
    assert stage_parameters(model, part) == model.parameters


def test_divided_parameters_are_matrices_over_t_and_norms_whole():
    model, t = get_model("llama3-8b"), 8
    mine = stage_parameters(model, ONE, Shards(tensor=t))
    assert mine == model.layer_matrix_parameters // t + 2 * model.hidden
    moe = work(Shards(tensor=2, sequence=True, expert=4), MOE)
    assert moe.expert_parameters == 16 * 3 * H * 256 // 4


def test_more_devices_than_key_heads_share_them():
    mine = work(Shards(tensor=8))
    (qkv,) = [each for each in mine.forward.kernels if each.name == "qkv"]
    assert qkv.columns == (HEADS // 8 + 2) * 64


@pytest.mark.parametrize(
    ("shards", "model", "message"),
    [
        (Shards(tensor=3), LLAMA, "tensor must divide the 8 heads, but got 3"),
        (Shards(tensor=16), LLAMA, "tensor must divide the 8 heads, but got 16"),
        (Shards(context=3), LLAMA, "context must divide the 1024 sequence_length, but got 3"),
        (Shards(expert=2), LLAMA, "expert and expert_tensor must be 1 for a model without experts, but got 2 and 1"),
        (Shards(expert=5), MOE, "expert must divide the 16 experts, but got 5"),
        (Shards(tensor=2), MOE, "experts with tensor 2 need sequence: every device hands out tokens of its own; set"),
        (
            Shards(context=16, context_kind="all_to_all"),
            LLAMA,
            "context (heads are exchanged) must divide the 8 heads of a device, but got 16",
        ),
    ],
)
def test_divisions_that_no_runtime_makes_are_refused(shards, model, message):
    with pytest.raises(UsageError) as error:
        check_fit(model, Partition(layers=(4,)), Microbatch(sequence_length=S, samples=B), shards)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shards(tensor=0), "tensor must be at least 1, but got 0"),
        (lambda: Shards(context=4, context_inner=2), "context_inner must divide context, and be 1 unless context_kind"),
        (lambda: Experts(count=4, top_k=5, hidden=8), "top_k must be at most the 4 experts, but got 5"),
        (lambda: replace(LLAMA, windows=()), "windows of a transformer must be at least one number from 0 on, but got"),
        (lambda: replace(LLAMA, mtp_layers=4), "mtp_layers must be from 0 to one less than the 4 layers, but got 4"),
        (lambda: Implementation(expert_imbalance=0.5), "expert_imbalance must be at least 1, but got 0.5"),
        (lambda: Implementation(expert_capacity=0.0), "expert_capacity must be a positive number, but got 0.0"),
    ],
)
def test_impossible_shares_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value).startswith(message)


def test_a_collective_computes_nothing_and_counts_all_its_calls():
    ring = Collective(name="context", kind="ring", axis=Axis.CONTEXT, bytes=5, calls=3)
    assert (ring.flop, ring.total_bytes) == (0, 15)


def moved(op, name):
    return sum(kernel.total_bytes for kernel in op.kernels if kernel.name == name)


def test_tokens_are_permuted_to_experts_and_back_and_sorted_once_more_after_a_journey():
    """In F tokens are read and rows written, and back; in I the same, and rows are read again for their weights."""
    one, travelled = work(WHOLE, MOE), work(Shards(expert=4), MOE)
    token = 2 * S * B * H
    assert moved(one.forward, "permutation") == 2 * (token + 4 * token)
    assert moved(one.input_backward, "permutation") == 2 * (token + 4 * token) + 4 * token
    for op in ("forward", "input_backward"):
        sorted_twice = moved(getattr(travelled, op), "permutation") - moved(getattr(one, op), "permutation")
        assert sorted_twice == 4 * 4 * token
    alone = work(Shards(expert=16), MOE)  # one expert a device has nothing to sort
    assert moved(alone.forward, "permutation") == moved(one.forward, "permutation")


def test_the_router_scores_every_expert_for_every_token():
    """A product of h x experts; scores converted, normed, searched: e + 21 bytes each; backwards e + 16."""
    layer, scores = work(WHOLE, MOE), S * B * 16
    assert sum(each.flop for each in layer.forward.kernels if each.name == "router") == 2 * scores * H
    operands = 2 * (S * B * H + H * 16 + scores)
    assert moved(layer.forward, "router") == operands + scores * (2 + 21)
    assert moved(layer.input_backward, "router") == operands + scores * (2 + 16)


@pytest.mark.parametrize("op", ["forward", "input_backward"])
def test_sequence_parallelism_divides_all_passes_and_tensor_parallelism_those_between_its_layers(op):
    """What norms, residuals and dropout move (h per token) is done by every device without sequence parallelism."""
    whole, split, plain = (work(shards) for shards in (WHOLE, Shards(tensor=4, sequence=True), Shards(tensor=4)))
    by_all = {"forward": 4 * H + 6 * H, "input_backward": 6 * H + 6 * H}[op] * 2 + 2 * H
    assert 4 * moved(getattr(split, op), "elementwise") == moved(getattr(whole, op), "elementwise")
    held = moved(getattr(plain, op), "elementwise") - moved(getattr(split, op), "elementwise")
    assert held == S * B * by_all * 3 // 4


def test_heads_that_are_normed_move_queries_and_keys_twice_more():
    plain, normed = (work(WHOLE, replace(LLAMA, head_norms=choice)).forward for choice in (False, True))
    assert moved(normed, "elementwise") - moved(plain, "elementwise") == 2 * S * B * 2 * (H + KV * H // HEADS)
