"""Rehearsals in PyTorch's runtime: the order is the program's in every one, and clean ones take the simulated time."""

import json
from pathlib import Path

import pytest
from needs_torch import needs_torch

import hops
from hops.cli.main import main
from hops.errors import UsageError
from hops.importers.base import read_trace
from hops.rehearse.rehearsal import pipeline_ns, rehearse
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
TOO_BUSY = "the machine is too busy for a clean iteration: only the order was compared"


def times_agree(found, within):
    """Compare times where an iteration was clean; skip with a message where none was."""
    if found.late_actions:
        pytest.skip(TOO_BUSY)
    assert min(found.measured_ms) == pytest.approx(found.simulated_ms, rel=within)


@needs_torch
@pytest.mark.parametrize("schedule", ["1f1b", "zb_h1", "{name: interleaved_1f1b, chunks: 2}", "dualpipe_v"])
def test_pytorch_runs_the_program_in_its_order_and_in_the_simulated_time(schedule, tmp_path):
    spec = hops.loads(SPEC.replace("  p2p:", f"  schedule: {schedule}\n  p2p:"))
    found = rehearse(spec, iterations=1, attempts=4, folder=tmp_path)
    assert found.order_equal
    assert not list(tmp_path.glob("*.json"))
    trace = read_trace(tmp_path).trace
    for iteration in range(found.num_iterations):
        assert program_from_trace(trace, iteration=iteration).same_order(found.program)
    times_agree(found, within=0.04)


@needs_torch
def test_the_example_as_the_command_line_prints_it(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "difference.png"
    arguments = ["hops", "rehearse", str(EXAMPLE), "--json", "-n", "1", "--port", "0", "--picture", str(picture)]
    monkeypatch.setattr("sys.argv", [each for each in arguments if each not in {"--port", "0"}])
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
def test_rendered_as_text(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["hops", "rehearse", str(EXAMPLE), "-n", "1"])
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main()
    text = capsys.readouterr().out
    assert text.startswith("rehearse-hetero.yaml: 4 ranks in PyTorch 2.")
    assert "simulated  457.1 ms from the first F to the last backward" in text
    assert "proves: the order" in text
    assert ("too busy" in text) is ("clean: no action came later" not in " ".join(text.split()))
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline.p2p": "blocking_fused"}, "pipeline.p2p: got blocking_fused, but PyTorch's runtime never blocks a rank"),
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


def test_the_pipeline_is_what_is_compared():
    """Without an iteration end, it is the iteration."""
    run = hops.simulate(hops.loads(SPEC))
    assert pipeline_ns(run)[0] / 1e6 == pytest.approx(hops.summarize(run).iteration_time.mean_ms)
