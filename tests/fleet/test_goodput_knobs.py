"""Every key of failure.recovery is tested by its effect: changing it changes what a study says."""

import json

import pytest

from hops.build.setup import build
from hops.errors import HopsError
from hops.fleet.result import summarize_study
from hops.fleet.study import prepare
from hops.spec.load import loads

SPEC = """
simulation: {seed: 3}
pipeline:
  stage_times: {forward: 100 ms, backward: 200 ms, message: 1 MiB, weights: 4 GiB, optimizer_state: 8 GiB}
  microbatches: 4
hardware:
  nodes: [{count: 3, devices: [l4]}]
  interconnect: ethernet-25
optimizer: {data_parallel: 3}
failure:
  enabled: true
  models:
    - kind: stop
      on: devices
      between: {distribution: exponential, mean: 20 h}
      repair: 20 min
"""
POLICY = "failure.recovery.policy"
CHECKPOINT = "failure.recovery.checkpoint"
KNOBS = {
    "policy": ([], [f"{POLICY}=stall"]),
    "detection": ([], ["failure.recovery.detection=1 s"]),
    "restart": ([], ["failure.recovery.restart=1 s"]),
    "reconfigure": ([f"{POLICY}=reroute"], ["failure.recovery.reconfigure=1 s"]),
    "state": ([], ["failure.recovery.state=1 TiB"]),
    "storage_bandwidth": ([], ["failure.recovery.storage_bandwidth=1 GB/s"]),
    "spares": ([f"{POLICY}=spare"], ["failure.recovery.spares=2"]),
    "state_from": ([f"{POLICY}=spare"], ["failure.recovery.state_from=checkpoint"]),
    "split_backward": ([f"{POLICY}=reroute"], ["failure.recovery.split_backward=false"]),
    "checkpoint.interval": ([], [f"{CHECKPOINT}.interval=10 min"]),
    "checkpoint.asynchronous": ([], [f"{CHECKPOINT}.asynchronous=true"]),
    "checkpoint.pause": ([], [f"{CHECKPOINT}.pause=20 s"]),
    "checkpoint.write": ([f"{CHECKPOINT}.asynchronous=true"], [f"{CHECKPOINT}.write=20 min"]),
}


def prepared(overrides, **options):
    spec = loads(SPEC, overrides=overrides)
    return prepare(build(spec), spec.failure.recovery, **options)


def outcome(overrides):
    """All figures of a study."""
    study = prepared(overrides, days=2, seeds=2)
    return summarize_study(study, study.trajectories()).to_dict()


@pytest.mark.parametrize("key", KNOBS)
def test_changing_the_key_changes_the_result(key):
    before, after = KNOBS[key]
    assert outcome(before) != outcome([*before, *after])


def test_every_key_is_tested():
    from hops.spec.failure import Checkpoints, RecoverySection

    keys = {key for key in RecoverySection.model_fields if key != "checkpoint"}
    assert keys | {f"checkpoint.{key}" for key in Checkpoints.model_fields} == set(KNOBS)


def test_the_rules_for_the_interval_give_theorys_optimum():
    young, daly = (outcome([f"{CHECKPOINT}.interval={rule}"])["checkpoint"] for rule in ("young", "daly"))
    assert young["interval_s"] == pytest.approx(young["young_s"])
    assert daly["interval_s"] == pytest.approx(daly["daly_s"])
    assert outcome([f"{CHECKPOINT}.interval=null"])["checkpoint"]["interval_s"] is None


def test_the_first_life_has_the_specs_seed_and_another_number_of_copies_moves_nothing():
    """The first copy's faults are those that `hops run` and `hops faults draw` show."""
    from hops.build.faults import build_inventory, build_plan
    from hops.fleet.fleet import draw_fleet

    setup = build(loads(SPEC))
    horizon = 5 * 86_400 * 10**9
    plans = draw_fleet(setup, 3, horizon)
    first = [each.fault for each in plans if each.replica == 0]
    spec = setup.spec.model_copy(update={"failure": setup.spec.failure.model_copy(update={"horizon": 5 * 86_400.0})})
    assert first == list(build_plan(spec, build_inventory(spec, setup.network)))
    two = build(loads(SPEC, overrides=["optimizer.data_parallel=2"]))
    assert list(draw_fleet(two, 3, horizon)) == [each for each in plans if each.replica < 2]


def test_an_availability_trace_is_replayed_under_every_policy(tmp_path):
    """node1 is away from 1 h to 2 h, node2 from the start to half an hour."""
    (tmp_path / "spot.csv").write_text("time,event,node\n1800,add,node2\n3600,remove,node1\n7200,add,node1\n")
    base = SPEC[: SPEC.index("  models:")] + "  trace: spot.csv\n"
    found = {}
    for policy in ("checkpoint_restart", "reroute", "spare", "stall", "replan"):
        overrides = [f"{POLICY}={policy}", "failure.recovery.spares=1"]
        spec = loads(base, overrides=overrides, folder=tmp_path)
        study = prepare(build(spec), spec.failure.recovery, days=0.25, seeds=1)
        found[policy] = summarize_study(study, study.trajectories())
        assert found[policy].downtime.total_s == 1800 + 3600
        assert found[policy].faults.by_kind == {"stop": 2.0}
    assert found["checkpoint_restart"].lost_s_by_cause["waiting"] == 1800 + 3600 - 2 * 60
    assert found["spare"].lost_s_by_cause["waiting"] == 0
    assert found["reroute"].goodput > found["checkpoint_restart"].goodput


def test_costs_and_tokens_follow_from_prices_and_iterations():
    model = """
pipeline: {model: gpt2-medium, microbatches: 4, partition: balanced}
hardware: {nodes: [{devices: [{type: l4, count: 2, price_per_hour: 0.3}]}]}
optimizer: {data_parallel: 2}
"""
    spec = loads(model)
    study = prepare(build(spec), spec.failure.recovery, days=1, seeds=1)
    found = summarize_study(study, study.trajectories())
    assert found.cost.per_hour == pytest.approx(4 * 0.3)
    assert found.cost.total == pytest.approx(24 * 4 * 0.3)
    tokens = found.iterations * 4 * 2 * study.setup.facts.tokens_per_microbatch
    assert found.tokens_per_s == pytest.approx(tokens / 86_400)
    assert found.cost.per_million_tokens == pytest.approx(found.cost.total / tokens * 1e6)
    assert found.cost.without_faults_per_million_tokens == pytest.approx(
        found.cost.per_million_tokens * found.goodput, rel=1e-3
    )


def test_the_json_conserves_time_and_has_no_nan():
    found = outcome([])
    assert found["productive_s"] + sum(found["lost_s_by_cause"].values()) == pytest.approx(found["wall_s"])
    assert found["goodput"] == pytest.approx(found["productive_s"] / found["wall_s"])
    assert "NaN" not in json.dumps(found)
    assert found["faults"]["total"] > 0


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        (
            [f"{CHECKPOINT}.interval=3 d"],
            {},
            "got 3 d, longer than the run of 2 d: no checkpoint would ever be taken; shorten it, raise --days, or",
        ),
        ([], {"seeds": 0}, "--seeds: got 0, expected at least 1"),
        ([], {"days": 0}, "--days: got 0, expected more than 0 and at most 3650"),
        ([], {"days": -3}, "--days: got -3, expected more than 0 and at most 3650"),
        ([], {"samples": 1}, "--samples: got 1, expected at least 2, so that a spread can be seen"),
        ([f"{POLICY}=checkpoint_restarts"], {}, "unknown recovery policy 'checkpoint_restarts': did you mean"),
        ([f"{CHECKPOINT}.interval=young", f"{CHECKPOINT}.pause=0 s"], {}, "but a checkpoint costs nothing"),
        (["failure.recovery.detection=-1 s"], {}, "expected a time of at least 0"),
        ([f"{CHECKPOINT}.interval=0 s"], {}, "expected more than 0"),
        (["failure.recovery.storage_bandwidth=0 GB/s"], {}, "expected more than 0"),
        (["failure.recovery.spares=-1"], {}, "expected at least 0"),
        (["failure.recovery.state_from=disk"], {}, "expected one of peer, checkpoint"),
        (["optimizer.distributed=true", f"{POLICY}=spare"], {}, "failure.recovery.state_from: got peer, but"),
    ],
)
def test_bad_input_gets_a_pointed_message(overrides, options, message):
    with pytest.raises(HopsError) as caught:
        prepared(overrides, **{"days": 2, "seeds": 2, **options})
    assert message in str(caught.value)


def test_a_sweep_without_stops_or_costs_is_refused():
    from hops.fleet.checkpoint_sweep import sweep_intervals

    sound = prepared(["failure.enabled=false"], days=1, seeds=1)
    with pytest.raises(HopsError, match="nothing stops in any of the lives"):
        sweep_intervals(sound)
    free = prepared([f"{CHECKPOINT}.pause=0 s"], days=1, seeds=1)
    with pytest.raises(HopsError, match="a checkpoint costs nothing"):
        sweep_intervals(free)
