"""The automatic V schedule keeps to its budget, and is as good as sail-sg's and as the V schedules for a fixed one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_programs import FILE, WHY_NOT, rows_of, where

from hops.errors import UsageError
from hops.program.lowering import check
from hops.schedules.base import SCHEDULERS
from hops.schedules.v_auto import VAuto
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts


def run(p, m, stage_activations, *, kept=1, **times):
    """Evaluated, with a limit in activations of one stage, of which W keeps a half (1) or all (2)."""
    scheduler = VAuto(max_activations=stage_activations / 2)
    costs = StageCosts.uniform(scheduler.shape(p, m), **times)
    costs = replace(costs, kept_for_weight_bytes=(kept,) * 2 * p)
    program = scheduler.build(costs)
    check(program)
    return evaluate(program, costs)


@pytest.mark.skipif(not FILE.exists(), reason=WHY_NOT)
@pytest.mark.parametrize("kept", [1, 2])
def test_it_takes_as_long_as_the_original_s_within_the_same_memory(kept):
    for row in rows_of("v_auto"):
        found = run(row["P"], row["M"], row["max_mem"], kept=kept)
        assert found.makespan_ns / 1e9 == row["makespan"], where(row)
        assert max(found.peak_bytes) <= 2 * row["max_mem"], where(row)


@pytest.mark.parametrize(("held", "bubble"), [(4, 11), (6, 5), (8, 3)])
def test_golden_bubbles_of_4_ranks(held, bubble):
    """V-Min's, V-Half's and ZB-V's."""
    for m in (8, 30):
        assert run(4, m, held).makespan_ns / 1e9 == 6 * m + bubble


@pytest.mark.parametrize("kept", [1, 2])
def test_with_v_min_s_memory_it_is_shorter_than_v_min_on_8_ranks(kept):
    """Where V-Min and the original's V-Min lose 27 units, and Primus's 26."""
    assert run(8, 64, 8, kept=kept).makespan_ns / 1e9 == 6 * 64 + 23


@settings(deadline=None, max_examples=30)
@given(
    p=st.integers(1, 6),
    m=st.integers(1, 20),
    halves=st.integers(2, 14),
    kept=st.integers(0, 3),
    times=st.tuples(*[st.integers(1, 9)] * 3),
)
def test_no_rank_holds_more_than_the_limit_whatever_w_keeps(p, m, halves, kept, times):
    f, i, w = times
    found = run(p, m, halves, kept=kept, f=f, i=i, w=w)
    assert max(found.peak_bytes) <= halves * max(2, kept)


def test_the_activation_budget_holds_as_well():
    shape = VAuto().shape(4, 12)
    tight = replace(StageCosts.uniform(shape), budget_bytes=(8, 16, 9, 1000))
    assert all(
        peak <= limit
        for peak, limit in zip(evaluate(VAuto().build(tight), tight).peak_bytes, (8, 16, 9, 16), strict=True)
    )


def test_a_budget_below_one_microbatch_is_refused():
    tight = replace(StageCosts.uniform(VAuto().shape(2, 4)), budget_bytes=(4, 3))
    with pytest.raises(UsageError) as caught:
        VAuto().build(tight)
    assert str(caught.value) == "v_auto: rank 1 has 3 bytes for activations, but one microbatch needs 4"


@pytest.mark.parametrize("wrong", [0.5, True, "2"])
def test_a_limit_that_is_no_number_of_microbatches_is_refused(wrong):
    with pytest.raises(UsageError) as caught:
        VAuto(max_activations=wrong)
    assert str(caught.value) == f"max_activations must be a number of at least 1, but got {wrong!r}"


def test_of_long_runs_blocks_are_compared_on_a_few_microbatches_and_lose_nothing():
    assert run(3, 200, 4).makespan_ns - run(3, 40, 4).makespan_ns == 160 * 6 * 10**9


def test_without_sizes_w_counts_as_keeping_a_half():
    scheduler = SCHEDULERS.get("v_auto")(max_activations=2)
    sized = StageCosts.uniform(scheduler.shape(4, 8))
    unsized = replace(sized, activation_bytes=(0,) * 8, kept_for_weight_bytes=(0,) * 8)
    assert scheduler.build(unsized) == scheduler.build(sized)


@settings(deadline=None, max_examples=30)
@given(p=st.integers(1, 6), m=st.integers(1, 20), times=st.tuples(*[st.integers(1, 9)] * 3), hop=st.integers(0, 3))
def test_it_is_never_longer_than_zb_v_where_that_fits(p, m, times, hop):
    f, i, w = times
    costs = StageCosts.uniform(VAuto().shape(p, m), f=f, i=i, w=w, hop_s=hop)
    zb_v = SCHEDULERS.get("zb_v")().build(costs)
    if max(evaluate(zb_v, costs).peak_bytes) <= 4 * p:
        assert evaluate(VAuto().build(costs), costs).makespan_ns <= evaluate(zb_v, costs).makespan_ns
