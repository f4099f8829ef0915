"""The bound over all choices: below every layout's floor, tight where it should be, as it must change."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_cases import every_layout, opened

from hops.planner.knapsack import FIRST, LAST, WHOLE, Knapsack
from hops.planner.layout import Layout
from hops.planner.layout_bound import layout_bound
from hops.planner.planner import _Planner, _silent
from hops.planner.problem import Objective, Pool

SPEC = """\
pipeline:
  model: {{layers: {layers}, hidden: {hidden}, heads: 8, vocab: {vocab}}}
  sequence_length: 512
  microbatches: {microbatches}
  schedule: {schedule}
hardware:
  nodes:
    - {{name: a, devices: [{first}, {second}]}}
    - {{name: b, devices: [{third}, {first}]}}
  interconnect: {network}
optimizer: {{synchronized: {synchronized}}}
"""
KINDS = ("h100", "a100", "l4", "l40s", "a10g")


def searches(text, *changes, objective=Objective.ITERATION_TIME):
    spec = opened(text, *changes)
    planner = _Planner(spec, objective, 1.0, 5, _silent)
    return planner._searches(Pool.of(spec.base))


@st.composite
def specs(draw):
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(3)]
    return SPEC.format(
        layers=draw(st.integers(1, 5)),
        hidden=draw(st.sampled_from([256, 1024])),
        vocab=draw(st.sampled_from([512, 65536])),
        microbatches=draw(st.sampled_from([4, 7, 32])),
        schedule=draw(st.sampled_from(["1f1b", "zb_h1", "gpipe"])),
        first=kinds[0],
        second=kinds[1],
        third=kinds[2],
        network=draw(st.sampled_from(["ethernet-10", "infiniband-ndr"])),
        synchronized=draw(st.sampled_from(["true", "false"])),
    )


@settings(deadline=None, max_examples=10)
@given(specs(), st.sampled_from([Objective.ITERATION_TIME, Objective.COST_PER_TOKEN]))
def test_no_layout_has_a_floor_below_the_bound_over_all_choices(text, objective):
    """Every sequence of four devices with every partition, under 1F1B, GPipe and any schedule, in time and in cost."""
    (search,) = searches(text, objective=objective)
    least = min(search.value(layout) for layout in every_layout(4, search.problem.num_layers))
    assert search.bound() <= least * (1 + 1e-9)


EQUAL = SPEC.format(
    layers=64, hidden=4096, vocab=8, microbatches=16, schedule="1f1b", first="h100", second="h100", third="h100",
    network="infiniband-ndr", synchronized="true",
)  # fmt: skip


def test_the_bound_of_equal_devices_is_near_what_1f1b_takes():
    """Sixteen layers on each of four equal devices: (m + p - 1) c, but for the ends of the model."""
    (search,) = searches(EQUAL, "optimizer.enabled=false")
    equal = layout_bound(search.problem, Layout(devices=(0, 1, 2, 3), layers=(16, 16, 16, 16)))
    assert search.bounds.choices.seconds <= equal
    assert search.bounds.choices.seconds == pytest.approx(equal, rel=0.03)


def test_for_any_schedule_equal_stages_still_wait_for_each_other():
    """The last of four equal stages cannot begin before three F, so that the bound is above the load alone."""
    (search,) = searches(EQUAL, "optimizer.enabled=false", "pipeline.schedule=zb_h1")
    choices = search.bounds.choices
    forward = float(choices.items.forward[0, 0, 16])
    assert choices.any_order == pytest.approx(16 * float(choices.items.whole[0, 0, 16]) + 3 * forward, rel=0.03)
    assert choices.any_order > 16 * choices.least + forward


def test_with_as_many_stages_as_microbatches_the_bound_still_counts_the_way_through_all():
    """Four equal devices and four microbatches: a microbatch's whole way, and the other backwards of the slowest."""
    (search,) = searches(EQUAL, "optimizer.enabled=false", "pipeline.microbatches=4")
    items = search.bounds.choices.items
    way = 4 * float(items.whole[0, 0, 16]) + 3 * float(items.whole[0, 0, 16] - items.forward[0, 0, 16])
    equal = layout_bound(search.problem, Layout(devices=(0, 1, 2, 3), layers=(16, 16, 16, 16)))
    assert way * 0.97 < search.bounds.choices.seconds <= equal


@pytest.mark.parametrize(("schedule", "counts"), [("1f1b", True), ("gpipe", True), ("zb_h1", False)])
def test_the_tied_reduction_is_in_the_bound_where_it_waits_for_all_backwards(schedule, counts):
    """The least of any two devices comes on top, except under schedules that may reduce while others still work."""
    (search,) = searches(EQUAL, f"pipeline.schedule={schedule}")
    choices = search.bounds.choices
    between = search.problem.after.tied_s[np.triu_indices(4, 1)]
    assert choices.tied_s == (between.min() if counts else 0.0)
    assert choices.seconds == pytest.approx(replace(choices, tied_s=0.0).seconds + choices.tied_s)
    assert between.min() > 0


def test_a_bound_leaves_out_devices_only_to_get_better():
    """Taking a device away never lowers the bound."""
    text = SPEC.format(
        layers=5, hidden=1024, vocab=8192, microbatches=16, schedule="1f1b", first="h100", second="l4", third="l4",
        network="ethernet-25", synchronized="true",
    )  # fmt: skip
    (whole,) = searches(text)
    (fewer,) = searches(text, "hardware.nodes=[{name: a, devices: [h100, l4]}, {name: b, devices: [l4]}]")
    assert whole.bound() <= fewer.bound() * (1 + 1e-9)


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_the_knapsack_is_the_least_over_all_sets(data):
    """Two kinds, up to three devices, four layers: every assignment of places and lengths is tried."""
    from itertools import product

    counts = np.array(data.draw(st.tuples(st.integers(0, 2), st.integers(1, 1))))
    numbers = st.one_of(st.just(np.inf), st.integers(-3, 9).map(float))
    weights = np.array(data.draw(st.lists(numbers, min_size=40, max_size=40))).reshape(1, 2, 4, 5)
    weights[:, :, :, 0] = np.inf
    weights[:, :, WHOLE, :4] = np.inf  # the whole model is all of its layers
    options = [None, *((place, length) for place in range(4) for length in range(1, 5))]
    kinds = np.repeat([0, 1], counts)
    least = np.inf
    for chosen in product(options, repeat=len(kinds)):
        taken = [(kind, *option) for kind, option in zip(kinds, chosen, strict=True) if option is not None]
        places = [place for _, place, _ in taken]
        alone = places == [WHOLE]
        ends = places.count(FIRST) == 1 and places.count(LAST) == 1 and WHOLE not in places
        if sum(length for _, _, length in taken) == 4 and (alone or ends):
            least = min(least, sum(weights[0, kind, place, length] for kind, place, length in taken))
    found = Knapsack(weights, counts)
    assert found.values[0] == pytest.approx(least)
    if np.isfinite(least):
        picked = found.pick(0).items
        assert sum(weights[(0, *item)] for item in picked) == pytest.approx(least)


STRONG = SPEC.format(
    layers=24, hidden=2048, vocab=65536, microbatches=16, schedule="1f1b", first="h100", second="l4", third="a100",
    network="ethernet-100", synchronized="true",
)  # fmt: skip
GOLDEN = [  # milliseconds, and what an iteration costs at least in seconds x price per hour
    ((), 265.59010323401766, 2.388161877994378),
    (("pipeline.schedule=zb_h1",), 215.0116754176611, 2.388161877994378),
    (("pipeline.schedule=gpipe",), 232.06118750906068, 2.388161877994378),
    (("pipeline.microbatches=3",), 85.37770087984729, 0.46431698994614157),
    (("pipeline.microbatches=4",), 94.91668487283232, 0.6123050582575443),
    (("optimizer.synchronized=false",), 256.6137022793637, 2.3720587238177666),
]


@pytest.mark.parametrize(("changes", "least_ms", "least_price"), GOLDEN)
def test_the_bound_is_as_strong_as_it_was(changes, least_ms, least_price):
    """A bound that lost a term would still be one; these numbers may only rise, while all other tests hold."""
    (search,) = searches(STRONG, *changes)
    assert 1e3 * search.bounds.choices.seconds == pytest.approx(least_ms, rel=1e-9)
    assert search.bounds.choices.price_seconds == pytest.approx(least_price, rel=1e-9)
