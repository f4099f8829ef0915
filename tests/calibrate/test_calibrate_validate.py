"""Validation: figures by their definitions, the report's keys, folds, and the command."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from calibrate_runs import READERS, recorded
from rich.console import Console
from scipy.stats import spearmanr
from typer.testing import CliRunner

from hops.build.setup import RunInputs
from hops.calibrate.calibrate import folds, scenario
from hops.calibrate.score import RunFigures, RunScore, measured_outcome, spearman, suite
from hops.calibrate.validate import DESCRIPTIONS, cross_validate, run_folders, validate
from hops.cost.profile import shipped_profile
from hops.errors import UsageError
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts

KEYS = [
    "throughput_mape_pct",
    "throughput_max_pct",
    "iteration_p50_mape_pct",
    "bubble_mae_pp",
    "utilization_spearman",
    "forward_mape_pct",
    "backward_mape_pct",
    "latency_mape_pct",
]


def outcome(mean=1.0, busy=(0.5, 0.25, 0.125), forward=(0.1, 0.2, 0.1)):
    return RunFigures(
        num_microbatches=10, mean_iteration_s=mean, p50_iteration_s=mean, latency_s=mean, optimizer_s=(0.0,) * 3,
        forward_busy_s=tuple(each / 4 for each in busy), backward_busy_s=tuple(each * 3 / 4 for each in busy),
        forward_s=forward, backward_s=forward, pipeline_s=mean * 0.7, reduce_s=mean * 0.2, step_s=mean * 0.1, gap_s=0.0,
    )  # fmt: skip


def score(predicted, measured):
    return RunScore(name="x", predicted=predicted, measured=measured)


def test_throughput_is_microbatches_over_the_mean_iteration_and_bubble_what_is_not_busy():
    measured = outcome(mean=2.0)
    assert measured.throughput == 5
    assert measured.bubble == pytest.approx(1 - 0.875 / 6)
    assert measured.utilization == pytest.approx((0.25, 0.125, 0.0625))


def test_errors_are_prediction_over_measurement():
    one = score(outcome(mean=1.25), outcome(mean=1.0))
    assert one.throughput_pct == pytest.approx(-20)
    assert one.p50_pct == pytest.approx(25)
    assert one.bubble_pp == pytest.approx(100 * (0.875 / 3 - 0.7 / 3))


def test_a_suite_takes_means_of_absolute_errors_and_the_largest():
    found = suite([score(outcome(mean=1.25), outcome()), score(outcome(mean=0.8), outcome())])
    assert found.throughput_mape_pct == pytest.approx((20 + 25) / 2)
    assert found.throughput_max_pct == pytest.approx(25)
    assert found.forward_mape_pct == 0
    assert found.utilization_spearman == pytest.approx(1)


def test_f_and_b_errors_are_over_stages():
    found = suite([score(outcome(forward=(0.1, 0.1, 0.1)), outcome(forward=(0.1, 0.2, 0.1)))])
    assert found.forward_mape_pct == pytest.approx(50 / 3)


def test_terms_add_up_to_the_iteration():
    one = score(outcome(mean=1.25), outcome())
    assert sum(ours for ours, _ in one.terms.values()) == pytest.approx(1.25)
    assert sum(theirs for _, theirs in one.terms.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_rank_correlation_is_spearmans(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 4, (2, 6))  # with ties
    if len(set(one.tolist())) > 1 and len(set(other.tolist())) > 1:
        assert spearman(one, other) == pytest.approx(spearmanr(one, other)[0])


def test_two_ranks_have_no_rank_correlation():
    two = outcome(busy=(0.5, 0.25))
    assert score(two, two).spearman is None


def test_measured_figures_agree_with_the_metrics_of_the_trace(folders):
    trace = READERS.trace(folders[0])
    found, summary = measured_outcome(trace), summarize(trace, RunFacts())
    assert 1e3 * found.mean_iteration_s == pytest.approx(summary.iteration_time.mean_ms)
    assert 1e3 * found.p50_iteration_s == pytest.approx(summary.iteration_time.p50_ms)
    assert found.throughput == pytest.approx(summary.throughput.microbatches_per_s)
    busy = [(f + o) * 1e3 for f, o in zip(found.busy_s, found.optimizer_s, strict=True)]
    assert busy == pytest.approx([rank.busy_ms for rank in summary.ranks], rel=1e-6)


def test_leading_iterations_can_be_left_out(folders):
    trace = READERS.trace(folders[0])
    whole, later = measured_outcome(trace), measured_outcome(trace, warmup=6)
    assert later.mean_iteration_s != whole.mean_iteration_s


def test_with_the_true_profile_every_run_is_predicted(folders, truth):
    """What is left is chance: reductions and stalls of a dozen iterations."""
    found = validate(folders, READERS, truth)
    for variant in ("calibrated", "link_calibrated"):
        figures = found.suite(variant)
        assert figures.iteration_p50_mape_pct < 0.5
        assert figures.forward_mape_pct < 0.01
        assert figures.backward_mape_pct < 0.01
        assert figures.utilization_spearman > 0.999
    assert found.suite("replay").throughput_mape_pct < 0.1
    assert found.suite("catalog").throughput_mape_pct > 5


def test_one_bad_run_is_named_and_left_out(folders, truth, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(folders[0], bad)
    for trace in (bad / "megatron_trace").rglob("*.*"):
        trace.write_text("[{")
    found = validate([bad, *folders[:2]], READERS, truth)
    assert [run.name for run in found.runs] == [run.name for run in validate(folders[:2], READERS, truth).runs]
    assert [name for name, _ in found.left_out] == ["bad"]
    with pytest.raises(UsageError, match="none of the runs can be scored"):
        validate([bad], READERS, truth)


def test_the_report_has_n_variants_and_runs(folders, truth):
    found = validate(folders[:3], READERS, truth)
    report = json.loads(json.dumps(found.to_dict()))
    assert list(report) == ["n", "variants", "runs", "left_out"]
    assert report["n"] == len(report["runs"]) == 3
    assert list(report["variants"]) == ["catalog", "calibrated", "link_calibrated", "replay"] == list(DESCRIPTIONS)
    for figures in report["variants"].values():
        assert list(figures) == KEYS
    run = report["runs"][0]
    assert run["run"] == "deep"
    assert run["groups"] == {
        "devices": "a10g + l4", "depth": "4 stages", "model": "10 layers, hidden 1024, sequence 1024"
    }  # fmt: skip
    errors = [abs(each["variants"]["catalog"]["throughput_error_pct"]) for each in report["runs"]]
    assert report["variants"]["catalog"]["throughput_mape_pct"] == pytest.approx(np.mean(errors))
    assert report["variants"]["catalog"]["throughput_max_pct"] == pytest.approx(max(errors))


def test_several_processes_find_the_same(folders, truth):
    assert validate(folders[:2], READERS, truth, jobs=2).to_dict() == validate(folders[:2], READERS, truth).to_dict()


def test_a_benchmark_slower_than_usual_slows_messages_down_and_nothing_else(folders, truth):
    """By as much as a message of the run's size took longer in it."""
    from hops.calibrate.predict import predict

    inputs = READERS.inputs(folders[0])
    slow = tuple(replace(each, seconds=tuple(second + 1e-3 for second in each.seconds)) for each in inputs.benchmarks)
    usual = predict(inputs, "link_calibrated", truth)
    slower = predict(RunInputs(name="x", spec=inputs.spec, benchmarks=slow), "link_calibrated", truth)
    assert slower.mean_iteration_s > usual.mean_iteration_s + 5e-3
    assert slower.forward_s == usual.forward_s
    assert usual.mean_iteration_s == pytest.approx(predict(inputs, "calibrated", truth).mean_iteration_s, rel=0.002)


def test_cross_validation_predicts_each_run_by_a_profile_of_others(folders):
    found = cross_validate(folders, READERS, number=3)
    assert not any(run.seen for run in found.runs)
    assert found.suite("calibrated").iteration_p50_mape_pct < 3
    assert "3-fold cross-validation over 9 scenarios" in found.how


def test_runs_that_a_profile_was_fitted_on_are_told_from_others(folders, held_out, fitted_file, truth):
    """A figure in sample is no prediction, and the report says so."""
    from hops.report.validation import render_validation

    found = validate([folders[0], held_out], READERS, fitted_file)
    assert [run.seen for run in found.runs] == [True, False]
    console = Console(width=200, record=True)
    console.print(render_validation(found))
    assert "1 of 2 runs are of scenarios that the profile was fitted on" in console.export_text()
    assert not any(run.seen for run in validate([held_out], READERS, truth).runs)


def test_repeats_of_a_scenario_are_in_one_fold(folders):
    inputs = [READERS.inputs(folder) for folder in folders]
    repeated = [*inputs, *(replace(each, name="again") for each in inputs)]
    for seed in range(5):
        fold = folds(repeated, 4, seed)
        assert fold[: len(inputs)] == fold[len(inputs) :]
        assert set(fold) == {0, 1, 2, 3}
    assert len({scenario(each) for each in inputs}) == len(inputs)


def test_one_fold_is_refused(folders):
    with pytest.raises(UsageError, match=r"--folds: got 1, expected at least 2"):
        cross_validate(folders, READERS, number=1)


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"{tmp_path}: no run folder in it, expected folders with run.yaml"):
        run_folders(tmp_path)


def test_the_commands_calibrate_and_validate(folders, tmp_path):
    from hops.cli.main import app

    profile, report = tmp_path / "profile.yaml", tmp_path / "report"
    runner = CliRunner()
    done = runner.invoke(app, ["calibrate", *map(str, folders[:4]), "-o", str(profile)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "4 runs of 4 scenarios; intervals of 90 %" in done.output
    assert f"wrote {profile}" in done.output.replace("\n", "")
    command = ["validate", str(folders[0].parent), "--profile", str(profile), "--jobs", "1"]
    done = runner.invoke(
        app, [*command, "--json", str(tmp_path / "v.json"), "--report", str(report)], catch_exceptions=False
    )
    assert done.exit_code == 0
    for name in DESCRIPTIONS:
        assert f"  {name}: " in done.output
    assert json.loads((tmp_path / "v.json").read_text())["n"] == 9
    assert {file.name for file in report.iterdir()} == {
        "validation.md",
        "validation.html",
        "validation.png",
        "report.html",
    }
    text = (report / "validation.md").read_text()
    for heading in ("## Variants", "## By devices", "## By depth", "## By model", "## Runs"):
        assert heading in text


def test_recorded_runs_are_predicted_by_the_shipped_profile():
    """In sample, so no figure to quote: it would show a profile that no longer fits the model."""
    found = validate(recorded(1, 14, 25, 33), READERS, shipped_profile("megatron-aws"))
    assert all(run.seen for run in found.runs)  # if not, the launch's spec has changed: hops calibrate
    figures = found.suite("calibrated")
    assert figures.throughput_mape_pct < 5
    assert figures.iteration_p50_mape_pct < 3
    assert figures.backward_mape_pct < 5
    assert found.suite("replay").throughput_max_pct < 3


def test_run_folders_are_found_through_links_and_once(tmp_path):
    runs, chosen = tmp_path / "runs", tmp_path / "chosen"
    for name in ("b", "a"):
        (runs / name).mkdir(parents=True)
        (runs / name / "run.yaml").write_text("name: made\n")
    chosen.mkdir()
    (chosen / "b").symlink_to(runs / "b")
    (chosen / "round").symlink_to(chosen)
    assert run_folders(chosen) == [chosen / "b"]
    assert run_folders(runs) == [runs / "a", runs / "b"]
