"""Analytic costs: a roofline over kernels, floors that work hides, and I + W = B whatever else is chosen."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.cost.analytic import AnalyticCosts, balanced_partition
from hops.cost.roofline import (
    FIXED_TIMES,
    DeviceRates,
    Traffic,
    backward_terms,
    forward_terms,
    gemm_seconds,
    traffic_seconds,
)
from hops.errors import UsageError
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.kernels import Gemm, Pass
from hops.model.memory import StageMemory
from hops.model.partition import Partition, StageSlice
from hops.model.transformer import Transformer, get_model
from hops.model.workload import Workload, stage_work
from hops.program.action import ACTION_OPS, Op

MODEL = get_model("gpt2-medium")
BATCH = Microbatch(sequence_length=1024)
ADAM = Optimizer.named("adam", element_bytes=2)
RATES = DeviceRates(peak_flop_per_s=300e12, memory_bandwidth=2e12)
FLOORS = replace(
    RATES,
    forward_layer_floor_s=2e-3,
    backward_layer_floor_s=3e-3,
    first_forward_s=4.5e-3,
    first_backward_s=0.5e-3,
    last_forward_s=24e-3,
    last_backward_s=20e-3,
    dispatch_lag=0.25,
    launch_s=1e-4,
)


def work_of(how=None, **rest):
    return Workload(model=MODEL, batch=BATCH, how=Implementation() if how is None else how, optimizer=ADAM, **rest)


def costs(*, layers=(6, 6, 6, 6), rates=RATES, how=None, **rest):
    partition = Partition(layers=layers)
    return AnalyticCosts.of(work_of(how), partition, [rates] * len(layers), **rest)


def middle(layers=6, how=None):
    part = StageSlice(layers=layers, embedding=False, head=False)
    return stage_work(MODEL, part, BATCH, Implementation() if how is None else how)


def total(terms):
    return sum(terms.values())


# The terms


def test_a_large_gemm_takes_its_flops_over_the_attained_rate():
    gemm = Gemm.dense("x", rows=4096, columns=4096, inner=4096, element_bytes=2)
    assert gemm_seconds(gemm, RATES) == pytest.approx(2 * 4096**3 / (300e12 * 0.5))


def test_a_thin_gemm_takes_its_bytes_over_the_attained_bandwidth():
    gemm = Gemm.dense("x", rows=4096, columns=1, inner=4096, element_bytes=2)
    moved = 2 * (4096 * 4096 + 4096 + 4096)
    assert gemm_seconds(gemm, RATES) == pytest.approx(moved / (2e12 * 0.8))


def test_a_gemm_of_ramp_times_rate_flops_reaches_half_of_the_rate():
    """Hockney's n_1/2."""
    gemm = Gemm.dense("x", rows=1024, columns=1024, inner=1024, element_bytes=2)
    ideal = gemm_seconds(gemm, RATES)
    assert gemm_seconds(gemm, replace(RATES, gemm_ramp_s=ideal)) == pytest.approx(2 * ideal)


def test_ten_launches_take_ten_times_one():
    gemm = Gemm.dense("x", rows=512, columns=512, inner=64, element_bytes=2)
    rates = replace(RATES, gemm_ramp_s=1e-6)
    assert gemm_seconds(replace(gemm, calls=10), rates) == pytest.approx(10 * gemm_seconds(gemm, rates))


def test_a_pass_takes_its_bytes_over_the_attained_bandwidth():
    assert traffic_seconds(Pass(name="x", bytes=1700, calls=2), RATES) == pytest.approx(2 * 1700 / (2e12 * 0.8))


@pytest.mark.parametrize(
    ("working_set", "hits"), [(0, 0.0), (1, 1.0), (20e6, 1.0), (40e6, 0.5), (80e6, 0.25), (2e9, 0.01)]
)
def test_a_tensor_that_fits_the_cache_is_passed_over_faster(working_set, hits):
    rates = replace(RATES, cache_bytes=40e6, cache_speedup=4.0)
    kernel = Pass(name="x", bytes=1700, working_set=int(working_set))
    expected = traffic_seconds(kernel, RATES) * (1 - hits + hits / 4)
    assert traffic_seconds(kernel, rates) == pytest.approx(expected)


def test_a_cache_speeds_up_scores_of_short_sequences_only():
    """8 heads: 17 MB of scores at 1024 tokens, 268 MB at 4096."""
    cached = replace(RATES, cache_bytes=40e6)
    model = Transformer.gpt(layers=1, hidden=1024, heads=8, vocab=100, max_positions=4096)
    part, how = StageSlice(layers=1, embedding=False, head=False), Implementation(attention="unfused")
    short, long = (stage_work(model, part, Microbatch(sequence_length=s), how) for s in (1024, 4096))
    assert forward_terms(short, cached)["softmax"] == pytest.approx(forward_terms(short, RATES)["softmax"] / 2)
    held = 40e6 / (2 * 2 * 8 * 4096**2)
    assert forward_terms(long, cached)["softmax"] == pytest.approx(
        forward_terms(long, RATES)["softmax"] * (1 - held / 2)
    )


def test_dispatch_of_layers_is_what_their_work_does_not_hide():
    work = middle()
    ideal = total(forward_terms(work, RATES))
    hidden = total(forward_terms(work, replace(RATES, forward_layer_floor_s=ideal / 6 * 0.99)))
    bound = total(forward_terms(work, replace(RATES, forward_layer_floor_s=ideal / 6 * 3)))
    assert hidden == pytest.approx(ideal)
    assert bound == pytest.approx(3 * ideal)


def test_the_backward_pass_scales_the_work_and_not_the_floor():
    """A stage bound by dispatch takes the same time in F and B; one bound by its work twice as long (and more)."""
    work = middle(how=Implementation(attention="unfused"))
    bound = replace(RATES, forward_layer_floor_s=0.1, backward_layer_floor_s=0.1)
    assert total(backward_terms(work, bound)) == pytest.approx(total(forward_terms(work, bound)))
    assert total(backward_terms(work, RATES)) > 2 * total(forward_terms(work, RATES))


def test_the_head_adds_to_the_layers_in_f_and_hides_their_dispatch_in_b():
    part = StageSlice(layers=6, embedding=False, head=True)
    last = stage_work(MODEL, part, BATCH, Implementation())
    floors = replace(RATES, forward_layer_floor_s=2e-3, backward_layer_floor_s=1e-4)
    head = total(forward_terms(last, RATES)) - total(forward_terms(middle(), RATES))
    assert total(forward_terms(last, floors)) == pytest.approx(6 * 2e-3 + head)
    assert total(backward_terms(last, floors)) == pytest.approx(total(backward_terms(last, RATES)))


@pytest.mark.parametrize("stage", range(4))
def test_only_the_first_and_the_last_stage_take_the_host_time_of_the_ends(stage):
    ends = {"first_forward_s": 1e-3, "first_backward_s": 2e-3, "last_forward_s": 3e-3, "last_backward_s": 4e-3}
    model = costs(rates=replace(RATES, **ends))
    forward, backward = {0: (1e-3, 2e-3), 3: (3e-3, 4e-3)}.get(stage, (0.0, 0.0))
    assert model.seconds(stage, Op.F) - costs().seconds(stage, Op.F) == pytest.approx(forward, abs=1e-12)
    assert model.seconds(stage, Op.B) - costs().seconds(stage, Op.B) == pytest.approx(backward, abs=1e-12)


def test_layers_are_a_flow_shop_of_host_and_device():
    """Johnson's rule with n equal jobs on two machines: n x the longer + 1 x the shorter, here in chunks of a lag."""
    work = middle()
    per_layer = total(forward_terms(work, RATES)) / 6
    for host in (per_layer / 3, per_layer * 3):
        rates = replace(RATES, forward_layer_floor_s=host, dispatch_lag=1.0)
        expected = 6 * max(host, per_layer) + min(host, per_layer)
        assert total(forward_terms(work, rates)) == pytest.approx(expected)
        quarter = replace(rates, dispatch_lag=0.25)
        assert total(forward_terms(work, quarter)) == pytest.approx(expected - 0.75 * min(host, per_layer))


@pytest.mark.parametrize(
    ("factor", "op", "terms"),
    [
        ("scores_forward", Op.F, {"softmax", "attention"}),
        ("scores_backward", Op.B, {"softmax", "attention"}),
        ("elementwise_forward", Op.F, {"elementwise"}),
        ("elementwise_backward", Op.B, {"elementwise"}),
        ("logits_forward", Op.F, {"cross_entropy"}),
        ("logits_backward", Op.B, {"cross_entropy"}),
    ],
)
def test_a_traffic_factor_scales_the_traffic_of_its_kernels_and_nothing_else(factor, op, terms):
    """Attention's products are bound by their scores' traffic here, so that it shows."""
    how = Implementation(attention="unfused")
    fast = replace(RATES, peak_flop_per_s=1e18)
    plain = costs(layers=(24,), how=how, rates=fast)
    more = costs(layers=(24,), how=how, rates=replace(fast, traffic=Traffic(**{factor: 2.0})))
    before, after = plain.terms(0, op), more.terms(0, op)
    assert {name for name in before if after[name] > before[name] * 1.5} == terms
    other = Op.B if op is Op.F else Op.F
    assert plain.terms(0, other) == more.terms(0, other)


def test_a_batch_that_is_not_there_yet_delays_the_first_microbatch_where_batches_are_loaded():
    """First and last stage; then the first stage fetches its warm-up's microbatches faster than they are loaded."""
    waits = costs(rates=replace(RATES, first_fetch_s=1e-3, refill_s=1e-4))
    extra = (waits.draw(0, 6, 1) - costs().draw(0, 6, 1))[:, Op.F]
    assert extra[0] == pytest.approx([1e-3, 1e-4, 1e-4, 1e-4, 0, 0], abs=1e-12)
    assert extra[3] == pytest.approx([1e-3, 0, 0, 0, 0, 0], abs=1e-12)
    assert np.abs(extra[1:3]).max() == 0
    assert (waits.draw(0, 6, 1) == costs().draw(0, 6, 1))[:, 1:].all()


def test_full_recompute_adds_the_forward_of_the_layers_to_the_backward():
    none, full = middle(), middle(how=Implementation(recompute="full"))
    assert total(backward_terms(full, RATES)) == pytest.approx(
        total(backward_terms(none, RATES)) + total(forward_terms(none, RATES))
    )
    bound = replace(RATES, forward_layer_floor_s=0.1, backward_layer_floor_s=0.2)
    assert total(backward_terms(full, bound)) == pytest.approx(6 * 0.3)


def test_selective_recompute_adds_the_attention_core():
    how = Implementation(attention="unfused")
    terms = backward_terms(middle(how=replace(how, recompute="selective")), RATES)
    forward = forward_terms(middle(how=how), RATES)
    assert terms["recompute"] == pytest.approx(forward["attention"] + forward["softmax"])


# The model


@settings(deadline=None, max_examples=40)
@given(
    layers=st.sampled_from([(24,), (12, 12), (1, 22, 1), (0, 24, 0)]),
    attention=st.sampled_from(["flash", "unfused"]),
    recompute=st.sampled_from(["none", "selective", "full"]),
    overhead=st.sampled_from([1.0, 1.1, 1.3]),
    floors=st.booleans(),
    splits=st.booleans(),
)
def test_i_plus_w_is_split_overhead_times_b(layers, attention, recompute, overhead, floors, splits):
    model = costs(
        layers=layers,
        how=Implementation(attention=attention, recompute=recompute),
        rates=FLOORS if floors else RATES,
        split_overhead=overhead,
        first_stage_splits=splits,
    )
    for stage in range(len(layers)):
        inputs, weights = model.seconds(stage, Op.I), model.seconds(stage, Op.W)
        assert inputs >= 0
        assert weights >= 0
        paid = overhead if splits or stage > 0 else 1.0  # what is not split pays nothing for it
        assert model.seconds(stage, Op.B) * paid == pytest.approx(inputs + weights, rel=1e-14)


def test_without_overhead_i_plus_w_is_b_to_the_last_bit():
    model = costs(rates=FLOORS)
    for stage in range(4):
        assert model.seconds(stage, Op.I) + model.seconds(stage, Op.W) == model.seconds(stage, Op.B)


def test_overhead_makes_the_split_dearer_and_leaves_f_and_b():
    plain, dear = costs(), costs(split_overhead=1.2)
    for stage in range(4):
        assert dear.seconds(stage, Op.F) == plain.seconds(stage, Op.F)
        assert dear.seconds(stage, Op.B) == pytest.approx(plain.seconds(stage, Op.B))
        assert dear.seconds(stage, Op.I) == pytest.approx(1.2 * plain.seconds(stage, Op.I))


@pytest.mark.parametrize("rates", [RATES, FLOORS, replace(FLOORS, dispatch_lag=0.0)])
@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_what_recompute_adds_to_b_it_adds_to_i_and_w_stays(rates, recompute):
    """Where the host hides it, B stays, and so do I and W."""
    kept = costs(rates=rates, how=Implementation(attention="unfused"), split_overhead=1.25)
    again = costs(rates=rates, how=Implementation(attention="unfused", recompute=recompute), split_overhead=1.25)
    for stage in range(4):
        more = again.seconds(stage, Op.B) - kept.seconds(stage, Op.B)
        assert again.seconds(stage, Op.W) == pytest.approx(kept.seconds(stage, Op.W), rel=1e-12)
        assert again.seconds(stage, Op.I) == pytest.approx(kept.seconds(stage, Op.I) + 1.25 * more, rel=1e-12)
    if rates.forward_layer_floor_s and not rates.dispatch_lag and recompute == "selective":
        assert again.seconds(1, Op.B) == kept.seconds(1, Op.B)
        assert again.seconds(1, Op.I) == kept.seconds(1, Op.I)


@pytest.mark.parametrize("op", [Op.F, Op.B])
def test_terms_add_up_to_the_seconds(op):
    model = costs(rates=FLOORS, how=Implementation(attention="unfused", recompute="full"))
    for stage in range(4):
        assert total(model.terms(stage, op)) == pytest.approx(model.seconds(stage, op))


@settings(deadline=None, max_examples=20)
@given(factor=st.floats(1.5, 10))
def test_rates_k_times_as_high_divide_every_time_by_k(factor):
    faster = replace(RATES, peak_flop_per_s=RATES.peak_flop_per_s * factor, memory_bandwidth=2e12 * factor)
    slow, fast = costs(), costs(rates=faster)
    for stage, op in product(range(4), ACTION_OPS):
        assert fast.seconds(stage, op) == pytest.approx(slow.seconds(stage, op) / factor)


@settings(deadline=None, max_examples=20)
@given(factor=st.floats(1.5, 10))
def test_rates_and_fixed_times_k_times_as_good_divide_every_time_by_k(factor):
    floors = replace(FLOORS, gemm_ramp_s=2e-6)
    better = replace(
        floors,
        peak_flop_per_s=floors.peak_flop_per_s * factor,
        memory_bandwidth=floors.memory_bandwidth * factor,
        **{name: getattr(floors, name) / factor for name in FIXED_TIMES},
    )
    slow, fast = costs(rates=floors), costs(rates=better)
    for stage, op in product(range(4), ACTION_OPS):
        assert fast.seconds(stage, op) == pytest.approx(slow.seconds(stage, op) / factor)


OF_THE_STEP = {"optimizer_launch_s", "norm_layer_s", "step_layer_s"}  # see test_cost_steps.py
OF_FETCHING = {"first_fetch_s", "refill_s"}  # in draws only, see above
BETTER = {
    "peak_flop_per_s": 2.0,
    "memory_bandwidth": 2.0,
    "gemm_efficiency": 1.2,
    "memory_efficiency": 1.1,
    "cache_bytes": 2.0,
    "cache_speedup": 2.0,
} | {name: 0.5 for name in FIXED_TIMES if name not in OF_THE_STEP | OF_FETCHING}


@pytest.mark.parametrize("name", BETTER)
def test_every_rate_and_fixed_time_has_an_effect_and_a_better_device_is_never_slower(name):
    base = replace(FLOORS, cache_bytes=4e6, gemm_ramp_s=2e-6, forward_layer_floor_s=1.0e-4, backward_layer_floor_s=5e-4)
    bounds = [base, replace(base, forward_layer_floor_s=5e-3, backward_layer_floor_s=50e-3)]  # by work, by dispatch
    gains = []
    for rates in bounds:
        worse, better = costs(rates=rates), costs(rates=replace(rates, **{name: getattr(rates, name) * BETTER[name]}))
        pairs = [(worse.seconds(s, op), better.seconds(s, op)) for s, op in product(range(4), (Op.F, Op.B))]
        gains += [before - after for before, after in pairs]
    assert min(gains) >= -1e-15
    assert max(gains) > 0


def test_draws_are_the_expected_times_of_every_microbatch():
    model = costs()
    draws = model.draw(3, 5, 42)
    assert draws.shape == (4, 4, 5)
    for stage, op in product(range(4), ACTION_OPS):
        assert np.all(draws[stage, op] == model.seconds(stage, op))


def test_messages_go_to_neighbours_that_exist():
    size = 1024 * 1024 * 2
    model = costs()
    assert [model.message_bytes(stage, Op.F) for stage in range(4)] == [size, size, size, 0]
    for op in (Op.B, Op.I):
        assert [model.message_bytes(stage, op) for stage in range(4)] == [0, size, size, size]
    assert [model.message_bytes(stage, Op.W) for stage in range(4)] == [0, 0, 0, 0]


def test_a_first_stage_that_does_not_split_does_all_in_w_and_frees_nothing_before():
    model = costs(first_stage_splits=False)
    assert model.seconds(0, Op.I) == 0
    assert model.seconds(0, Op.W) == model.seconds(0, Op.B) == costs().seconds(0, Op.B)
    assert model.seconds(1, Op.I) == costs().seconds(1, Op.I)
    assert model.memory(0).kept_for_weight_bytes == model.memory(0).activation_bytes
    assert model.memory(1) == costs().memory(1)
    dear = costs(first_stage_splits=False, split_overhead=1.3)
    assert dear.seconds(0, Op.W) == dear.seconds(0, Op.B) == costs().seconds(0, Op.B)
    assert dear.seconds(1, Op.I) == costs(split_overhead=1.3).seconds(1, Op.I)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: AnalyticCosts(works=(middle(),), rates=(RATES, RATES), memories=(StageMemory(),)),
            "works, rates and memories must have one value per stage, but got 1, 2 and 1",
        ),
        (lambda: costs(split_overhead=0.9), "split_overhead must be at least 1, but got 0.9"),
        (lambda: costs(layers=(6, 6)), "a partition must hold all 24 layers of the model, but got 6 + 6 = 12"),
        (
            lambda: replace(RATES, peak_flop_per_s=0.0),
            "peak_flop_per_s of a device must be a positive number, but got 0.0",
        ),
        (
            lambda: replace(RATES, gemm_efficiency=1.5),
            "gemm_efficiency of a device must be above 0 and at most 1, but got 1.5",
        ),
        (lambda: replace(RATES, cache_speedup=0.5), "cache_speedup of a device must be at least 1, but got 0.5"),
        (lambda: replace(RATES, launch_s=-1.0), "launch_s of a device must be a number of at least 0, but got -1.0"),
        (
            lambda: replace(RATES, memory_bandwidth=float("inf")),
            "memory_bandwidth of a device must be a positive number, but got inf",
        ),
    ],
)
def test_impossible_costs_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message


def test_stages_alike_differ_by_their_devices_and_by_being_the_first():
    """Equal stages are costed once: what else a stage's times depend on must tell them apart."""
    slow = replace(RATES, memory_bandwidth=RATES.memory_bandwidth / 2, peak_flop_per_s=RATES.peak_flop_per_s / 2)
    mixed = AnalyticCosts.of(work_of(), Partition(layers=(6, 6, 6, 6)), [RATES, RATES, slow, RATES])
    assert mixed.seconds(2, Op.F) > 1.5 * mixed.seconds(1, Op.F)
    same = {"works": (middle(),) * 2, "rates": (RATES,) * 2, "memories": (StageMemory(),) * 2}
    whole = AnalyticCosts(**same, first_stage_splits=False)
    assert whole.seconds(0, Op.I) == 0 < whole.seconds(1, Op.I)


# The balanced partition


def seconds_of(partition, rates):
    model = AnalyticCosts.of(work_of(), partition, rates)
    return [model.seconds(s, Op.F) + model.seconds(s, Op.B) for s in range(partition.num_stages)]


def test_balanced_partition_is_the_best_of_all_by_the_simulated_costs():
    slow = DeviceRates(peak_flop_per_s=120e12, memory_bandwidth=3e11)
    rates = [RATES, slow, RATES]
    partition = balanced_partition(work_of(), rates)
    every = [Partition(layers=(a, b, 24 - a - b)) for a in range(1, 23) for b in range(1, 24 - a)]
    assert max(seconds_of(partition, rates)) == min(max(seconds_of(each, rates)) for each in every)
    assert partition.layers[1] < min(partition.layers[0], partition.layers[2])


def test_balanced_partition_gives_the_last_stage_fewer_layers_for_its_head():
    partition = balanced_partition(work_of(), [RATES] * 4)
    assert partition.layers[3] < min(partition.layers[:3])


def test_a_balanced_partition_of_unlike_layers_is_the_best_of_all():
    """Dense layers cost more than experts here, and the head for one token more costs most."""
    from itertools import combinations

    from hops.model.kinds import Experts

    model = replace(
        get_model("llama2-7b"),
        layers=7,
        hidden=512,
        experts=Experts(count=8, top_k=1, hidden=256, dense_layers=(0, 1)),
        mtp_layers=1,
    )
    work = Workload(
        model=model,
        batch=Microbatch(sequence_length=512),
        how=Implementation(),
        optimizer=Optimizer.named("adam", element_bytes=2),
    )
    rates = [DeviceRates(peak_flop_per_s=1e14, memory_bandwidth=1e12)] * 3

    def slowest(layers):
        costs = AnalyticCosts.of(work, Partition(layers=layers), rates)
        return max(costs.seconds(stage, Op.F) + costs.seconds(stage, Op.B) for stage in range(3))

    every = [(a, b - a, 7 - b) for a, b in combinations(range(1, 7), 2)]
    assert slowest(balanced_partition(work, rates).layers) == pytest.approx(min(map(slowest, every)))
