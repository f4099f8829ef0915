"""Reports, settings and journals are parsed at the edge: what is missing or wrong is named, with its place."""

import copy
import json

import pytest

from hops.errors import ResearchError
from hops.research.folder import Data, Limits, ResearchSettings, read_settings, write_settings
from hops.research.journal import Baseline, Experiment, Journal, next_attempt
from hops.research.observe import observe, render
from hops.research.scores import Tolerances, scores_of

FIGURES = {
    "throughput_mape_pct": 4.0,
    "throughput_max_pct": 8.0,
    "iteration_p50_mape_pct": 3.0,
    "bubble_mae_pp": 1.0,
    "utilization_spearman": None,
    "forward_mape_pct": 2.0,
    "backward_mape_pct": 2.5,
    "latency_mape_pct": 3.5,
}


def row(name, error, iteration_ms, **terms):
    return {
        "run": name,
        "iteration_ms": iteration_ms,
        "groups": {"devices": name[0]},
        "variants": {
            "calibrated": {
                "throughput_error_pct": error,
                "bubble_error_pp": error / 4,
                "terms": {
                    key: {"predicted_ms": predicted, "measured_ms": measured}
                    for key, (predicted, measured) in terms.items()
                },
            }
        },
    }


REPORT = {
    "n": 3,
    "variants": {"calibrated": FIGURES},
    "runs": [
        row("h1", 4.0, 100, forward=(51, 50), reduce=(30, 36)),
        row("h2", -8.0, 200, forward=(98, 100), reduce=(30, 36)),
        row("l1", 1.0, 50, forward=(20, 20)),
    ],
}


def test_a_report_is_read():
    scores = scores_of(REPORT, "calibrated")
    assert scores.figures == FIGURES
    assert list(scores.runs) == ["h1", "h2", "l1"]
    assert scores.runs["h2"].throughput_error_pct == -8.0
    assert scores.runs["h2"].terms["reduce"].measured_ms == 36


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("variants",), {}, "report: there is no variants.calibrated, got none"),
        (("variants", "calibrated"), 3, "report: variants.calibrated: got 3, expected a mapping"),
        (("variants", "calibrated", "bubble_mae_pp"), "x", "bubble_mae_pp: got 'x', expected a number"),
        (("variants", "calibrated", "bubble_mae_pp"), float("nan"), "bubble_mae_pp: got nan, expected a finite number"),
        (("runs",), {}, "report: runs: got a mapping, expected a list"),
        (("runs", 1, "run"), 7, r"report: runs\[1\].run: got 7, expected text"),
        (("runs", 1, "iteration_ms"), None, r"report: runs\[1\].iteration_ms: got null, expected a number"),
        (
            ("runs", 2, "variants", "calibrated", "terms", "forward"),
            {},
            r"calibrated\.terms\.forward\.predicted_ms: miss",
        ),
    ],
)
def test_what_is_wrong_in_a_report_is_named(path, value, message):
    report = copy.deepcopy(REPORT)
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ResearchError, match=message):
        scores_of(report, "calibrated")


def test_terms_and_groups_are_sorted_by_the_error_they_contribute():
    """Terms in percent of the measured iteration, over the runs that have them; groups by throughput error."""
    observation = observe(scores_of(REPORT, "calibrated"))
    reduce, forward = observation.terms
    assert (reduce.name, reduce.runs, reduce.worst) == ("reduce", 2, "h1")
    assert (reduce.size_pct, reduce.bias_pct, reduce.worst_pct) == pytest.approx(((6 + 3) / 2, -(6 + 3) / 2, -6))
    assert (forward.name, forward.runs) == ("forward", 3)
    assert (forward.size_pct, forward.bias_pct) == pytest.approx(((1 + 1 + 0) / 3, 0))
    assert [(each.name, each.size_pct, each.bias_pct) for each in observation.groups] == [
        ("devices h", 6.0, -2.0),
        ("devices l", 1.0, 1.0),
    ]
    assert [run.name for run in observation.runs] == ["h2", "h1", "l1"]


def test_an_observation_reads_as_a_page():
    page = render(observe(scores_of(REPORT, "calibrated")))
    assert "| throughput MAPE % | 4.00 |\n" in page
    assert "| utilisation Spearman | - |\n" in page
    assert "| reduce | 2 | 4.50 | -4.50 | -6.00 | h1 |\n" in page
    assert "| devices h | 2 | 6.00 | -2.00 | -8.00 | h2 |\n" in page
    assert "| h2 | -8.00 | -2.00 |\n" in page


def test_a_report_without_terms_says_so():
    report = {**REPORT, "runs": []}
    assert "The report has no terms." in render(observe(scores_of(report, "calibrated")))


def test_settings_survive_writing_and_reading(tmp_path):
    settings = ResearchSettings(
        repository="../..",
        data=Data(train='/data/"odd" name', test="/vault"),
        variant="link_calibrated",
        editable=("a", "b/c.py"),
        source=".",
        evaluate=("make", "report"),
        tests=("true",),
        limits=Limits(agent_s=1.0, evaluate_s=2.0, tests_s=3.0),
        gates=Tolerances(throughput_mape_pct=0.1, run_bubble_pp=4.0),
    )
    path = tmp_path / "research.toml"
    path.write_text(write_settings(settings))
    assert read_settings(path) == settings


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("variant =", "variante =", "research.toml: variante: unknown key; did you mean variant?"),
        ("agent_s = 3600.0", "agent_s = -1", "limits.agent_s: got -1, expected at least 0"),
        ("bubble_mae_pp = 0.0", "bubble_mae_pp = true", "gates.bubble_mae_pp: got true, expected a number"),
        ('variant = "calibrated"', "variant = 3", "variant: got 3, expected text"),
        ('source = "src"', "source = [", "research.toml: is not TOML: "),
        ('train = "/t"', "", "data.train: missing; add it"),
        ('tests = ["true"]', "tests = []", "tests: got 0 entries, expected at least 1"),
        ('tests = ["true"]', 'tests = "true"', "tests: got 'true', expected a list"),
        ("[limits]", "[limits]\n[data2]", "data2: unknown key"),
    ],
)
def test_what_is_wrong_in_settings_is_named(tmp_path, old, new, message):
    path = tmp_path / "research.toml"
    text = write_settings(ResearchSettings(repository="..", data=Data(train="/t"), tests=("true",)))
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ResearchError, match=message):
        read_settings(path)


def test_a_folder_without_settings_is_no_research_folder(tmp_path):
    with pytest.raises(ResearchError, match=r"no research folder\nfix: .* hops research init --train RUNS"):
        read_settings(tmp_path / "research.toml")


BASELINE = Baseline(date="2026-01-02", what="first", measured="here", commit="", figures=FIGURES)
EXPERIMENT = Experiment(
    date="2026-01-03",
    hypothesis="caches matter",
    verdict="accepted",
    why="it is so",
    measured="here",
    figures={"bubble_mae_pp": 0.5},
)


def test_a_journal_gives_back_what_was_written(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    assert journal.entries() == ()
    journal.append(BASELINE)
    journal.append(EXPERIMENT)
    assert journal.entries() == (BASELINE, EXPERIMENT)
    assert next_attempt(journal.entries()) == 1


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_line_cut_short_by_a_crash_is_no_entry_and_in_nobodys_way(tmp_path, cut):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append(BASELINE)
    journal.append(EXPERIMENT)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-cut])
    assert journal.entries() == (BASELINE,)
    journal.append(EXPERIMENT)
    assert journal.path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "journal.jsonl:1:2: is not JSON"),
        ('{"kind": "miracle"}', "journal.jsonl:1: got 'miracle', expected a mapping with kind, one of baseline, exp"),
        ('{"kind": "test_opened", "date": ""}', r"1:1: count: missing; add it\n.*1:1: commit: missing"),
        (
            json.dumps({"kind": "baseline", "date": "", "what": "", "measured": "", "commit": "", "figures": {"x": 1}}),
            r"journal.jsonl:1:88: figures.x: unknown figure, expected one of backward_mape_pct",
        ),
    ],
)
def test_what_is_wrong_in_a_journal_is_named(tmp_path, line, message):
    path = tmp_path / "journal.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ResearchError, match=message):
        Journal(path).entries()
