"""No program beats the bound: against proved optima, every built-in, and closed forms."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import optima, profiles
from search_exact import optimum, tiny

from hops.bounds.lower_bound import lower_bound
from hops.errors import DoesNotFitError
from hops.program.shape import Shape
from hops.schedules.builtins import builtin_programs
from hops.search.search import judge
from hops.timing.examples import profile_from_json
from hops.timing.stage_costs import StageCosts

MS = 1_000_000


def test_the_bound_is_never_above_a_proved_optimum():
    above = [name for name, profile, best in optima() if lower_bound(profile).value_ns > best]
    assert not above


def test_the_bound_is_the_optimum_of_most_instances_with_one_stage_per_rank():
    straight = [(profile, best) for name, profile, best in optima() if name.startswith("straight")]
    assert len(straight) >= 100
    tight = [lower_bound(profile).value_ns == best for profile, best in straight]
    assert sum(tight) >= 0.9 * len(tight)


def test_the_proved_optima_cover_chunks_and_memory_limits():
    cases = [
        (profile.shape.num_ranks < profile.shape.num_stages, profile.budget_bytes[0]) for _, profile, _ in optima()
    ]
    assert len(cases) >= 200
    for chunks in (False, True):
        assert sum(chunked is chunks and limit is None for chunked, limit in cases) >= 30
        assert sum(chunked is chunks and limit is not None for chunked, limit in cases) >= 30


@pytest.mark.parametrize("seed", [301, 306, 311, 348])
def test_the_bound_holds_against_an_exact_solver_run_now(seed):
    pytest.importorskip("ortools")
    value = tiny(seed)
    profile = profile_from_json(value["name"], value).profile
    assert lower_bound(profile).value_ns <= optimum(profile) * MS


@settings(deadline=None, max_examples=60)
@given(profile=profiles)
def test_no_built_in_beats_the_bound(profile):
    _, best = judge(profile, builtin_programs(profile))
    if best is not None:
        assert lower_bound(profile).value_ns <= best.makespan_ns


@settings(deadline=None, max_examples=60)
@given(profile=profiles, factor=st.integers(2, 5))
def test_the_bound_scales_with_all_times(profile, factor):
    times = ("forward_s", "input_backward_s", "weight_backward_s", "fused_backward_s", "hop_s")
    scaled = {name: tuple(factor * value for value in getattr(profile, name)) for name in times}
    times_as_long = lower_bound(dataclasses.replace(profile, **scaled)).value_ns
    assert times_as_long == pytest.approx(factor * lower_bound(profile).value_ns, abs=factor, rel=0)  # whole ns


@settings(deadline=None, max_examples=60)
@given(profile=profiles)
def test_more_memory_never_raises_the_bound(profile):
    free = dataclasses.replace(profile, budget_bytes=(None,) * profile.shape.num_ranks)
    assert lower_bound(free).value_ns <= lower_bound(profile).value_ns


@settings(deadline=None, max_examples=60)
@given(profile=profiles, data=st.data())
def test_a_slower_forward_never_lowers_the_bound(profile, data):
    stage = data.draw(st.integers(0, profile.shape.num_stages - 1))
    slower = list(profile.forward_s)
    slower[stage] += 0.003
    assert lower_bound(dataclasses.replace(profile, forward_s=tuple(slower))).value_ns >= lower_bound(profile).value_ns


@pytest.mark.parametrize(("ranks", "size"), [(2, 2), (4, 3), (4, 4), (8, 5)])
def test_zero_bubble_closed_form_for_few_microbatches(ranks, size):
    """m <= p and F = I = W = 1: (m + p - 1)(F + I) + W, published.md section 2."""
    profile = StageCosts.uniform(Shape.loop(ranks, num_microbatches=size), f=1e-3, i=1e-3, w=1e-3)
    assert lower_bound(profile).value_ns == ((size + ranks - 1) * 2 + 1) * MS


@pytest.mark.parametrize(("ranks", "size"), [(2, 3), (4, 9), (8, 16)])
def test_room_for_one_activation_serializes_the_microbatches(ranks, size):
    """One microbatch at a time: m times the way there and back, the W of one hidden behind nothing."""
    shape = Shape.loop(ranks, num_microbatches=size)
    profile = dataclasses.replace(StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3), budget_bytes=(2,) * ranks)
    assert lower_bound(profile).value_ns == (size * (2 * ranks + 1)) * MS


def test_an_idle_pipeline_of_one_rank_is_bound_by_its_load():
    profile = StageCosts.uniform(Shape.loop(1, num_microbatches=5), f=1e-3, i=2e-3, w=3e-3)
    bound = lower_bound(profile)
    assert bound.value_ns == 30 * MS
    assert (bound.binding, bound.binding_rank) == ("load", 0)


def test_the_gap_is_a_fraction_of_the_bound():
    bound = lower_bound(StageCosts.uniform(Shape.loop(1, num_microbatches=5), f=1e-3, i=2e-3, w=3e-3))
    assert bound.gap(33 * MS) == pytest.approx(0.1)
    free = lower_bound(StageCosts.uniform(Shape.loop(1, num_microbatches=1), f=0.0, i=0.0, w=0.0))
    assert free.gap(0) == 0.0


def test_too_little_memory_for_one_microbatch_is_refused():
    shape = Shape.v(2, num_microbatches=3)
    profile = dataclasses.replace(StageCosts.uniform(shape), budget_bytes=(None, 3))
    with pytest.raises(DoesNotFitError) as error:
        lower_bound(profile)
    assert str(error.value) == ("no program fits: rank 1 has 3 bytes for activations, but one microbatch needs 4")
