"""Search and bound where microbatches differ, hosts take time between actions, or messages wait for their receives."""

import dataclasses
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import needs_numba, random_profile

sys.path.insert(0, str(Path(__file__).parents[2]))

from random import Random

from benchmarks.differential import random_order, random_work

from hops.bounds.lower_bound import lower_bound
from hops.errors import DoesNotFitError
from hops.program.action import Action, Op
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import builtin_programs
from hops.schedules.hops_hetero import HopsHetero, HopsHeteroAdaptive
from hops.search.robust import Noise, expected_ns
from hops.search.search import judge, search
from hops.timing.longest_path import evaluate
from hops.timing.memory_peaks import fits_budget, memory_peaks
from hops.timing.order_rows import blank_rows, fill_rows
from hops.timing.retiming import order_ns
from hops.timing.stage_costs import StageCosts, cost_arrays


def varied(seed):
    """A tiny profile with some of the three, and its random numbers."""
    rng, profile = Random(seed), random_profile(1000 + seed % 4000)
    drawn = random_work(rng, profile.shape.num_microbatches)
    return rng, dataclasses.replace(
        profile,
        microbatch_work=drawn if isinstance(drawn, tuple) else (),
        hop_bytes_s=tuple(hop * rng.choice([0.0, 0.5, 1.0]) for hop in profile.hop_s),
        host_per_action_s=rng.choice([0.0, 1e-3]),
        posted=rng.random() < 0.5,
        pair_factor=rng.choice([1.0, 0.8]),
    )


def bound_or_nothing(profile):
    try:
        return lower_bound(profile).value_ns
    except DoesNotFitError:
        return 0


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 30))
def test_no_program_beats_the_bound(seed):
    """Random orders, with pairs and with microbatches in any order; and all built-ins."""
    rng, profile = varied(seed)
    programs = {str(number): random_order(rng, profile.shape) for number in range(5)}
    _, best = judge(profile, {**programs, **builtin_programs(profile)})
    if best is not None:
        assert bound_or_nothing(profile) <= best.makespan_ns


@needs_numba
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 1 << 30))
def test_a_search_says_what_its_program_takes_fits_and_is_no_worse_than_any_built_in(seed):
    _, profile = varied(seed)
    try:
        result = search(profile, builtin_programs(profile), iterations=300)
    except DoesNotFitError:
        return
    certificate = result.certificate
    assert certificate.bound.value_ns <= certificate.makespan_ns == evaluate(result.program, profile).makespan_ns
    assert fits_budget(result.program, profile)
    assert all(other is None or other >= certificate.makespan_ns for other in certificate.incumbents_ns.values())


def uniform(size, **changes):
    shape = Shape.loop(3, num_microbatches=size)
    return dataclasses.replace(StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3, hop_s=2e-4), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"host_per_action_s": 3e-4},
        {"posted": True, "hop_s": (3e-3, 3e-3)},
        {"microbatch_work": (2.0, 1.0, 0.5, 1.0, 3.0), "hop_bytes_s": (1e-4, 2e-4)},
        {
            "microbatch_work": (2.0, 1.0, 0.5, 1.0, 3.0),
            "posted": True,
            "host_per_action_s": 1e-4,
            "hop_s": (3e-3, 2e-3),
            "hop_bytes_s": (2e-3, 2e-3),
        },
    ],
)
def test_an_order_takes_the_same_time_in_the_search_as_by_the_evaluator(changes):
    """Orders without W, which the search takes at mean work."""
    profile = uniform(5, **changes)
    costs = cost_arrays(profile)
    for name in ("1f1b", "gpipe"):
        program = builtin_programs(profile)[name]
        rows = blank_rows(costs)
        fill_rows(program, rows)
        assert order_ns(costs, rows) == evaluate(program, profile).makespan_ns
        assert order_ns(costs, rows) > 0


def test_hosts_make_the_load_of_a_rank_longer():
    """Two microbatches on one rank, F = 1 and B = 2 ms, at least two entries (pairs), so once the host's time."""
    shape = Shape.loop(1, num_microbatches=2)
    profile = dataclasses.replace(StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3), host_per_action_s=1e-4)
    assert lower_bound(profile).value_ns == 6_100_000


def test_the_bound_of_uneven_work_is_the_sum_of_it():
    """One rank: nothing is idle. On the last of three: after the shortest way there."""
    alone = dataclasses.replace(
        StageCosts.uniform(Shape.loop(1, num_microbatches=3), f=1e-3, i=1e-3, w=1e-3), microbatch_work=(1.0, 0.5, 4.0)
    )
    assert lower_bound(alone).value_ns == 3 * 5_500_000
    behind = uniform(3, microbatch_work=(1.0, 0.5, 4.0))
    assert lower_bound(behind).value_ns == 2 * (500_000 + 200_000) + 3 * 5_500_000


def test_activations_are_of_the_microbatches_that_are_there():
    """GPipe holds all of them: 2 x (3 + 1 + 0.5) bytes."""
    profile = uniform(3, microbatch_work=(3.0, 1.0, 0.5))
    program = builtin_programs(profile)["gpipe"]
    assert memory_peaks(program, profile).activation_bytes == (9, 9, 9)
    assert memory_peaks(program, profile).in_flight == (3, 3, 3)


def test_what_holds_the_largest_microbatch_is_needed():
    profile = uniform(3, microbatch_work=(3.0, 1.0, 0.5), budget_bytes=(5, 6, 6))
    with pytest.raises(DoesNotFitError, match="rank 0 has 5 bytes for activations, but one microbatch needs 6"):
        lower_bound(profile)
    with pytest.raises(DoesNotFitError):
        search(profile, {}, iterations=0)


def test_hops_hetero_tells_microbatches_apart():
    """The work makes another program the best; builders that do not look at it build for their mean."""
    heavy_last, heavy_first = (uniform(4, microbatch_work=work) for work in ((1, 1, 1, 5.0), (5.0, 1, 1, 1)))
    found = [HopsHetero(iterations=400).build(profile) for profile in (heavy_last, heavy_first)]
    ends = [[evaluate(each, profile).makespan_ns for each in found] for profile in (heavy_last, heavy_first)]
    assert ends[0][0] <= ends[0][1]
    assert ends[1][1] <= ends[1][0]
    alike = [builtin_programs(profile)["1f1b"] for profile in (heavy_last, heavy_first)]
    assert alike[0] == alike[1]
    assert ends[0][0] <= evaluate(alike[0], heavy_last).makespan_ns


def test_a_policy_counts_the_bytes_of_each_microbatch():
    """F allocates 2 bytes x work, of which I keeps half."""
    adaptive = HopsHeteroAdaptive(iterations=0)
    adaptive.configure(uniform(4, microbatch_work=(3.0, 1.0, 0.5, 1.0)))
    changes = [adaptive._change(Action(0, op, 0)) for op in (Op.F, Op.I, Op.W, Op.B)]
    assert changes == [6, -3, -3, -6]
    assert adaptive._change(Action(1, Op.F, 2)) == 1
    assert adaptive._fits((0, 0), Action(0, Op.F, 0), 0)


@pytest.mark.parametrize(
    "changes",
    [{"pair_factor": 0.5}, {"host_per_action_s": 3e-4}, {"microbatch_work": (2.0, 1.0, 0.5, 1.0, 3.0, 1.0, 1.0, 1.0)}],
)
def test_without_noise_a_program_is_expected_to_take_what_it_takes(changes):
    scheduler = SCHEDULERS.get("dualpipe_v")()
    profile = StageCosts.uniform(scheduler.shape(3, 8), f=1e-3, i=1e-3, w=1e-3, hop_s=2e-4)
    scheduler.configure(profile)
    profile = dataclasses.replace(profile, **changes)
    found = expected_ns(profile, scheduler.program, Noise(), seed=0)
    assert found == evaluate(scheduler.program, profile).makespan_ns
