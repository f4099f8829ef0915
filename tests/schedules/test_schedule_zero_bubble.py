"""The automatic schedule keeps to its limits, tries every variant that can differ, and is the same compiled."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.compiled import available
from hops.errors import UsageError
from hops.program.lowering import check
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.schedules.zero_bubble import NO_LIMIT, VARIANTS, ZeroBubble, greedy
from hops.timing.evaluate import evaluate
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
    durations = durations_ns(profile).T.tolist()
    columns = [durations[op] for op in (0, 2, 3)] + [hops_ns(profile).tolist(), [2 * limit] * p]
    columns += [[1] * p, [0] * p, [NO_LIMIT] * p]
    return [greedy(m, *columns, *variant, NO_LIMIT, [0] * 3, [0] * (p * m), [0] * (3 * p * m)) for variant in VARIANTS]


@few
@given(profile=profiles, limit=st.integers(1, 12))
def test_it_is_the_best_of_all_eight_variants_and_knows_its_own_span(profile, limit):
    program = ZeroBubble(max_activations=limit).build(profile)
    check(program)
    assert span(program, profile) == min(all_variants(profile, limit))


@few
@given(profile=profiles, limit=st.integers(1, 12))
def test_no_stage_holds_more_than_the_limit(profile, limit):
    halves = replace(
        profile,
        activation_bytes=(2,) * profile.shape.num_stages,
        kept_for_weight_bytes=(1,) * profile.shape.num_stages,
    )
    program = ZeroBubble(max_activations=limit).build(halves)
    assert max(evaluate(program, halves).peak_bytes) <= 2 * limit


@few
@given(profile=profiles, seed=st.integers(0, 10_000))
def test_no_stage_holds_more_bytes_than_its_rank_has(profile, seed):
    rng = np.random.default_rng(seed)
    memory = tuple(None if rng.random() < 0.2 else int(whole * rng.uniform(1, 6)) for whole in profile.activation_bytes)
    limited = replace(profile, budget_bytes=memory)
    peaks = evaluate(ZeroBubble(max_activations=100).build(limited), limited).peak_bytes
    assert all(limit is None or peak <= limit for peak, limit in zip(peaks, memory, strict=True))


def test_a_rank_that_holds_no_microbatch_is_refused():
    profile = replace(StageCosts.uniform(Shape.loop(3, num_microbatches=2)), budget_bytes=(9, 1, None))
    with pytest.raises(UsageError, match="rank 1 has 1 bytes for activations, but one microbatch needs 2"):
        ZeroBubble().build(profile)


@few
@given(p=st.integers(1, 8), m=st.integers(1, 30), f=st.integers(4, 9), i=st.integers(4, 9), w=st.integers(1, 4))
def test_with_zb_h1_s_memory_it_is_as_good_where_no_w_is_longer_than_f_or_i(p, m, f, i, w):
    profile = StageCosts.uniform(Shape.loop(p, num_microbatches=m), f=f, i=i, w=w)
    by_hand = SCHEDULERS.get("zb_h1")().build(profile)
    assert span(ZeroBubble().build(profile), profile) <= span(by_hand, profile)


def test_more_memory_shortens_the_span():
    profile = StageCosts.uniform(Shape.loop(8, num_microbatches=32), f=2.0, i=2.0, w=1.0)
    spans = [span(ZeroBubble(max_activations=limit).build(profile), profile) for limit in (2, 4, 8, 16)]
    assert spans == sorted(set(spans), reverse=True)


def test_it_uses_the_messages_times_of_the_profile():
    near, far = (StageCosts.uniform(Shape.loop(4, num_microbatches=8), hop_s=hop) for hop in (0.0, 3.0))
    assert ZeroBubble(max_activations=8).build(near) != ZeroBubble(max_activations=8).build(far)


def test_the_compiled_order_is_the_plain_one(monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(5)
    several = [random_profile(int(rng.integers(1, 8)), int(rng.integers(1, 20)), rng) for _ in range(20)]
    monkeypatch.delitem(greedy.__dict__, "fast", raising=False)
    plain = [ZeroBubble().build(profile) for profile in several]
    assert callable(greedy.fast)
    assert [ZeroBubble().build(profile) for profile in several] == plain
    monkeypatch.delitem(greedy.__dict__, "fast")


@pytest.mark.skipif(not available(), reason="needs numba")
def test_a_limit_beyond_64_bits_is_no_limit_in_both_forms():
    """Files say `no limit` by numbers of any size; compiled code holds 64 bits."""
    shape = Shape.loop(3, num_microbatches=5)
    free = StageCosts.uniform(shape, f=1.0, i=1.2, w=0.9)
    huge = replace(free, budget_bytes=(10**27,) * 3)
    scheduler = SCHEDULERS.get("zero_bubble")()
    plain = scheduler.build(huge)
    assert greedy.fast is not greedy.function
    assert scheduler.build(huge) == plain == scheduler.build(free)
