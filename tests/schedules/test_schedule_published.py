"""Published numbers: bubble rates of the zero-bubble paper, closed forms, and golden makespans."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.program.lowering import check
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts

# arXiv 2401.10241, tables 9 and 5: p, m, T_F, T_B (our I), T_W, T_comm in ms; bubble rates
# of 1F1B, ZB-H1, ZB-H2, ZB-1p, ZB-2p.
PAPER = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083, 0.1585, 0.0433),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837, 0.1242, 0.0039),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444, 0.0674, 0.0026),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698, 0.1323, 0.0029),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559, 0.1045, 0.0022),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294, 0.0554, 0.0010),
]
MODELS = ["1.5B-m24", "1.5B-m32", "1.5B-m64", "6.2B-m24", "6.2B-m32", "6.2B-m64"]
PAPER_ROWS = pytest.mark.parametrize("row", PAPER, ids=MODELS)
times = st.integers(1, 9)
few = settings(deadline=None, max_examples=40)


def run(name, p, m, f=1.0, i=1.0, w=1.0, hop=0.0, **parameters):
    scheduler = SCHEDULERS.get(name)(**parameters)
    profile = StageCosts.uniform(scheduler.shape(p, m), f=f, i=i, w=w, hop_s=hop)
    program = scheduler.build(profile)
    check(program)
    return evaluate(program, profile)


def makespan(*args, **kwargs):
    """Seconds."""
    return run(*args, **kwargs).makespan_ns / 1e9


def longest_span(*args, **kwargs):
    """Seconds."""
    return max(run(*args, **kwargs).span_ns) / 1e9


def bubble_rate(name, row, **parameters):
    p, m, *milliseconds = row[:6]
    f, i, w, hop = (value / 1e3 for value in milliseconds)
    cost = longest_span(name, p, m, f, i, w, hop, **parameters)
    return (cost - m * (f + i + w)) / cost


@PAPER_ROWS
@pytest.mark.parametrize(("name", "column"), [("1f1b", 6), ("zb_h1", 7), ("zb_h2", 8)])
def test_bubble_rates_equal_the_paper_s_in_all_four_digits(name, column, row):
    assert f"{bubble_rate(name, row):.4f}" == f"{row[column]:.4f}"


@PAPER_ROWS
@pytest.mark.parametrize(("factor", "column"), [(1, 9), (2, 10)], ids=["ZB-1p", "ZB-2p"])
def test_automatic_schedules_are_no_worse_than_the_paper_s(factor, column, row):
    assert round(bubble_rate("zero_bubble_paper", row, max_activations=factor * row[0]), 4) <= row[column]


@PAPER_ROWS
def test_the_default_memory_limit_is_that_of_zb_1p(row):
    for name in ("zero_bubble", "zero_bubble_paper"):
        assert bubble_rate(name, row) == bubble_rate(name, row, max_activations=row[0])


GOLDEN = [
    ("gpipe", 57, 213),
    ("1f1b", 57, 213),
    ("interleaved_1f1b", 105, 405),
    ("zb_h1", 51, 199),
    ("zb_v", 99, 391),
    ("v_half", 101, 401),
    ("v_min", 107, 411),
    ("dualpipe_v", 102, 398),
]


@pytest.mark.parametrize(("name", "small", "large"), GOLDEN)
def test_golden_makespans_of_unit_times(name, small, large):
    assert (makespan(name, 4, 16), makespan(name, 8, 64)) == (small, large)


@few
@given(p=st.integers(1, 8), m=st.integers(1, 24), f=times, i=times, w=times)
def test_1f1b_and_gpipe_take_m_plus_p_minus_1_times_f_plus_b(p, m, f, i, w):
    for name in ("1f1b", "gpipe"):
        assert makespan(name, p, m, f, i, w) == (m + p - 1) * (f + i + w)


@few
@given(p=st.integers(2, 8), groups=st.integers(1, 5), f=times, i=times, w=times, part=st.integers(1, 4))
def test_1f1b_with_latency_adds_k_hops(p, groups, f, i, w, part):
    m, hop = groups * p, f * part / 4
    k = 2 * (p - 1) * groups + 2 * (p - 2)
    assert makespan("1f1b", p, m, f, i, w, hop) == (m + p - 1) * (f + i + w) + k * hop


@few
@given(p=st.integers(1, 6), groups=st.integers(1, 5), v=st.integers(2, 4), f=times, i=times, w=times)
def test_interleaved_bubble_is_that_of_1f1b_over_v(p, groups, v, f, i, w):
    m = groups * p
    whole = v * (f + i + w)
    assert makespan("interleaved_1f1b", p, m, f, i, w, chunks=v) == m * whole + (p - 1) * whole / v


@few
@given(p=st.integers(1, 8), m=st.integers(0, 24), f=times, i=times, w=times)
def test_zb_h1_bubble_is_p_minus_1_times_f_plus_b_minus_2w(p, m, f, i, w):
    """Of the longest span if no W is longer than an F; of the makespan if no W is longer than F or I."""
    f, i, m = max(f, w), max(i, w), max(m, p)
    expected = m * (f + i + w) + (p - 1) * (f + i - w)
    assert makespan("zb_h1", p, m, f, i, w) == expected
    assert longest_span("zb_h1", p, m, f, i, w) == expected


@few
@given(p=st.integers(1, 8), m=st.integers(0, 24), f=times, i=times, w=times)
def test_zb_h2_bubble_is_p_minus_1_times_f_plus_b_minus_3w(p, m, f, i, w):
    """Of the longest stage span, if no W is longer than F or I."""
    f, i, m = max(f, w), max(i, w), max(m, 2 * p)
    assert longest_span("zb_h2", p, m, f, i, w) == m * (f + i + w) + (p - 1) * (f + i - 2 * w)


@few
@given(p=st.integers(1, 8), short=st.integers(0, 7), f=times, i=times, w=times)
def test_with_no_more_microbatches_than_ranks_zero_bubble_takes_one_w_more_than_its_f_and_i(p, short, f, i, w):
    f, i, m = max(f, w), max(i, w), max(1, p - short)
    for name in ("zb_h1", "zero_bubble", "zero_bubble_paper"):
        assert makespan(name, p, m, f, i, w) == (m + p - 1) * (f + i) + w


@few
@given(p=st.integers(1, 8), extra=st.integers(0, 12), unit=times)
def test_dualpipe_v_bubble_is_half_the_stages_minus_1_times_pair_plus_b_minus_3w(p, extra, unit):
    m = 2 * p + extra
    pair_s, fused_s = 3 * unit, 2 * unit
    expected = 6 * unit * m + (2 * p / 2 - 1) * (pair_s + fused_s - 3 * unit)
    assert makespan("dualpipe_v", p, m, unit, unit, unit) == expected


@few
@given(p=st.integers(1, 8), extra=st.integers(0, 12), unit=times)
def test_zb_v_has_no_bubble_in_any_span_when_f_i_and_w_are_equal(p, extra, unit):
    evaluation = run("zb_v", p, 2 * p + extra, unit, unit, unit)
    assert set(evaluation.span_ns) == set(evaluation.busy_ns)


@few
@given(p=st.integers(4, 9), extra=st.integers(0, 12))
def test_v_half_bubble_is_3p_minus_7_units(p, extra):
    """Of the golden makespans' unit times; the same for any number of microbatches from p on."""
    m = p + extra
    assert makespan("v_half", p, m) == 6 * m + 3 * p - 7


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.94, 1.0, 2.0])
@pytest.mark.parametrize(("p", "m", "bubble"), [(2, 8, 1), (4, 6, 5), (4, 16, 5), (8, 64, 17)])
def test_v_half_has_the_reference_s_bubble_in_its_memory_whatever_w_keeps(kept, p, m, bubble):
    """Of p + 2 activations of half a rank's work, or as many times what W needs where that is more."""
    peak, makespan = peak_and_makespan("v_half", p, m, kept)
    assert makespan <= 6 * m + bubble
    assert peak <= (p + 2) * max(1.0, kept)


@few
@given(p=st.integers(1, 12), m=st.integers(1, 40), kept=st.floats(0.0, 1.5))
def test_v_half_and_v_min_keep_to_their_memory_for_all_sizes_and_whatever_w_keeps(p, m, kept):
    for name, chunks in (("v_half", p + 2), ("v_min", 2 * ((p + 4) // 3))):
        assert peak_and_makespan(name, p, m, kept)[0] <= chunks * max(1.0, kept)


@pytest.mark.parametrize(("p", "bubble"), [(2, 3), (4, 11), (8, 27)])
@pytest.mark.parametrize("m", [8, 16, 64])
def test_v_min_s_bubble_does_not_depend_on_the_microbatches(p, bubble, m):
    """That of the published implementation, see the golden values."""
    assert makespan("v_min", p, m) == 6 * m + bubble


def peak_and_makespan(name, p, m, kept):
    """In activations of one stage, of which W keeps a part, and in seconds for F = I = W = 1."""
    scheduler = SCHEDULERS.get(name)()
    profile = StageCosts.uniform(scheduler.shape(p, m))
    sizes = {"activation_bytes": (1000,) * 2 * p, "kept_for_weight_bytes": (int(1000 * kept),) * 2 * p}
    profile = replace(profile, **sizes)
    program = scheduler.build(profile)
    check(program)
    evaluation = evaluate(program, profile)
    return max(evaluation.peak_bytes) / 1000, evaluation.makespan_ns / 1e9


def test_twice_the_memory_shows_in_the_span_where_the_makespan_hides_it():
    one, two = (run("zero_bubble_paper", 8, 64, max_activations=limit) for limit in (8, 16))
    assert one.makespan_ns == two.makespan_ns
    assert max(two.span_ns) < max(one.span_ns)
