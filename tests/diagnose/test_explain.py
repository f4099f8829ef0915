"""Explaining a run: both cuts sum to the iteration, advice is what the changed spec really does, fit is what runs."""

import json

import pytest

from hops.build.run import simulate, summarize
from hops.diagnose.advice import advise, rate
from hops.diagnose.fit import fit
from hops.diagnose.waterfall import RECOMPUTE, USEFUL, explain, shares_of
from hops.errors import DoesNotFitError, UsageError
from hops.metrics.iterations import Iterations
from hops.program.action import Op
from hops.spec.load import load, loads

SPEC = """
simulation: {iterations: 3, warmup_iterations: 1}
pipeline:
  model: {layers: 12, hidden: 1024, heads: 16, vocab: 50304}
  sequence_length: 1024
  microbatches: 8
  microbatch_size: 2
  schedule: SCHEDULE
  recompute: RECOMPUTE
hardware:
  interconnect: {bandwidth: 10 Gbit/s, latency: 20 us}
  nodes: [{devices: [l4, l4]}, {name: fast, devices: [h100-sxm]}, {devices: [l4]}]
"""


def spec_of(schedule="1f1b", recompute="none"):
    return loads(SPEC.replace("SCHEDULE", schedule).replace("RECOMPUTE", recompute))


def explained(spec):
    run = simulate(spec)
    return run, explain(Iterations.of(run.trace, run.facts), shares_of(run.setup.costs))


@pytest.mark.parametrize("schedule", ["1f1b", "zero_bubble", "interleaved_1f1b", "gpipe"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_bars_and_steps_sum_to_the_iteration(schedule, recompute):
    run, found = explained(spec_of(schedule, recompute))
    assert sum(bar.ms for bar in found.bars) == pytest.approx(found.iteration_ms, rel=1e-9)
    assert sum(step.ms for step in found.path) == pytest.approx(found.iteration_ms, rel=1e-9)
    assert found.iteration_ms == pytest.approx(summarize(run).iteration_time.mean_ms, rel=1e-9)
    assert all(bar.ms > 0 for bar in found.bars)


@pytest.mark.parametrize("schedule", ["1f1b", "zb_h1"])
def test_recomputation_is_the_forward_that_is_done_again(schedule):
    """Full recomputation is what the run takes more for B, and useful work is what it was without."""
    _, plain = explained(spec_of(schedule))
    _, again = explained(spec_of(schedule, "full"))
    before, after = dict(plain.bars), dict(again.bars)
    assert RECOMPUTE not in before
    assert after[RECOMPUTE] > 0.1 * before[USEFUL]
    assert after[USEFUL] == pytest.approx(before[USEFUL], rel=0.02)


def test_weight_backward_recomputes_nothing():
    shares = shares_of(simulate(spec_of("zb_h1", "full")).setup.costs)
    assert not any(op is Op.W for _, op in shares)
    assert any(op is Op.I for _, op in shares)


def test_advice_is_what_the_command_gives(tmp_path):
    """Each change, given as its command says, has the throughput, iteration and memory that were promised."""
    (tmp_path / "spec.yaml").write_text(SPEC.replace("SCHEDULE", "1f1b").replace("RECOMPUTE", "full"))
    run = simulate(load(tmp_path / "spec.yaml"))
    found = advise(run)
    assert found.helps
    assert [each.gain for each in found.helps] == sorted((each.gain for each in found.helps), reverse=True)
    whats = {each.change.what for each in (*found.helps, *found.no_help)} | {change.what for change, _ in found.refused}
    assert {"recompute none", "schedule zero_bubble", "16 microbatches of 1", "layers balanced by the devices' speed",
            "twice the bandwidth between hosts, 20 Gbit/s"} <= whats  # fmt: skip
    for each in (*found.helps, *found.no_help):
        texts = [part.strip("' ") for part in each.change.command.split("--set") if part.strip()]
        after = summarize(simulate(load(tmp_path / "spec.yaml", texts)))
        assert after.iteration_time.mean_ms == each.iteration_ms
        assert each.gain == rate(after) / rate(summarize(run)) - 1


def test_a_faster_device_is_proposed_for_the_busiest_rank():
    spec = spec_of().with_({"pipeline.partition": [1, 1, 1, 9]})
    found = advise(simulate(spec))
    best = next(each for each in found.helps if "instead of" in each.change.what)
    assert best.change.settings == {"hardware.nodes[2].devices[0].type": "h100-sxm"}
    assert best.gain > 1


def test_fit_is_what_the_run_says(tmp_path):
    spec = spec_of("gpipe").with_({"pipeline.microbatches": 64, "pipeline.microbatch_size": 8})
    found = fit(spec)
    assert not found.fits
    with pytest.raises(DoesNotFitError) as refused:
        simulate(spec)
    for rank in found.ranks:
        said = f"rank {rank.rank} ({rank.device}) needs {rank.needed_bytes / 2**30:.1f} GiB"
        assert (said in str(refused.value)) is not rank.fits
    assert found.remedies
    for each in found.remedies:
        assert rate(summarize(simulate(spec.with_(dict(each.change.settings))))) == each.samples_per_s
    speeds = [each.samples_per_s for each in found.remedies]
    assert speeds == sorted(speeds, reverse=True)
    assert spec.pipeline.microbatches == found.ranks[0].in_flight  # gpipe holds all of them


def test_fit_looks_at_every_iteration_where_work_is_drawn():
    """The first iterations fit; a later one has a microbatch that does not, which is what the run refuses."""
    work = {"distribution": "lognormal", "mean": 1, "std": 0.3}
    spec = spec_of("gpipe").with_({"pipeline.microbatch_size": 4, "pipeline.microbatch_work": work,
                                   "simulation.iterations": 6, "simulation.seed": 1})  # fmt: skip
    found = fit(spec)
    run = summarize(simulate(spec.with_({"simulation.warmup_iterations": 0})))
    assert [rank.needed_bytes for rank in found.ranks] == [rank.memory.peak_bytes for rank in run.ranks]
    first = fit(spec.with_({"simulation.iterations": 1, "simulation.warmup_iterations": 0}))
    assert any(a.needed_bytes < b.needed_bytes for a, b in zip(first.ranks, found.ranks, strict=True))


def test_other_axes_keep_the_samples_of_an_iteration():
    spec = spec_of().with_({"parallel": {"tensor": 2, "data": 2}, "hardware.nodes": [
        {"count": 2, "devices": [{"type": "h100-sxm", "count": 8}]}]})  # fmt: skip
    found = advise(simulate(spec))
    tried = {each.change.what: each.change.settings for each in (*found.helps, *found.no_help)}
    assert {"tensor 1 and data 4", "tensor 4 and data 1"} <= set(tried)
    for what in ("tensor 1 and data 4", "tensor 4 and data 1"):
        changed = spec.with_(dict(tried[what]))
        assert changed.pipeline.microbatches * changed.mesh().data == spec.pipeline.microbatches * spec.mesh().data


def test_fit_of_what_fits_has_the_peaks_of_the_run():
    spec = spec_of()
    found = fit(spec)
    assert found.fits
    assert not found.remedies
    run = summarize(simulate(spec))
    assert [rank.needed_bytes for rank in found.ranks] == [rank.memory.peak_bytes for rank in run.ranks]


def test_fit_needs_to_know_memory():
    spec = loads("pipeline: {stage_times: {forward: 1 ms, backward: 2 ms}, microbatches: 4}\n"
                 "hardware: {nodes: [{devices: [l4, l4]}]}\n")  # fmt: skip
    with pytest.raises(UsageError, match=r"hops fit needs to know what stages hold: add pipeline\.model"):
        fit(spec)


def test_json_of_both_commands(command, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC.replace("SCHEDULE", "1f1b").replace("RECOMPUTE", "none"))
    code, out, _ = command("explain", "spec.yaml", "--json", "--no-advice")
    found = json.loads(out)
    assert code == 0
    assert sum(bar["ms"] for bar in found["bars"]) == pytest.approx(found["iteration_ms"])
    assert found["advice"] is None
    code, out, _ = command("fit", "spec.yaml", "--json")
    assert code == 0
    assert json.loads(out)["fits"]
    code, out, _ = command("fit", "spec.yaml", "--set", "pipeline.microbatch_size=64")
    assert code == 1
    assert "it does not fit" in out


def test_a_command_stays_in_one_piece_on_a_narrow_terminal(command, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "a-spec-with-a-long-name.yaml").write_text(
        SPEC.replace("SCHEDULE", "gpipe").replace("RECOMPUTE", "full")
    )
    _, out, _ = command("explain", "a-spec-with-a-long-name.yaml")
    lines = [line for line in out.splitlines() if line.startswith("  hops run")]
    assert lines
    assert all("a-spec-with-a-long-name.yaml --set " in line for line in lines)
