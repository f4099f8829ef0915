"""The automatic schedules keep to their limits, are as short as they can be, and are the same compiled."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hops.compiled import available
from hops.errors import UsageError
from hops.program.lowering import check
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.schedules.zero_bubble import ZeroBubble
from hops.schedules.zero_bubble_paper import NO_LIMIT, VARIANTS, Columns, Filled, ZeroBubblePaper, greedy
from hops.timing.longest_path import evaluate
from hops.timing.memory_peaks import fits_budget
from hops.timing.stage_costs import StageCosts, durations_ns, hops_ns

few = settings(deadline=None, max_examples=30)
profiles = st.builds(
    lambda p, m, seed: random_profile(p, m, np.random.default_rng(seed)),
    st.integers(1, 7),
    st.integers(1, 20),
    st.integers(0, 10_000),
)


def random_profile(p, m, rng):
    draw = lambda: tuple((rng.integers(1, 20, p) / 8).tolist())
    kept = rng.integers(0, 40, p)
    return replace(
        StageCosts.uniform(Shape.loop(p, num_microbatches=m)),
        forward_s=draw(),
        input_backward_s=draw(),
        weight_backward_s=draw(),
        hop_s=tuple((rng.integers(0, 8, p - 1) / 8).tolist()),
        activation_bytes=tuple((kept + rng.integers(1, 40, p)).tolist()),
        kept_for_weight_bytes=tuple(kept.tolist()),
    )


def span(program, profile):
    return max(evaluate(program, profile).span_ns)


def all_variants(profile, limit):
    """The longest stage span of each of the eight variants, without leaving any out."""
    p, m = profile.shape.num_stages, profile.shape.num_microbatches
    durations = durations_ns(profile)
    times = (durations[:, op].tolist() for op in (0, 2, 3))
    columns = Columns(*times, hops_ns(profile).tolist(), [2 * limit] * p, [1] * p, [0] * p, [NO_LIMIT] * p)
    filled = lambda: Filled([0] * 3, [0] * (p * m), [0] * (3 * p * m))
    return [greedy(m, columns, variant, NO_LIMIT, filled()) for variant in VARIANTS]


@few
@given(profile=profiles, limit=st.integers(1, 12))
def test_the_paper_s_is_the_best_span_of_all_eight_variants(profile, limit):
    program = ZeroBubblePaper(max_activations=limit).build(profile)
    check(program)
    assert span(program, profile) == min(all_variants(profile, limit))


@few
@given(profile=profiles, limit=st.integers(1, 12))
def test_the_paper_s_counts_halves(profile, limit):
    halves = replace(
        profile,
        activation_bytes=(2,) * profile.shape.num_stages,
        kept_for_weight_bytes=(1,) * profile.shape.num_stages,
    )
    program = ZeroBubblePaper(max_activations=limit).build(halves)
    assert max(evaluate(program, halves).peak_bytes) <= 2 * limit


@few
@given(profile=profiles, limit=st.integers(1, 12))
def test_no_stage_holds_more_bytes_than_so_many_activations_take(profile, limit):
    """Whatever part of them W keeps."""
    program = ZeroBubble(max_activations=limit).build(profile)
    check(program)
    peaks = evaluate(program, profile).peak_bytes
    assert all(peak <= limit * whole for peak, whole in zip(peaks, profile.activation_bytes, strict=True))


@few
@given(profile=profiles, seed=st.integers(0, 10_000))
@pytest.mark.parametrize("scheduler", [ZeroBubble, ZeroBubblePaper])
def test_no_stage_holds_more_bytes_than_its_rank_has(scheduler, profile, seed):
    rng = np.random.default_rng(seed)
    memory = tuple(None if rng.random() < 0.2 else int(whole * rng.uniform(1, 6)) for whole in profile.activation_bytes)
    limited = replace(profile, budget_bytes=memory)
    peaks = evaluate(scheduler(max_activations=100).build(limited), limited).peak_bytes
    assert all(limit is None or peak <= limit for peak, limit in zip(peaks, memory, strict=True))


@few
@given(profile=profiles, seed=st.integers(0, 10_000))
def test_it_keeps_to_memory_where_w_needs_more_than_f_keeps(profile, seed):
    """As full recomputation does."""
    rng = np.random.default_rng(seed)
    kept = tuple(int(whole * rng.uniform(1, 4)) for whole in profile.activation_bytes)
    memory = tuple(int(part * rng.uniform(1, 3)) for part in kept)
    limited = replace(profile, kept_for_weight_bytes=kept, budget_bytes=memory)
    assert fits_budget(ZeroBubble(max_activations=100).build(limited), limited)


@pytest.mark.parametrize("name", ["zero_bubble", "zero_bubble_paper"])
def test_a_rank_that_holds_no_microbatch_is_refused(name):
    profile = replace(StageCosts.uniform(Shape.loop(3, num_microbatches=2)), budget_bytes=(9, 1, None))
    with pytest.raises(UsageError) as caught:
        SCHEDULERS.get(name)().build(profile)
    assert str(caught.value) == f"{name}: rank 1 has 1 bytes for activations, but one microbatch needs 2"


def test_where_w_needs_most_of_an_activation_it_takes_no_more_than_zb_h2_for_the_same_time():
    """F 10, I 11, W 7 ms, 1 GiB per activation of which W needs 0.94, room for 8 microbatches."""
    gib = 1 << 30
    profile = replace(
        StageCosts.uniform(Shape.loop(4, num_microbatches=32), f=10e-3, i=11e-3, w=7e-3),
        activation_bytes=(gib,) * 4,
        kept_for_weight_bytes=(int(0.94 * gib),) * 4,
    )
    found = evaluate(ZeroBubble(max_activations=8).build(profile), profile)
    assert found.makespan_ns == 926_000_000
    assert max(found.peak_bytes) <= 7.0 * gib


@few
@example(profile=random_profile(5, 6, np.random.default_rng(1008)), limit=6, overhead=1.0)  # the paper's choice won
@given(profile=profiles, limit=st.integers(1, 12), overhead=st.sampled_from([1.0, 1.2]))
def test_no_iteration_is_longer_than_that_of_an_order_that_fits(profile, limit, overhead):
    """The two by hand, and the paper's own choice, each under the same exact limit."""
    whole = profile.activation_bytes
    fused = [overhead * (i + w) for i, w in zip(profile.input_backward_s, profile.weight_backward_s, strict=True)]
    budget = tuple(limit * size for size in whole)
    limited = replace(profile, fused_backward_s=tuple(fused), budget_bytes=budget)
    ours = evaluate(ZeroBubble(max_activations=limit).build(profile), limited)
    for name in ("zb_h1", "zb_h2", "zero_bubble_paper"):
        program = SCHEDULERS.get(name)().build(limited)
        if fits_budget(program, limited):
            assert ours.makespan_ns <= evaluate(program, limited).makespan_ns


def test_more_memory_never_lengthens_and_here_shortens_the_iteration():
    profile = StageCosts.uniform(Shape.loop(8, num_microbatches=32), f=2.0, i=2.0, w=1.0)
    times = [evaluate(ZeroBubble(max_activations=limit).build(profile), profile).makespan_ns for limit in (2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[2]


def test_it_uses_the_messages_times_of_the_profile():
    near, far = (StageCosts.uniform(Shape.loop(4, num_microbatches=8), hop_s=hop) for hop in (0.0, 3.0))
    assert ZeroBubble(max_activations=8).build(near) != ZeroBubble(max_activations=8).build(far)


def test_activations_without_sizes_count_as_ones_of_which_w_keeps_half():
    halves = StageCosts.uniform(Shape.loop(4, num_microbatches=12), f=2.0, i=3.0, w=2.0)
    unsized = replace(halves, activation_bytes=(0,) * 4, kept_for_weight_bytes=(0,) * 4, budget_bytes=(0, None, 0, 5))
    assert ZeroBubble().build(unsized) == ZeroBubble().build(halves)


def test_the_compiled_order_is_the_plain_one(monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(5)
    several = [random_profile(int(rng.integers(1, 8)), int(rng.integers(1, 20)), rng) for _ in range(20)]
    monkeypatch.delitem(greedy.__dict__, "fast", raising=False)
    plain = [ZeroBubblePaper().build(profile) for profile in several]
    assert callable(greedy.fast)
    assert [ZeroBubblePaper().build(profile) for profile in several] == plain
    monkeypatch.delitem(greedy.__dict__, "fast")


@pytest.mark.parametrize("name", ["zero_bubble", "zero_bubble_paper"])
@pytest.mark.skipif(not available(), reason="needs numba")
def test_a_limit_beyond_64_bits_is_no_limit_in_both_forms(name):
    """Files say `no limit` by numbers of any size; compiled code holds 64 bits."""
    shape = Shape.loop(3, num_microbatches=5)
    free = StageCosts.uniform(shape, f=1.0, i=1.2, w=0.9)
    huge = replace(free, budget_bytes=(10**27,) * 3)
    scheduler = SCHEDULERS.get(name)()
    plain = scheduler.build(huge)
    assert greedy.fast is not greedy.function
    assert scheduler.build(huge) == plain == scheduler.build(free)
