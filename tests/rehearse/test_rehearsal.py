"""Rehearsals in PyTorch's runtime: the order is the program's in every one, and clean ones take the simulated time."""

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from needs_torch import needs_torch, shared_setup
from rich.console import Console

import hops
from hops.cli.main import main
from hops.diagnose.stragglers import find_stragglers
from hops.errors import UsageError
from hops.importers.base import read_trace
from hops.importers.measured_spec import measured_spec
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.rehearse.rehearsal import RehearsalEffort, pipeline_ns, rehearse, rehearse_all
from hops.report.rehearsal import render_rehearsal
from hops.trace.order import program_from_trace

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "rehearse-hetero.yaml"
SPEC = """\
simulation: {iterations: 1}
pipeline:
  stage_times: {forward: 8 ms, input_backward: 8 ms, weight_backward: 8 ms}
  microbatches: 6
  p2p: overlapped
hardware:
  nodes: [{name: a, devices: [l4]}, {name: b, devices: [l4]}, {name: c, devices: [l4]}]
  interconnect: {bandwidth: 100 Gbit/s, latency: 3 ms}
optimizer: {enabled: false}
"""
pytestmark = shared_setup
TOO_BUSY = "the machine is too busy for a clean iteration: only the order was compared"


def times_agree(found, within):
    """Compare times where an iteration was clean; skip with a message where none was."""
    if found.late_actions:
        pytest.skip(TOO_BUSY)
    assert min(found.measured_ms) == pytest.approx(found.simulated_ms, rel=within)


SCHEDULES = ("1f1b", "zb_h1", "zero_bubble", "{name: interleaved_1f1b, chunks: 2}", "dualpipe_v")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """Every schedule, in the same three processes."""
    specs = [hops.loads(SPEC.replace("  p2p:", f"  schedule: {schedule}\n  p2p:")) for schedule in SCHEDULES]
    folders = [tmp_path_factory.mktemp("rehearsal") for _ in SCHEDULES]
    found = rehearse_all(specs, effort=RehearsalEffort(iterations=1, attempts=5), folders=folders)
    return dict(zip(SCHEDULES, zip(found, folders, strict=True), strict=True))


@needs_torch
@pytest.mark.full
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_pytorch_runs_the_program_in_its_order(rehearsed, schedule):
    found, folder = rehearsed[schedule]
    assert found.order_equal
    trace = read_trace(folder).trace
    assert trace.num_iterations == found.num_iterations
    for iteration in range(found.num_iterations):
        assert program_from_trace(trace, iteration=iteration).same_order(found.program)


@needs_torch
@pytest.mark.full
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_clean_iterations_take_the_simulated_time(rehearsed, schedule):
    times_agree(rehearsed[schedule][0], within=0.04)


def imported(tmp_path, *runs):
    found = measured_spec([Iterations.of(run.trace, RunFacts()) for run in runs], name="run", program_file="p.txt")
    (tmp_path / "p.txt").write_text(str(found.program))
    (tmp_path / "spec.yaml").write_text(found.text)
    return hops.load(tmp_path / "spec.yaml")


@needs_torch
@pytest.mark.full
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_there_and_back(rehearsed, schedule, tmp_path):
    """Simulated, exported, rehearsed, traced, imported, simulated again: within 2 % of what was measured."""
    found, _ = rehearsed[schedule]
    if found.late_actions:
        pytest.skip(TOO_BUSY)
    again = hops.simulate(imported(tmp_path, found))
    assert program_from_trace(again.trace).same_order(found.program)
    assert pipeline_ns(again)[0] / 1e6 == pytest.approx(min(found.measured_ms), rel=0.02)


@needs_torch
@pytest.mark.full
def test_two_rehearsed_schedules_predict_a_third(rehearsed, tmp_path):
    known = [rehearsed[schedule][0] for schedule in ("1f1b", "zb_h1")]
    third, _ = rehearsed["zero_bubble"]
    if any(each.late_actions for each in (*known, third)):
        pytest.skip(TOO_BUSY)
    predicted = hops.simulate(imported(tmp_path, *known).with_({"pipeline.schedule": "zero_bubble"}))
    assert pipeline_ns(predicted)[0] / 1e6 == pytest.approx(min(third.measured_ms), rel=0.03)


@needs_torch
@pytest.mark.full
def test_a_slow_rank_is_found_from_the_trace_alone():
    text = re.sub(r"stage_times: .*", "stage_times: {forward: [8 ms, 8 ms, 12 ms, 8 ms, 8 ms], backward: 16 ms}", SPEC)
    text = text.replace("backward: 16 ms", "backward: [16 ms, 16 ms, 24 ms, 16 ms, 16 ms]")
    spec = hops.loads(re.sub(r"nodes: .*", "nodes: [{count: 5, devices: [l4]}]", text))
    found = rehearse(spec, effort=RehearsalEffort(iterations=2, attempts=4))
    if found.late_actions:
        pytest.skip(TOO_BUSY)
    (slow,) = find_stragglers(found.trace).stragglers
    assert slow.ranks == (2,)
    assert slow.factor == pytest.approx(1.5, rel=0.05)


@needs_torch
def test_the_example_as_the_command_line_prints_it(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "difference.png"
    monkeypatch.setattr("sys.argv", ["hops", "rehearse", str(EXAMPLE), "--json", "-n", "1", "--picture", str(picture)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "simulated_ms", "measured_min_ms", "measured_p50_ms", "late_actions", "order_equal", "ranks",
    ]  # fmt: skip
    assert found["order_equal"] is True
    assert found["simulated_ms"] == pytest.approx(
        hops.summarize(hops.simulate(hops.load(EXAMPLE))).iteration_time.mean_ms
    )
    assert found["measured_min_ms"] > 0.99 * found["simulated_ms"]
    assert [each["rank"] for each in found["ranks"]] == [0, 1, 2, 3]
    assert found["ranks"][1]["device"].startswith("l4")
    assert picture.stat().st_size > 10_000


@needs_torch
@pytest.mark.full
def test_rendered_as_text(rehearsed):
    found, _ = rehearsed["zb_h1"]
    out = StringIO()
    Console(file=out, width=60).print(render_rehearsal("mine.yaml", found, runtime="PyTorch"))
    text = " ".join(out.getvalue().split())
    assert text.startswith("mine.yaml: 3 ranks in PyTorch simulated ")
    assert "from the first F to the last backward measured " in text
    assert "proves: the order" in text
    assert ("too busy" in text) is bool(found.late_actions)
    assert ("clean: no action came later" in text) is not bool(found.late_actions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline.p2p": "blocking_fused"}, "pipeline.p2p: got blocking_fused, but PyTorch's runtime never blocks"),
        ({"failure.enabled": True}, "failure.enabled: a rehearsal breaks nothing"),
        ({"pipeline.schedule": "hops_hetero_adaptive"}, "hops_hetero_adaptive decides during the run"),
    ],
)  # fmt: skip
def test_what_cannot_be_rehearsed_is_refused_before_a_process_starts(monkeypatch, changes, message):
    monkeypatch.setattr("hops.rehearse.rehearsal.check_torch", lambda: None)
    monkeypatch.setattr("hops.rehearse.rehearsal.run_ranks", None)
    with pytest.raises(UsageError) as error:
        rehearse(hops.loads(SPEC).with_(changes))
    assert message in str(error.value)


def test_ranks_that_share_processes_are_equally_many(monkeypatch):
    monkeypatch.setattr("hops.rehearse.rehearsal.check_torch", lambda: None)
    few = hops.loads(SPEC.replace(", {name: c, devices: [l4]}", ""))
    with pytest.raises(UsageError, match=r"as many ranks each, but got \[2, 3\]"):
        rehearse_all([hops.loads(SPEC), few])


def test_the_pipeline_is_what_is_compared():
    """Without an iteration end, it is the iteration."""
    run = hops.simulate(hops.loads(SPEC))
    assert pipeline_ns(run)[0] / 1e6 == pytest.approx(hops.summarize(run).iteration_time.mean_ms)
