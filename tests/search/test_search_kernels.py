"""The search's own timing is the evaluator's and the engine's, compiled and interpreted, whole and in part."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import profiles, random_profile

from hops.bounds.lower_bound import bound_of, tails_of
from hops.bounds.release_times import Heads, MemoryLimits, earliest, memory_limits
from hops.cost.table import TableCosts
from hops.engine.simulate import run_program
from hops.hardware.network import Network
from hops.program.lowering import check
from hops.program.shape import Shape
from hops.schedules.builtins import builtin_programs
from hops.search.anneal import Cooling, anneal
from hops.search.search import judge
from hops.search.starts import first_policies, tune
from hops.timing.list_schedule import list_schedule, list_schedule_by_priority, priorities_of, rules_of
from hops.timing.longest_path import evaluate
from hops.timing.memory_peaks import fits_budget
from hops.timing.order_rows import OrderRows, blank_rows, fill_rows, program_of
from hops.timing.retiming import blank_mark, blank_times, order_ns, retime, row_peak
from hops.timing.stage_costs import UNLIMITED, StageCosts, cost_arrays


def timed(costs, rows, limit=UNLIMITED):
    times, mark, now = blank_times.fast(costs), blank_mark.fast(costs), blank_mark.fast(costs)
    return retime.fast(costs, rows, tails_of(costs), mark, times, now, times, limit)


def decoded(costs, number):
    rows = blank_rows(costs)
    policies = list(first_policies(costs))
    return rows, list_schedule.fast(costs, rules_of(policies[number % len(policies)]), rows)


@settings(deadline=None, max_examples=80)
@given(profile=profiles, number=st.integers(0, 49))
def test_a_decoded_policy_is_a_sound_program_of_the_makespan_it_says(profile, number):
    costs = cost_arrays(profile)
    rows, makespan = decoded(costs, number)
    program = program_of(profile.shape, rows)
    check(program)
    assert fits_budget(program, profile)
    assert evaluate(program, profile).makespan_ns == makespan == timed(costs, rows)


@settings(deadline=None, max_examples=40)
@given(profile=profiles)
def test_built_ins_take_the_same_time_here_as_by_the_evaluator(profile):
    costs = cost_arrays(profile)
    _, best = judge(profile, builtin_programs(profile))
    if best is not None:
        rows = blank_rows(costs)
        fill_rows(best.program, rows)
        assert timed(costs, rows) == best.makespan_ns


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_the_engine_runs_a_searched_program_in_the_same_time(seed):
    profile = random_profile(seed)
    ranks = profile.shape.rank_of_stage
    hops = tuple(0.0 if a == b else 0.003 for a, b in pairwise(ranks))
    profile = dataclasses.replace(profile, hop_s=hops)
    rows, makespan = decoded(cost_arrays(profile), seed)
    costs = TableCosts.of(
        forward_s=profile.forward_s,
        input_backward_s=profile.input_backward_s,
        weight_backward_s=profile.weight_backward_s,
        fused_backward_s=profile.fused_backward_s,
    )
    network = Network.uniform(profile.shape.num_ranks, latency_s=0.003)
    trace = run_program(program_of(profile.shape, rows), costs, network)
    assert trace.end_ns.max() == makespan


@settings(deadline=None, max_examples=25)
@given(profile=profiles, number=st.integers(0, 49), state=st.integers(1, 2**31 - 2))
def test_annealing_says_the_makespan_of_the_order_it_leaves(profile, number, state):
    """Thousands of changes timed from the middle on end in what timing the whole order gives."""
    costs = cost_arrays(profile)
    rows, start = decoded(costs, number)
    best = anneal.fast(costs, tails_of(costs), Cooling(0, 100_000, 5_000_000, state), rows)
    program = program_of(profile.shape, rows)
    check(program)
    assert fits_budget(program, profile)
    assert bound_of(costs).value_ns <= best <= start
    assert evaluate(program, profile).makespan_ns == best


@pytest.mark.parametrize("seed", [4, 8, 6, 7])
def test_compiled_and_interpreted_kernels_agree(seed):
    pytest.importorskip("numba")
    costs = cost_arrays(random_profile(seed))
    results = []
    for form in ("fast", "function"):
        run = lambda kernel, *args, form=form: getattr(kernel, form)(costs, *args)
        zeros = lambda *shape: np.zeros(shape, dtype=np.int64)
        limits = MemoryLimits(zeros(costs.num_stages, costs.num_stages), zeros(costs.num_stages))
        heads = Heads(zeros(costs.num_stages, costs.size), zeros(costs.num_stages, costs.size))
        run(memory_limits, limits)
        run(earliest, limits, heads)
        rows, policy = blank_rows(costs), next(first_policies(costs)).copy()
        tuned = run(tune, 0, 25, 2_000_000, 77, policy, rows)
        annealed = run(anneal, tails_of(costs), Cooling(0, 3_000, 5_000_000, 99), rows)
        results.append((tuned, annealed, policy, *rows, *limits, *heads))
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49))
def test_a_limit_is_met_or_the_order_given_up(profile, number):
    costs = cost_arrays(profile)
    rows, makespan = decoded(costs, number)
    assert timed(costs, rows, limit=makespan) == makespan
    assert timed(costs, rows, limit=makespan - 1) == UNLIMITED


def test_an_order_that_waits_for_itself_never_ends():
    costs = cost_arrays(random_profile(0))
    rows, _ = decoded(costs, 0)
    first = rows.kinds[0, : rows.length[0]].copy()
    backward = int(np.flatnonzero(first & 3)[0])
    rows.kinds[0, : backward + 1] = np.roll(first[: backward + 1], 1)  # a backward before every forward
    assert timed(costs, rows) == UNLIMITED


@pytest.mark.parametrize(
    ("order", "limit", "sound"),
    [
        ([0, 1], 2, True),
        ([0, 2, 3], 2, True),
        ([1, 0], 9, False),
        ([0, 3, 2], 9, False),
        ([0, 0, 1, 1], 3, False),
        ([0, 2, 0, 3, 1], 2, False),
        ([0, 2, 0, 3, 1], 3, True),
    ],
)
def test_a_rank_is_sound_if_it_keeps_the_order_of_ops_and_its_memory(order, limit, sound):
    profile = StageCosts.uniform(Shape.loop(1, num_microbatches=len(order)))
    costs = cost_arrays(dataclasses.replace(profile, budget_bytes=(limit,)))
    rows = OrderRows(np.array([order]), np.array([len(order)]))
    peak = row_peak.fast(costs, rows, 0, blank_mark.fast(costs), np.zeros(1, dtype=np.int64))
    assert (peak < UNLIMITED) is sound


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49))
def test_priorities_without_noise_or_look_ahead_take_the_planned_time(profile, number):
    costs = cost_arrays(profile)
    rows, makespan = decoded(costs, number)
    durations = np.repeat(costs.times[:, :, None], costs.size, axis=2)
    order = priorities_of(program_of(profile.shape, rows))
    assert list_schedule_by_priority.fast(costs, durations, order, 0) == makespan == order_ns(costs, rows)


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49), ahead=st.integers(1, 30))
def test_priorities_never_get_stuck(profile, number, ahead):
    costs = cost_arrays(profile)
    rows, _ = decoded(costs, number)
    durations = np.repeat(costs.times[:, :, None], costs.size, axis=2)
    order = priorities_of(program_of(profile.shape, rows))
    makespan = list_schedule_by_priority.fast(costs, durations, order, ahead)
    assert bound_of(costs).value_ns <= makespan < UNLIMITED
