"""The search's own timing is the evaluator's and the engine's, compiled and interpreted, whole and in part."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import profiles, random_profile

from hops.bounds.lower_bound import bound_of, tails
from hops.bounds.release_times import earliest, limits
from hops.cost.table import TableCosts
from hops.engine.simulate import run_program
from hops.hardware.network import Network
from hops.program.lowering import check
from hops.schedules.builtins import contenders
from hops.search.anneal import anneal, order_of, program_of
from hops.search.starts import first_policies, tune
from hops.timing.evaluate import evaluate
from hops.timing.list_schedule import decode
from hops.timing.memory_peaks import fits_budget
from hops.timing.replay import replay
from hops.timing.retiming import rank_is_sound, time_from
from hops.timing.stage_costs import UNLIMITED, cost_arrays


def blank(instance):
    shape = (instance.num_ranks, instance.longest_rank)
    return np.zeros(shape, dtype=np.int64), np.zeros(shape[0], dtype=np.int64)


def timed(instance, kinds, length, limit=UNLIMITED):
    per_stage = lambda: np.zeros((instance.num_stages, instance.size), dtype=np.int64)
    one = lambda count: np.zeros(count, dtype=np.int64)
    return time_from.fast(
        *instance, kinds, length, *tails(instance), limit, np.zeros((2, instance.num_stages), dtype=np.int64),
        per_stage(), per_stage(), one(instance.num_ranks), one(instance.num_ranks), one(instance.num_stages),
        one(instance.num_stages), np.zeros_like(kinds), per_stage(), per_stage(), per_stage(), per_stage(),
    )  # fmt: skip


def decoded(instance, number):
    kinds, length = blank(instance)
    policies = list(first_policies(instance))
    makespan = decode.fast(*instance, policies[number % len(policies)], kinds, length)
    return kinds, length, makespan


@settings(deadline=None, max_examples=80)
@given(profile=profiles, number=st.integers(0, 49))
def test_a_decoded_policy_is_a_sound_program_of_the_makespan_it_says(profile, number):
    instance = cost_arrays(profile)
    kinds, length, makespan = decoded(instance, number)
    program = program_of(profile.shape, kinds, length)
    check(program)
    assert fits_budget(program, profile)
    assert evaluate(program, profile).makespan_ns == makespan == timed(instance, kinds, length)


@settings(deadline=None, max_examples=40)
@given(profile=profiles)
def test_built_ins_take_the_same_time_here_as_by_the_evaluator(profile):
    instance = cost_arrays(profile)
    _, best = contenders(profile)
    if best is not None:
        kinds, length = blank(instance)
        order_of(best.program, kinds, length)
        assert timed(instance, kinds, length) == best.makespan_ns


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_the_engine_runs_a_searched_program_in_the_same_time(seed):
    profile = random_profile(seed)
    ranks = profile.shape.rank_of_stage
    hops = tuple(0.0 if a == b else 0.003 for a, b in pairwise(ranks))
    profile = dataclasses.replace(profile, hop_s=hops)
    kinds, length, makespan = decoded(cost_arrays(profile), seed)
    costs = TableCosts.of(
        forward_s=profile.forward_s,
        input_backward_s=profile.input_backward_s,
        weight_backward_s=profile.weight_backward_s,
        fused_backward_s=profile.fused_backward_s,
    )
    network = Network.uniform(profile.shape.num_ranks, latency_s=0.003)
    trace = run_program(program_of(profile.shape, kinds, length), costs, network)
    assert trace.end_ns.max() == makespan


@settings(deadline=None, max_examples=25)
@given(profile=profiles, number=st.integers(0, 49), state=st.integers(1, 2**31 - 2))
def test_annealing_says_the_makespan_of_the_order_it_leaves(profile, number, state):
    """Thousands of changes timed from the middle on end in what timing the whole order gives."""
    instance = cost_arrays(profile)
    kinds, length, start = decoded(instance, number)
    best = anneal.fast(*instance, *tails(instance), 0, 100_000, 5_000_000, state, kinds, length)
    program = program_of(profile.shape, kinds, length)
    check(program)
    assert fits_budget(program, profile)
    assert bound_of(instance).value_ns <= best <= start
    assert evaluate(program, profile).makespan_ns == best


@pytest.mark.parametrize("seed", [4, 8, 6, 7])
def test_compiled_and_interpreted_kernels_agree(seed):
    pytest.importorskip("numba")
    instance = cost_arrays(random_profile(seed))
    results = []
    for form in ("fast", "function"):
        run = lambda kernel, *args, form=form: getattr(kernel, form)(*instance, *args)
        square = (instance.num_stages, instance.num_stages)
        window, pending = np.zeros(square, dtype=np.int64), np.zeros(instance.num_stages, dtype=np.int64)
        heads = [np.zeros((instance.num_stages, instance.size), dtype=np.int64) for _ in range(2)]
        run(limits, window, pending)
        run(earliest, window, pending, *heads)
        kinds, length = blank(instance)
        policy = next(first_policies(instance)).copy()
        tuned = run(tune, 0, 25, 2_000_000, 77, policy, kinds, length)
        annealed = run(anneal, *tails(instance), 0, 3_000, 5_000_000, 99, kinds, length)
        results.append((tuned, annealed, policy, kinds, length, window, pending, *heads))
    for compiled, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49))
def test_a_limit_is_met_or_the_order_given_up(profile, number):
    instance = cost_arrays(profile)
    kinds, length, makespan = decoded(instance, number)
    assert timed(instance, kinds, length, limit=makespan) == makespan
    assert timed(instance, kinds, length, limit=makespan - 1) == UNLIMITED


def test_an_order_that_waits_for_itself_never_ends():
    instance = cost_arrays(random_profile(0))
    kinds, length, _ = decoded(instance, 0)
    first = kinds[0, : length[0]].copy()
    backward = int(np.flatnonzero(first & 3)[0])
    kinds[0, : backward + 1] = np.roll(first[: backward + 1], 1)  # a backward before every forward
    assert timed(instance, kinds, length) == UNLIMITED


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
    scratch = [np.zeros(1, dtype=np.int64) for _ in range(3)]
    whole, kept = np.array([2]), np.array([1])
    assert rank_is_sound.fast(np.array(order), len(order), limit, whole, kept, *scratch) is sound


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49))
def test_a_replay_without_noise_takes_the_planned_time(profile, number):
    instance = cost_arrays(profile)
    kinds, length, makespan = decoded(instance, number)
    durations = np.repeat(instance.times[:, :, None], instance.size, axis=2).astype(np.float64)
    assert replay.fast(instance.size, durations, *instance[2:], kinds, length, 0) == makespan


@settings(deadline=None, max_examples=40)
@given(profile=profiles, number=st.integers(0, 49), ahead=st.integers(1, 30))
def test_priorities_never_get_stuck(profile, number, ahead):
    instance = cost_arrays(profile)
    kinds, length, _ = decoded(instance, number)
    durations = np.repeat(instance.times[:, :, None], instance.size, axis=2).astype(np.float64)
    makespan = replay.fast(instance.size, durations, *instance[2:], kinds, length, ahead)
    assert bound_of(instance).value_ns <= makespan < np.inf
