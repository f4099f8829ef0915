"""Gates: what holds passes, what gets worse by more than its tolerance is named with both figures."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.research.scores import FIGURES, RunErrors, Scores, Tolerances, problems

NUMBERS = st.floats(-50, 50)


def run(name, throughput=0.0, bubble=0.0):
    return RunErrors(
        name=name,
        throughput_error_pct=throughput,
        bubble_error_pp=bubble,
        iteration_ms=100.0,
        groups={},
        terms={},
    )


def scores(runs=(), **figures):
    usual = {each.key: 5.0 for each in FIGURES} | {"utilization_spearman": 0.9}
    return Scores(figures=usual | figures, runs={each.name: each for each in runs})


GOLDEN = scores([run("a", 3.0, -1.0), run("b", -4.0, 0.5)])


def test_the_same_scores_pass():
    assert problems(GOLDEN, GOLDEN, Tolerances()) == ()


@pytest.mark.parametrize(
    ("figure", "better", "worse", "message"),
    [
        ("throughput_mape_pct", 4.9, 5.1, "throughput MAPE % gets worse: 5.000 before, 5.100 now"),
        ("bubble_mae_pp", 4.9, 5.1, "bubble MAE pp gets worse: 5.000 before, 5.100 now"),
        ("utilization_spearman", 0.91, 0.89, "utilisation Spearman gets worse: 0.9000 before, 0.8900 now"),
    ],
)
def test_a_gated_figure_holds_or_improves(figure, better, worse, message):
    assert problems(GOLDEN, replace(GOLDEN, figures={**GOLDEN.figures, figure: better}), Tolerances()) == ()
    (found,) = problems(GOLDEN, replace(GOLDEN, figures={**GOLDEN.figures, figure: worse}), Tolerances())
    assert message in found
    assert "0 allowed" in found
    wide = Tolerances(**{figure: 0.2})
    assert problems(GOLDEN, replace(GOLDEN, figures={**GOLDEN.figures, figure: worse}), wide) == ()


@pytest.mark.parametrize("figure", ["throughput_max_pct", "iteration_p50_mape_pct", "forward_mape_pct"])
def test_other_figures_may_get_worse(figure):
    assert problems(GOLDEN, replace(GOLDEN, figures={**GOLDEN.figures, figure: 99.0}), Tolerances()) == ()


def test_a_figure_that_was_known_must_stay_known():
    lost = scores(GOLDEN.runs.values(), utilization_spearman=None)
    assert problems(GOLDEN, lost, Tolerances()) == ("utilisation Spearman was 0.9000 and is not known any more",)
    assert problems(lost, GOLDEN, Tolerances()) == ()
    assert problems(lost, lost, Tolerances()) == ()


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (run("a", 5.0, -1.0), None),
        (run("a", -5.0, 3.0), None),
        (run("a", -5.1, 0.0), "run a regresses: throughput +3.00% before, -5.10% now (2% allowed)"),
        (run("a", 0.0, 3.1), "run a regresses: bubble -1.00 pp before, +3.10 pp now (2 pp allowed)"),
    ],
)
def test_no_run_regresses_by_more_than_two(after, said):
    """Errors count by size: changing sides is no regression."""
    found = problems(GOLDEN, scores([after, GOLDEN.runs["b"]]), Tolerances())
    assert found == ((said,) if said else ())


def test_the_runs_must_be_the_same():
    (found,) = problems(GOLDEN, scores([GOLDEN.runs["a"], run("c")]), Tolerances())
    assert found == "the runs are not those of the golden baseline: b, c"


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)))
def test_exactly_the_runs_beyond_a_tolerance_are_named(errors):
    before = scores([run(name, each[0], each[1]) for name, each in errors.items()])
    after = scores([run(name, each[2], each[3]) for name, each in errors.items()])
    expected = sorted(
        name
        for name, (t0, b0, t1, b1) in errors.items()
        for worse in (abs(t1) - abs(t0), abs(b1) - abs(b0))
        if worse > 2 + 1e-9
    )
    assert sorted(text.split()[1] for text in problems(before, after, Tolerances())) == expected
