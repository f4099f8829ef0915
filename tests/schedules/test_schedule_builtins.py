"""What the built-in schedules promise: their orders, their peaks by formula, and what they refuse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.program.lowering import check
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts

NAMES = [
    "gpipe", "1f1b", "interleaved_1f1b", "interleaved_zb", "looped_bfs", "grouped_interleaved", "combined_1f1b",
    "zb_h1", "zb_h2", "zb_v", "v_half", "v_min", "v_auto", "v_1f1b", "dualpipe_v", "dualpipe", "chimera",
    "seq1f1b", "zero_bubble", "zero_bubble_paper",
]  # fmt: skip


def build(name, p, m, **parameters):
    scheduler = SCHEDULERS.get(name)(**parameters)
    profile = StageCosts.uniform(scheduler.shape(p, m))
    return scheduler.build(profile), profile


def peaks(name, p, m, **parameters):
    """Per rank, microbatches in flight, and activations of one stage in halves (F +2, I -1, W -1)."""
    program, profile = build(name, p, m, **parameters)
    evaluation = evaluate(program, profile)
    return evaluation.peak_in_flight, evaluation.peak_bytes


ORDERS = {
    "gpipe": ["0F0 0F1 0F2 0B0 0B1 0B2", "1F0 1F1 1F2 1B0 1B1 1B2"],
    "1f1b": ["0F0 0F1 0B0 0F2 0B1 0B2", "1F0 1B0 1F1 1B1 1F2 1B2"],
    "zb_h1": ["0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"],
    "zb_h2": ["0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2"],
    "zb_v": [
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2",
        "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2",
    ],
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_order_on_two_ranks_with_three_microbatches(name):
    program, _ = build(name, 2, 3)
    assert [" ".join(map(str, program.rank(rank))) for rank in range(program.num_ranks)] == ORDERS[name]


def test_interleaved_runs_groups_of_microbatches_through_its_chunks_as_megatron_does():
    program, _ = build("interleaved_1f1b", 2, 4)
    assert " ".join(map(str, program.actions(1))) == ("1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3")


def test_interleaved_in_larger_groups_warms_up_by_the_group():
    """Rank s warms up with 2 (p - 1 - s) + (v - 1) x group forwards."""
    program, _ = build("interleaved_1f1b", 2, 8, microbatch_group_size=4)
    assert [str(action) for action in program.actions(1)[:6]] == ["1F0", "1F1", "1F2", "1F3", "3F0", "3B0"]


def test_dualpipe_v_joins_forwards_and_backwards_to_pairs():
    program, _ = build("dualpipe_v", 2, 4)
    assert str(program).splitlines()[1:] == [
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3+3B1 3F2+0B0 3B2 3F3+0B1 3B3 0I2 0W2 0I3 0W3",
        "1F0 2F0 1F1 2F1 1F2 2B0 2F2+1B0 1F3+2B1 2F3+1B1 2B2 1B2 2I3 1I3 2W3 1W3",
    ]


sizes = given(p=st.integers(1, 9), m=st.integers(1, 30))
few = settings(deadline=None, max_examples=40)


@few
@sizes
def test_gpipe_holds_every_microbatch(p, m):
    assert peaks("gpipe", p, m) == ((m,) * p, (2 * m,) * p)


@few
@sizes
def test_1f1b_holds_at_most_p_minus_s_microbatches_on_rank_s(p, m):
    held = tuple(min(p - s, m) for s in range(p))
    assert peaks("1f1b", p, m) == (held, tuple(2 * n for n in held))


@few
@given(p=st.integers(1, 6), groups=st.integers(1, 5), v=st.integers(2, 4))
def test_interleaved_holds_its_warm_up_and_one(p, groups, v):
    m = groups * p
    held = tuple(min(2 * (p - 1 - s) + (v - 1) * p + 1, m * v) for s in range(p))
    assert peaks("interleaved_1f1b", p, m, chunks=v)[0] == held


@few
@sizes
def test_zb_h1_holds_p_activations_at_most(p, m):
    """Rank s of p holds p - s whole ones, and s halves that wait for their W."""
    m = max(m, p)
    assert peaks("zb_h1", p, m) == ((p,) * p, tuple(2 * (p - s) + s for s in range(p)))


@few
@sizes
def test_zb_h2_holds_2p_minus_1_activations_at_most(p, m):
    m = max(m, 2 * p - 1)
    assert peaks("zb_h2", p, m) == ((2 * p - 1,) * p, tuple(2 * (2 * p - 1 - s) for s in range(p)))


@few
@sizes
def test_zb_v_holds_what_1f1b_holds_on_rank_0(p, m):
    """2 p activations of half a rank's work."""
    m = max(m, 2 * p)
    assert peaks("zb_v", p, m) == ((2 * p,) * p, (4 * p,) * p)


@few
@given(p=st.integers(2, 9), m=st.integers(1, 30))
def test_v_half_holds_half_of_p_and_one(p, m):
    """p + 2 activations of half a rank's work."""
    assert set(peaks("v_half", p, max(m, 2 * p))[1]) == {2 * (p + 2)}
    assert max(peaks("v_half", p, m)[1]) <= 2 * (p + 2)


@few
@sizes
def test_dualpipe_v_holds_2p_plus_1_activations_of_half_a_rank(p, m):
    m = max(m, 2 * p)
    assert peaks("dualpipe_v", p, m) == ((2 * p + 1,) * p, (4 * p + 2,) * p)


@pytest.mark.parametrize(
    "name", ["1f1b", "zb_h1", "zb_h2", "zb_v", "v_half", "v_min", "zero_bubble", "zero_bubble_paper"]
)
@pytest.mark.parametrize(("p", "m"), [(1, 1), (1, 4), (2, 1), (5, 1), (7, 3), (16, 5), (12, 40)])
def test_few_microbatches_and_single_ranks_are_arranged_too(name, p, m):
    check(build(name, p, m)[0])


PARAMETERS = {
    "chunks must be an integer of at least 2, but got 1": ("interleaved_1f1b", {"chunks": 1}),
    "chunks must be an integer of at least 2, but got 2.5": ("interleaved_1f1b", {"chunks": 2.5}),
    "chunks must be an integer of at least 2, but got True": ("interleaved_1f1b", {"chunks": True}),
    "microbatch_group_size must be an integer of at least 1, but got 0": (
        "interleaved_1f1b",
        {"microbatch_group_size": 0},
    ),
    "max_activations must be an integer of at least 1, but got 0": ("zero_bubble", {"max_activations": 0}),
}


@pytest.mark.parametrize("message", PARAMETERS)
def test_a_wrong_parameter_is_refused_by_the_constructor(message):
    name, parameters = PARAMETERS[message]
    with pytest.raises(UsageError) as caught:
        SCHEDULERS.get(name)(**parameters)
    assert str(caught.value) == message


SHAPES = {
    "interleaved_1f1b: microbatch_group_size must be from 4 (ranks) to 3 (microbatches), but got 4; use more "
    "microbatches or another schedule": ("interleaved_1f1b", {"microbatch_group_size": 4}, 4, 3),
    "interleaved_1f1b: microbatch_group_size must be from 4 (ranks) to 16 (microbatches), but got 2; use more "
    "microbatches or another schedule": ("interleaved_1f1b", {"microbatch_group_size": 2}, 4, 16),
    "interleaved_1f1b: 10 microbatches in groups of 4 leave 2, expected 0 or at least 4 (ranks); use a multiple of 4 "
    "microbatches": ("interleaved_1f1b", {"microbatch_group_size": 4}, 4, 10),
    "interleaved_1f1b: 9 microbatches do not divide into 2 groups of equal size, as many as 4 ranks need; use 8 or 10 "
    "microbatches": ("interleaved_1f1b", {}, 4, 9),
    "interleaved_zb: 9 microbatches do not divide into 2 groups of equal size, as many as 4 ranks need; use 8 or 10 "
    "microbatches": ("interleaved_zb", {}, 4, 9),
    "grouped_interleaved: microbatch_group_size must be at most 4 (ranks), but got 5; larger groups are for "
    "interleaved_1f1b": ("grouped_interleaved", {"microbatch_group_size": 5}, 4, 16),
    "dualpipe_v: microbatches must be at least 8, twice the ranks, but got 7": ("dualpipe_v", {}, 4, 7),
}


@pytest.mark.parametrize("message", SHAPES)
def test_numbers_that_cannot_be_arranged_are_refused_by_shape(message):
    name, parameters, p, m = SHAPES[message]
    with pytest.raises(UsageError) as caught:
        SCHEDULERS.get(name)(**parameters).shape(p, m)
    assert str(caught.value) == message


def test_interleaved_takes_a_rest_that_fills_the_pipeline_as_megatron_does():
    check(build("interleaved_1f1b", 4, 14, microbatch_group_size=5)[0])


@pytest.mark.parametrize("name", NAMES)
def test_every_builtin_is_known_by_name(name):
    assert name in SCHEDULERS.names()


@pytest.mark.parametrize("name", ["zb_v", "v_half", "v_min", "v_1f1b", "dualpipe_v"])
def test_v_schedules_place_stages_down_and_up(name):
    assert SCHEDULERS.get(name)().shape(3, 8) == Shape.v(3, num_microbatches=8)


@pytest.mark.parametrize("name", NAMES)
def test_building_twice_gives_the_same_program(name):
    assert build(name, 4, 16)[0] == build(name, 4, 16)[0]
