"""Closed forms and golden values of the schedules of the field (F = I = W = 1 per stage, B = 2)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.program.lowering import check
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts

few = settings(deadline=None, max_examples=40)
times = st.integers(1, 9)


def run(name, p, m, f=1.0, i=1.0, w=1.0, pair_factor=1.0, **parameters):
    scheduler = SCHEDULERS.get(name)(**parameters)
    profile = replace(StageCosts.uniform(scheduler.shape(p, m), f=f, i=i, w=w), pair_factor=pair_factor)
    program = scheduler.build(profile)
    check(program)
    return evaluate(program, profile)


def makespan(*args, **kwargs):
    """Seconds."""
    return run(*args, **kwargs).makespan_ns / 1e9


GOLDEN = {
    ("looped_bfs", 4, 8, 2): 57,
    ("looped_bfs", 4, 8, 3): 81,
    ("looped_bfs", 8, 64, 2): 405,
    ("looped_bfs", 8, 64, 3): 597,
    ("interleaved_zb", 4, 8, 2): 51,
    ("interleaved_zb", 4, 8, 3): 75,
    ("interleaved_zb", 8, 16, 2): 103,
    ("interleaved_zb", 8, 64, 3): 583,
    ("combined_1f1b", 4, 8, 2): 57,
    ("combined_1f1b", 8, 64, 2): 405,
    ("v_1f1b", 4, 8, None): 63,
    ("v_1f1b", 4, 16, None): 111,
    ("v_1f1b", 8, 64, None): 417,
}


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_makespans(case):
    name, p, m, chunks = case
    assert makespan(name, p, m, **({"chunks": chunks} if chunks else {})) == GOLDEN[case]


@few
@given(p=st.integers(1, 8), m=st.integers(1, 20), v=st.integers(2, 4), f=times, i=times, w=times)
def test_looped_bfs_takes_1f1b_s_bubble_per_chunk_and_holds_everything(p, m, v, f, i, w):
    """Where the microbatches fill the pipeline; else each chunk waits for the one before."""
    m = max(m, p)
    found = run("looped_bfs", p, m, f, i, w, chunks=v)
    assert found.makespan_ns / 1e9 == (v * m + p - 1) * (f + i + w)
    assert found.peak_in_flight == (v * m,) * p


@few
@given(p=st.integers(2, 8), rounds=st.integers(1, 4), more=st.integers(0, 7), v=st.integers(2, 4))
def test_interleaved_zero_bubble_loses_p_minus_1_units_of_a_chunk(p, rounds, more, v):
    """Also where m is no multiple of p."""
    group = p + more * (more < p and rounds == 1)
    m = rounds * group
    found = run("interleaved_zb", p, m, chunks=v)
    assert found.makespan_ns / 1e9 == 3 * v * m + p - 1
    assert found.peak_in_flight == tuple(min((v - 1) * group + p, v * m) for _ in range(p))


@few
@given(p=st.integers(1, 8), groups=st.integers(1, 4), v=st.integers(2, 4), tenths=st.integers(7, 10))
def test_combined_1f1b_pairs_all_but_warm_up_and_cool_down(p, groups, v, tenths):
    """(p-1) + p(v-1) + 1 times F + B apart, the rest at the pair's time (at least B); one activation more."""
    m, alone = groups * p, 3
    pair = alone * tenths / 10
    found = run("combined_1f1b", p, m, pair_factor=tenths / 10, chunks=v)
    apart = p - 1 + p * (v - 1) + 1
    assert found.makespan_ns / 1e9 == pytest.approx(apart * alone + (v * m - p * (v - 1) - 1) * pair, abs=1e-6)
    held = run("interleaved_1f1b", p, m, chunks=v).peak_in_flight
    assert found.peak_in_flight == tuple(min(n + 1, v * m) for n in held)


def test_combined_1f1b_on_one_chunk_doubles_the_warm_up():
    assert run("combined_1f1b", 4, 8, chunks=1).peak_in_flight == (8, 6, 4, 2)


# p, chunks, microbatches per group: bubble, and activations of rank 0; for any number of microbatches from 2 p on.
GROUPED = {
    (4, 2, 1): (9, 7),
    (4, 2, 2): (8, 6),
    (4, 2, 4): (6, 8),
    (8, 2, 1): (23, 13),
    (8, 2, 4): (18, 12),
    (8, 2, 8): (14, 16),
    (4, 3, 1): (14, 8),
    (4, 3, 2): (10, 8),
    (4, 3, 4): (6, 12),
    (8, 3, 1): (34, 16),
    (8, 3, 4): (22, 16),
    (8, 3, 8): (14, 24),
}


@pytest.mark.parametrize("case", GROUPED)
@pytest.mark.parametrize("rounds", [2, 5])
def test_grouped_interleaved_trades_bubble_for_activations(case, rounds):
    p, v, group = case
    m = rounds * p
    found = run("grouped_interleaved", p, m, chunks=v, microbatch_group_size=group)
    assert (found.makespan_ns / 1e9 - 3 * v * m, found.peak_in_flight[0]) == GROUPED[case]


@few
@given(p=st.integers(1, 9), m=st.integers(1, 20), v=st.integers(2, 5), group=st.integers(1, 9), slow=st.integers(1, 9))
def test_grouped_interleaved_runs_whatever_the_times(p, m, v, group, slow):
    scheduler = SCHEDULERS.get("grouped_interleaved")(chunks=v, microbatch_group_size=min(group, p))
    profile = StageCosts.uniform(scheduler.shape(p, m), w=0.5)
    uneven = replace(profile, forward_s=(float(slow), *profile.forward_s[1:]))
    check(scheduler.build(uneven))


@pytest.mark.parametrize(("p", "bubble", "held"), [(2, 4, 4), (4, 15, 6), (8, 33, 12)])
def test_v_1f1b_holds_less_than_1f1b_with_whole_backwards(p, bubble, held):
    for m in (2 * p, 6 * p):
        found = run("v_1f1b", p, m)
        assert found.makespan_ns / 1e9 == 6 * m + bubble
        assert found.peak_in_flight == (held,) * p


def test_v_1f1b_is_the_same_compiled_and_not(monkeypatch):
    from hops.schedules import v_1f1b

    scheduler = v_1f1b.V1F1B()
    profile = StageCosts.uniform(scheduler.shape(5, 12))
    compiled = scheduler.build(profile)
    monkeypatch.setattr(v_1f1b.pull_forward, "fast", v_1f1b.pull_forward.function)
    assert scheduler.build(profile) == compiled


@few
@given(p=st.integers(1, 8), m=st.integers(1, 7))
def test_interleaved_with_fewer_microbatches_than_ranks_is_one_group(p, m):
    m = min(m, p)
    assert makespan("interleaved_1f1b", p, m, chunks=2) >= 3 * 2 * m
    assert run("interleaved_1f1b", p, m, chunks=2).peak_in_flight[0] == min(2 * (p - 1) + m + 1, 2 * m)
