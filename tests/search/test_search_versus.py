"""The comparison behind `hops bench hetero16`."""

import json

import pytest
from search_cases import hetero16, random_profile
from shared_data import FACTS, missing

from hops.diagnose.versus import Versus, read_hetero16, versus, versus_report
from hops.errors import UsageError
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import search_from_builtins
from hops.search.anneal import anneal
from hops.search.search import iterations_for, warm_up
from hops.search.starts import tune
from hops.timing.examples import NamedProfile
from hops.timing.longest_path import evaluate

needs_facts = pytest.mark.skipif(not FACTS.exists(), reason=missing(FACTS))


def row(ours, theirs):
    times = {"1f1b": theirs, "hops_hetero": ours}
    return Versus(name="x", bound_ms=1.0, planned_ms=times, jittered_ms=times)


def test_planned_times_are_the_evaluators():
    profile = random_profile(4)
    times = versus(NamedProfile(name="tiny", profile=profile), jitter=0.1, budget_s=0.05)
    searched = search_from_builtins(profile, iterations=iterations_for(0.05, profile))
    assert times.planned_ms["hops_hetero"] == searched.certificate.makespan_ns / 1e6
    assert times.bound_ms == searched.certificate.bound.value_ns / 1e6
    rival = SCHEDULERS.get("1f1b")()
    rival.configure(profile)
    assert times.planned_ms["1f1b"] == evaluate(rival.program, profile).makespan_ns / 1e6


def test_jitter_of_nothing_changes_nothing_and_seeds_are_fixed():
    named = NamedProfile(name="tiny", profile=random_profile(4))
    still = versus(named, jitter=0.0, budget_s=0.05)
    assert still.jittered_ms == pytest.approx(still.planned_ms)
    assert versus(named, jitter=0.1, budget_s=0.05) == versus(named, jitter=0.1, budget_s=0.05)
    assert versus(named, jitter=0.1, budget_s=0.05, seeds=(7,)) != versus(named, jitter=0.1, budget_s=0.05, seeds=(8,))


def test_a_report_counts_wins_ties_and_regressions():
    rows = [row(100.0, 110.0), row(100.0, 100.0), row(100.0, 99.0), row(100.0, None)]
    planned = versus_report(rows, "1f1b")["planned"]
    counts = {key: planned[key] for key in ("pipelines", "wins", "ties", "regressions")}
    assert counts == {"pipelines": 3, "wins": 1, "ties": 1, "regressions": 1}
    assert planned["mean_gain_pct"] == pytest.approx(3.0)
    assert planned["max_gain_pct"] == pytest.approx(10.0)
    assert planned["min_gain_pct"] == pytest.approx(-1.0)


def test_without_a_pipeline_that_both_run_there_is_no_gain():
    report = versus_report([row(100.0, None)], "1f1b")
    assert report["jittered"]["pipelines"] == 0
    assert report["jittered"]["mean_gain_pct"] is None


@needs_facts
@pytest.mark.parametrize(("fused_is_sum", "memory"), [(False, "none"), (True, "p"), (True, "1f1b")])
def test_the_16_pipelines_are_read_under_either_cost_model_and_memory(fused_is_sum, memory):
    read = read_hetero16(FACTS / "hetero16.json", fused_is_sum=fused_is_sum, memory=memory)
    expected = list(hetero16(fused_is_sum=fused_is_sum, memory=None if memory == "none" else memory))
    assert [named.name for named in read] == [named.name for named in expected]
    for ours, theirs in zip(read, expected, strict=True):
        assert ours.profile.budget_bytes == theirs.profile.budget_bytes
        assert ours.profile.fused_backward_s == pytest.approx(theirs.profile.fused_backward_s)


def test_a_file_of_another_form_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"rows": []}))
    with pytest.raises(UsageError, match=r"other\.json:1:1: pipelines: missing; add it"):
        read_hetero16(path)
    with pytest.raises(UsageError, match=r"none\.json: cannot be read: there is no such file"):
        read_hetero16(tmp_path / "none.json")
    with pytest.raises(UsageError, match="memory must be one of none, p, 1f1b, but got 'q'"):
        read_hetero16(path, memory="q")


def test_warming_up_compiles_what_a_search_runs():
    pytest.importorskip("numba")
    warm_up()
    assert anneal.is_compiled
    assert tune.is_compiled
