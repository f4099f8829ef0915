"""A measured run becomes a spec that simulates as it was measured, and predicts what was not measured."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hops
from hops.errors import TraceError
from hops.importers.measured_spec import measured_spec
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.spec.load import loads
from hops.trace.files import write_events
from hops.trace.order import program_from_trace

SPEC = """\
simulation: {{iterations: 6}}
pipeline:
  stage_times:
    forward: [3 ms, 5 ms, 3.5 ms, 4 ms]
    input_backward: [2 ms, 5 ms, 3 ms, 4 ms]
    weight_backward: [3 ms, 4 ms, 3 ms, 3 ms]
    backward: [5.5 ms, 9.5 ms, 6.5 ms, 7.5 ms]
  microbatches: 8
  schedule: {schedule}
  host_per_action: {host}
hardware:
  nodes:
    [{{name: a, devices: [l4]}}, {{name: b, devices: [h100]}}, {{name: c, devices: [l4]}}, {{name: d, devices: [l4]}}]
  interconnect: {{bandwidth: 1 Tbit/s, latency: {hop}}}
  links: [{{between: [b, c], latency: 2 ms}}]
optimizer: {optimizer}
"""


def run_of(schedule="1f1b", *, hop="0 ms", host="0 ms", optimizer="{enabled: false}", jitter=None):
    text = SPEC.format(schedule=schedule, hop=hop, host=host, optimizer=optimizer)
    if jitter is not None:
        text = text.replace("  microbatches: 8", f"  microbatches: 8\n  jitter: {jitter}")
    return hops.simulate(loads(text))


def iterations(run):
    return Iterations.of(run.trace, RunFacts())


def imported(tmp_path, *runs):
    found = measured_spec([iterations(run) for run in runs], name="run", program_file="p.txt")
    (tmp_path / "p.txt").write_text(str(found.program))
    (tmp_path / "spec.yaml").write_text(found.text)
    return hops.load(tmp_path / "spec.yaml"), found


def mean_ms(run):
    return hops.summarize(run).iteration_time.mean_ms


@pytest.mark.parametrize("schedule", ["1f1b", "zb_h1", "zero_bubble", "gpipe"])
@pytest.mark.parametrize("more", [{}, {"hop": "1 ms"}, {"host": "0.4 ms", "hop": "0.5 ms"}])
def test_it_simulates_as_it_was_measured(tmp_path, schedule, more):
    run = run_of(schedule, **more)
    spec, found = imported(tmp_path, run)
    assert found.program.same_order(program_from_trace(run.trace))
    assert mean_ms(hops.simulate(spec)) == pytest.approx(mean_ms(run), rel=0.002)


def test_the_end_of_the_iteration_is_measured_too(tmp_path):
    run = run_of(optimizer="{update_time: 4 ms, host_gap: 7 ms}")
    spec, _ = imported(tmp_path, run)
    assert mean_ms(hops.simulate(spec)) == pytest.approx(mean_ms(run), rel=1e-4)
    assert mean_ms(run) > mean_ms(run_of()) + 10


def test_what_varies_becomes_a_distribution(tmp_path):
    run = run_of(jitter="{distribution: lognormal, mean: 1, std: 0.05}")
    spec, found = imported(tmp_path, run)
    assert found.text.count("distribution: empirical") == 8  # F and B of four stages
    assert mean_ms(hops.simulate(spec)) == pytest.approx(mean_ms(run), rel=0.02)
    measured = run.trace.duration_ns[(run.trace.stage == 1) & (run.trace.op == 0) & (run.trace.stream == 0)]
    form = spec.pipeline.stage_times.forward[1]
    assert np.mean(form.samples) * 1e9 == pytest.approx(measured.mean(), rel=1e-4)


def test_two_programs_predict_a_third(tmp_path):
    spec, _ = imported(tmp_path, run_of("zb_h1", hop="1 ms"), run_of("1f1b", hop="1 ms"))
    for schedule in ("1f1b", "zero_bubble", "gpipe"):
        predicted = hops.simulate(spec.with_({"pipeline.schedule": schedule}))
        assert mean_ms(predicted) == pytest.approx(mean_ms(run_of(schedule, hop="1 ms")), rel=0.03)


def test_runs_of_different_pipelines_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r"ranks 0 1 2 3 and 0 1 2 3 3 2 1 0, expected runs of the same pipeline"):
        imported(tmp_path, run_of(), in_a_v())


def in_a_v():
    text = SPEC.format(schedule="zb_v", hop="0 ms", host="0 ms", optimizer="{enabled: false}")
    return hops.simulate(loads(re.sub(r"\[(\d[\d.]* ms)(, [\d.]+ ms)+\]", r"\1", text)))


def test_devices_that_the_catalog_does_not_know_are_said(tmp_path):
    run = run_of()
    meta = replace(run.trace.meta, devices=("NVIDIA L4", "h100", "my own", "l4 b/0"))
    trace = replace(run.trace, meta=meta)
    found = measured_spec([Iterations.of(trace, RunFacts())], name="run", program_file="p.txt")
    assert found.notes == ("the catalog has no my own: a100 stands in, which changes no stated time",)
    assert found.text.count("- l4\n") == 2


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    from hops.cli.main import main

    write_events(run_of("zb_h1", hop="1 ms").trace, tmp_path / "events.csv")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["hops", "import", "trace", "events.csv", "-o", "mine.yaml"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    out = capsys.readouterr().out
    assert out.startswith("wrote mine.yaml and mine.program.txt; next: hops run mine.yaml\n")
    assert "+0.0 %" in out
    assert (tmp_path / "mine.program.txt").read_text().startswith("microbatches 8, rank of stage 0 1 2 3\n")
