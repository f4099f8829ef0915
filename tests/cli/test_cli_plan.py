"""`hops plan` as a user meets it: table, JSON, files that run, refusals, interruption."""

import json

import pytest
from typer.testing import CliRunner

from hops.build.run import simulate, summarize
from hops.cli import main
from hops.cli.main import app
from hops.errors import HopsError
from hops.spec.load import load

SPEC = """\
simulation: {iterations: 1}
pipeline:
  model: {layers: 6, hidden: 512, heads: 8, vocab: 8192}
  sequence_length: 512
  microbatches: 8
  schedule: 1f1b
hardware: {nodes: [{name: a, devices: [h100]}, {name: b, devices: [l4, l4]}], interconnect: ethernet-25}
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def hops(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def test_a_plan_is_a_table_of_ranked_plans(spec):
    result = hops("plan", spec, "--budget", "0.3s", "--top", "3")
    assert result.exit_code == 0, result.output
    assert "best plan by throughput" in result.output
    assert "proved best: nothing left could be better" in " ".join(result.output.split())
    assert "h100-sxm" in result.output
    assert max(len(line.rstrip()) for line in result.output.splitlines()) <= 80


def test_every_written_spec_runs_to_the_figure_in_the_table(spec, tmp_path):
    folder = tmp_path / "out"
    result = hops("plan", spec, "--budget", "0.3s", "--top", "3", "-o", folder, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert json.loads((folder / "plans.json").read_text(encoding="utf-8")) == report
    assert [plan["rank"] for plan in report["plans"]] == [1, 2, 3]
    for plan in report["plans"]:
        loaded = load(folder / f"plan-{plan['rank']}.yaml")
        assert summarize(simulate(loaded)).iteration_time.mean_ms == plan["iteration_ms"]
        assert list(loaded.hardware.placement) == plan["placement"]
    for picture in ("pareto.png", "timeline.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_a_run_of_a_written_plan_prints_that_figure(spec, tmp_path):
    hops("plan", spec, "--budget", "0.3s", "-o", tmp_path, "-q")
    best = json.loads((tmp_path / "plans.json").read_text(encoding="utf-8"))["plans"][0]
    run = hops("run", tmp_path / "plan-1.yaml", "--json", "--set", "output={}")
    assert json.loads(run.output)["iteration_time"]["mean_ms"] == best["iteration_ms"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--objective", "speed"), "--objective: got 'speed', expected one of throughput, iteration_time"),
        (("--budget", "10"), "--budget: got '10', expected a time, such as"),
        (("--set", "pipeline.recompute=[none, ful]"), "did you mean full?"),
        (("--set", "pipeline.microbatches=auto"), "or the samples of an iteration with --batch"),
        (("--batch", "12"), "no microbatches x microbatch_size makes 12"),
    ],
)
def test_what_is_wrong_is_pointed_at(spec, arguments, said):
    result = hops("plan", spec, *arguments)
    assert isinstance(result.exception, HopsError)
    assert result.exception.exit_code == 2
    assert said in str(result.exception)


def test_what_cannot_fit_ends_with_exit_code_1(spec):
    small = "hardware.nodes=[{devices: [{type: l4, memory: 60 MiB, count: 3}]}]"
    result = hops("plan", spec, "--set", small)
    assert isinstance(result.exception, HopsError)
    assert result.exception.exit_code == 1
    assert "no placement fits: weights, gradients and optimizer states alone need" in str(result.exception)


def test_interrupting_shows_the_best_so_far_and_exits_with_130(spec, monkeypatch):
    from hops.planner import planner as driver

    real, calls = driver.run, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(driver, "run", interrupted)
    result = hops("plan", spec, "--budget", "0.3s")
    assert result.exit_code == main.EXIT_INTERRUPTED
    assert "interrupted, best so far" in result.output
    assert "1 plan simulated" in " ".join(result.output.split())
