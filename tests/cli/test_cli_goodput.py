"""`hops goodput`, `hops whatif` and `hops stragglers` as a user meets them."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SPEC = """
simulation: {iterations: 12, seed: 5}
pipeline:
  stage_times: {forward: 100 ms, backward: 200 ms, message: 1 MiB, weights: 4 GiB, optimizer_state: 8 GiB}
  microbatches: 4
  jitter: {distribution: lognormal, mean: 1, std: 0.02}
hardware:
  nodes: [{count: 3, devices: [l4]}]
  interconnect: ethernet-25
optimizer: {data_parallel: 2}
failure:
  enabled: true
  models:
    - {kind: stop, on: devices, between: {distribution: exponential, mean: 30 h}, repair: 20 min}
"""


@pytest.fixture
def hops(command, tmp_path):
    """The command line beside a spec of hardware that breaks."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    return command


def test_goodput_prints_what_was_delivered_and_lost(hops):
    code, out, err = hops("goodput", "spec.yaml", "--days", "3", "--seeds", "3")
    assert (code, err) == (0, "")
    assert "goodput: 6 devices in 2 copies, checkpoint_restart, 3 days, 3 lives" in out
    for word in ("effective time", "interruptions", "checkpoints", "work done again", "waiting for devices", "cost"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_goodput_json_has_the_figures_and_only_json(hops):
    code, out, _ = hops("goodput", "spec.yaml", "--days", "3", "--seeds", "2", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"goodput", "effective_training_time_ratio", "lost_s_by_cause", "faults"} <= set(found)
    assert found["productive_s"] + sum(found["lost_s_by_cause"].values()) == pytest.approx(3 * 86_400)
    assert hops("goodput", "spec.yaml", "--days", "3", "--seeds", "2", "--json")[1] == out


def test_goodput_compares_policies(hops):
    code, out, _ = hops("goodput", "spec.yaml", "--days", "2", "--seeds", "2", "--policies", "stall,reroute,spare")
    assert code == 0
    assert all(name in out for name in ("stall", "reroute", "spare", "effective"))
    _, plain, _ = hops("goodput", "spec.yaml", "--days", "2", "--seeds", "2", "--policies", "stall,spare", "--json")
    assert list(json.loads(plain)) == ["stall", "spare"]


def test_goodput_draws_its_pictures(hops, tmp_path):
    common = ("goodput", "spec.yaml", "--days", "0.5", "--seeds", "2")
    assert "wrote over-time.png" in hops(*common, "-p", "over-time.png")[1]
    assert "wrote sweep.svg" in hops(*common, "--sweep-checkpoint-interval", "-p", "sweep.svg")[1]
    assert "wrote both.svg" in hops(*common, "--policies", "stall,spare", "-p", "both.svg")[1]
    both = (tmp_path / "both.svg").read_text()
    assert all(f">{name}</text>" in both for name in ("stall", "spare"))
    assert "Lost by cause, and the difference to stall" in both
    assert (tmp_path / "over-time.png").read_bytes().startswith(b"\x89PNG")
    assert "best of the simulated" in (tmp_path / "sweep.svg").read_text()
    first = (tmp_path / "sweep.svg").read_bytes()
    hops(*common, "--sweep-checkpoint-interval", "-p", "sweep.svg")
    assert (tmp_path / "sweep.svg").read_bytes() == first


def test_the_sweep_says_the_best_interval_beside_theorys(hops):
    common = ("goodput", "spec.yaml", "--days", "0.5", "--seeds", "2", "--sweep-checkpoint-interval")
    code, out, _ = hops(*common)
    assert code == 0
    assert " < " in out
    assert all(word in out for word in ("best:", "(Young)", "(Daly)"))
    found = json.loads(hops(*common, "--json")[1])
    assert len(found["points"]) == 15
    assert found["points"][0]["interval_s"] < found["best_s"] < found["points"][-1]["interval_s"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "0"), "error: --seeds: got 0, expected at least 1"),
        (("--days", "-1"), "error: --days: got -1, expected more than 0"),
        (("--policies", "spare,spare"), "--policies: got 'spare,spare', expected different names"),
        (("--policies", "spares"), "unknown recovery policy 'spares': did you mean 'spare'?"),
        (("--days", "0.01"), "got 30 min, longer than the run of 14.4 min"),
        (("--sweep-checkpoint-interval", "--policies", "spare"), "expected one of them; remove one"),
        (("--set", "failure.recovery.detection=-3 s"), "failure.recovery.detection: got '-3 s', expected a time"),
        (("-p", "picture.gif"), "got suffix '.gif', expected .png, .svg or .pdf"),
    ],
)
def test_goodput_refuses_what_makes_no_sense(hops, arguments, message):
    code, out, err = hops("goodput", "spec.yaml", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_whatif_compares_schedules_with_and_without_a_change(hops):
    arguments = ("whatif", "spec.yaml", "--slow", "node1/0=1.2", "--down", "node2.nic.in=500 ms")
    code, out, _ = hops(*arguments, "--schedules", "1f1b,gpipe")
    assert code == 0
    assert "node1/0 slower by 1.2; node2.nic.in down for 500 ms" in out
    found = json.loads(hops(*arguments, "--schedules", "1f1b,gpipe", "--json")[1])
    assert found["schedules"]["gpipe"]["longer"] > 0
    code, _, err = hops("whatif", "spec.yaml", "--slow", "nodee1/0=1.2")
    assert code == 2
    assert "did you mean node1/0?" in err


def test_stragglers_finds_what_was_put_in(hops):
    fault = "failure.models=[{kind: slow, on: node1, at: [9 s], repair: 9 d, factor: 1.4}]"
    assert hops("run", "spec.yaml", "-q", "-o", "out", "--set", fault)[0] == 0
    code, out, err = hops("stragglers", "out/events.csv")
    assert (code, err) == (0, "")
    assert "device l4 node1/0 (rank 1): 1.39 times slower since 9" in out
    assert "of each iteration" in out
    found = json.loads(hops("stragglers", "out/events.csv", "--spec", "spec.yaml", "--json")[1])
    assert found["stragglers"][0]["factor"] == pytest.approx(1.4, rel=0.02)


def test_stragglers_says_so_if_there_are_none(hops):
    code, out, _ = hops("stragglers", "spec.yaml")
    assert code == 0
    assert "0 stragglers" in out


def test_replanning_asks_the_planner_which_finds_what_balancing_does_not():
    """Without one of its H100s the demo fits in another order of devices only."""
    from hops.build.prepared import checked
    from hops.build.setup import build
    from hops.errors import DoesNotFitError
    from hops.fleet.variants import rebalanced
    from hops.planner.replanned import replanned
    from hops.spec.load import load

    spec = load(EXAMPLES / "demo.yaml")
    left = tuple(device for device in spec.hardware.ranks() if device != "fast/1")
    with pytest.raises(DoesNotFitError):
        checked(build(rebalanced(spec, left)))
    found = replanned(spec, left)
    assert sorted(found.hardware.ranks()) == sorted(left)
    assert sum(found.pipeline.partition) == 32
    checked(build(found))


def test_the_month_on_16384_devices_runs(hops):
    """A day of it, with the JSON that the month has."""
    code, out, _ = hops(
        "goodput", str(EXAMPLES / "month-16k.yaml"), "--days", "1", "--seeds", "1", "--json", "--samples", "4"
    )
    found = json.loads(out)
    assert code == 0
    assert found["devices"] == 16_384
    assert 0.5 < found["goodput"] < found["effective_training_time_ratio"] < 1
    assert found["faults"]["by_kind"]["stop"] == pytest.approx(16_384 / 1825, rel=0.8)
