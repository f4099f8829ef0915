"""From a spec's failure section to a run: what breaks is what the section says, and nothing else moves."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from failure_knobs import BREAKS

from hops.build.faults import build_inventory, draw_faults
from hops.build.run import simulate
from hops.build.setup import build
from hops.errors import JobFailedError, SpecError, StalledError, UsageError
from hops.faults.plan import FOREVER, save_plan
from hops.spec.load import loads
from hops.trace.trace import COLUMNS, Stream

PLAIN = BREAKS[: BREAKS.index("failure:")]
MS = 1_000_000


def run(text, *overrides, **more):
    return simulate(loads(text, overrides=overrides, **more))


def modelled(*models):
    return f"failure.models=[{', '.join(models)}]"


def test_faults_that_are_not_enabled_or_never_come_change_no_row():
    base = run(PLAIN)
    never = ["{kind: stop, on: devices, share: 0.0}", "{kind: stop, on: hosts, between: 9000 h, repair: 1 h}"]
    assert run(BREAKS, "failure.enabled=false").trace == base.trace
    for models in (modelled(), modelled(*never)):
        found = run(BREAKS, models)
        assert not found.plan
        assert found.trace == base.trace


def test_a_run_keeps_the_plan_that_broke_it_and_the_plan_replays_the_run(tmp_path):
    broken = run(BREAKS)
    assert broken.plan
    save_plan(broken.plan, tmp_path / "plan.json")
    replayed = run(BREAKS, modelled(), "failure.plan=plan.json", folder=tmp_path)
    assert replayed.plan == broken.plan
    assert replayed.trace == broken.trace


def test_the_plan_is_the_same_whatever_the_schedule():
    assert draw_faults(loads(BREAKS)) == draw_faults(loads(BREAKS, overrides=["pipeline.schedule=gpipe"]))
    assert draw_faults(loads(BREAKS)) == draw_faults(loads(BREAKS, overrides=["failure.enabled=false"]))
    assert draw_faults(loads(BREAKS)) != draw_faults(loads(BREAKS), seed=8)


def test_switching_faults_on_moves_no_noise():
    """An action that no fault touches takes as long as without faults."""
    noisy = ["pipeline.jitter={distribution: lognormal, mean: 1, std: 0.2}"]
    base, broken = run(PLAIN, *noisy).trace, run(BREAKS, *noisy).trace

    def lengths(trace):
        rows = trace.of(Stream.COMPUTE)
        keys = zip(
            rows.iteration.tolist(), rows.stage.tolist(), rows.op.tolist(), rows.microbatch.tolist(), strict=True
        )
        return dict(zip(keys, rows.duration_ns.tolist(), strict=True))

    assert lengths(base) == lengths(broken)
    assert len(broken.of(Stream.LOST)) > 0


def test_an_availability_trace_stops_hosts(tmp_path):
    (tmp_path / "spot.csv").write_text("time,event,node\n0.02,remove,a\n0.05,add,a\n")
    found = run(BREAKS, modelled(), "failure.trace=spot.csv", folder=tmp_path)
    assert [(f.target, f.start_ns // MS, f.end_ns // MS) for f in found.plan] == [("a/0", 20, 50), ("a/1", 20, 50)]
    assert set(found.trace.of(Stream.FAULT).rank.tolist()) == {0, 1}


def test_models_traces_and_plans_add_up(tmp_path):
    (tmp_path / "spot.csv").write_text("0.02,remove,a\n0.05,add,a\n")
    drawn = draw_faults(loads(BREAKS))
    save_plan(drawn.during(0, 60 * MS), tmp_path / "plan.json")
    spec = loads(BREAKS, overrides=["failure.trace=spot.csv", "failure.plan=plan.json"], folder=tmp_path)
    assert len(draw_faults(spec)) == len(drawn) + len(drawn.during(0, 60 * MS)) + 2


def test_a_preset_breaks_devices_hosts_and_nics_at_its_rates():
    """Over a century, on 41 hosts with 81 devices."""
    century = [modelled("{preset: llama3, repair: 1 h}"), "failure.horizon=36500 d", "failure.groups=[]"]
    plan = draw_faults(loads(BREAKS, overrides=[*century, "hardware.nodes[0].count=40"]))
    days = {"device": 81 * 36_500, "host": 41 * 36_500, "nic": 41 * 36_500}
    rate = {  # per member and day
        "device": 0.587 * 419 / (54 * 16_384),
        "host": 0.312 * 419 / (54 * 2_048),
        "nic": 0.101 * 419 / (54 * 16_384),
    }
    for family, member_days in days.items():
        drawn = {(fault.cause, fault.start_ns) for fault in plan if fault.cause.startswith(family)}
        expected = member_days * rate[family]
        assert len(drawn) == pytest.approx(expected, abs=3.5 * expected**0.5), family
    only = [modelled("{preset: llama3, repair: 1 h, only: a10g}"), *century[1:]]
    of_devices = [fault for fault in draw_faults(loads(BREAKS, overrides=only)) if fault.cause.startswith("device")]
    assert {fault.target for fault in of_devices} == {"b/0"}


def test_a_model_from_a_plug_in_is_found_by_name():
    spec = loads(BREAKS, overrides=[modelled("{kind: stop, on: a/0, model: {name: fixed, at: [0.03]}}")])
    assert [(f.target, f.start_ns, f.end_ns) for f in draw_faults(spec)] == [("a/0", 30 * MS, FOREVER)]
    with pytest.raises(StalledError, match=r"never repaired: stop of a/0 since 30\.000 ms \(device a/0\)"):
        simulate(spec)


def test_a_link_that_stays_down_longer_than_the_transport_waits_fails_the_job():
    down = modelled("{kind: link-down, on: nics, at: [20 ms], repair: 60 ms}")
    run(BREAKS, down)
    run(BREAKS, down, "failure.link_timeout=60 ms")
    with pytest.raises(JobFailedError, match="and the transport timed out"):
        run(BREAKS, down, "failure.link_timeout=5 ms")


def test_a_link_inside_a_host_can_break():
    (link,) = {name for name in links_of(loads(BREAKS)) if name.startswith("a/0.") and name.endswith(".out")}
    found = run(BREAKS, modelled(f"{{kind: link-down, on: {link}, at: [20 ms], repair: 5 ms}}"))
    assert {fault.target for fault in found.plan} == {link}
    assert len(found.trace.of(Stream.FAULT)) == 1
    with pytest.raises(UsageError, match=r"failure\.models\[0\]: unknown target 'a/0\.nvlink9\.out': did you mean"):
        run(BREAKS, modelled("{kind: link-down, on: a/0.nvlink9.out, at: [20 ms], repair: 5 ms}"))


def links_of(spec):
    setup = build(spec)
    return build_inventory(spec, setup.network).links


def test_the_nics_of_a_spec_are_those_of_its_cluster():
    """The names are made in two places; with one NIC, with several."""
    for overrides in ([], ["hardware.nodes[0].nics=2"]):
        spec = loads(BREAKS, overrides=overrides)
        setup = build(spec)
        known = {link for links in build_inventory(spec, setup.network).nics.values() for link in links}
        used = {link for device in spec.hardware.ranks() for link in setup.cluster.nic_links(device)}
        assert used == known


def test_reductions_wait_for_the_nic():
    """With two copies of the pipeline gradients cross the NIC of every rank."""
    end = simulate(loads(PLAIN, overrides=["optimizer.data_parallel=2"])).trace
    spec = loads(PLAIN, overrides=["optimizer.data_parallel=2"])
    setup = build(spec)
    assert setup.settings.faults.reduction_links == (
        ("a.nic.out", "a.nic.in"),
        ("a.nic.out", "a.nic.in"),
        ("b.nic.out", "b.nic.in"),
    )
    assert build(loads(PLAIN)).settings.faults.reduction_links == ()
    assert replace(setup.settings.faults, reduction_links=()).devices == ("a/0", "a/1", "b/0")
    assert end.num_iterations == 3


def test_faults_must_be_drawn_for_the_whole_run():
    with pytest.raises(UsageError, match=r"but faults are drawn until 50 ms; raise failure\.horizon"):
        run(BREAKS, "failure.horizon=50 ms")


def test_a_plan_for_another_cluster_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text(
        '{"format": "hops-faults/1", "faults": [{"kind": "stop", "target": "a/2", "start_ns": 0, "end_ns": 1}]}'
    )
    with pytest.raises(
        SpecError, match=r"failure\.plan: .*plan\.json: stop of 'a/2', which is not in this cluster; did"
    ):
        loads(BREAKS, overrides=["failure.plan=plan.json"], folder=tmp_path)
    with pytest.raises(SpecError, match=r"failure\.plan: .*none\.json: cannot be read"):
        loads(BREAKS, overrides=["failure.plan=none.json"], folder=tmp_path)


def test_a_wrong_availability_trace_is_told_in_the_specs_report(tmp_path):
    (tmp_path / "spot.csv").write_text("3,remove,a\n1,add,a\n")
    with pytest.raises(SpecError, match=r"failure\.trace: .*spot\.csv:2: got the time 1 s after 3 s"):
        loads(BREAKS, overrides=["failure.trace=spot.csv"], folder=tmp_path)


def test_every_action_is_done_once_whatever_breaks():
    for seed in range(5):
        found = run(BREAKS, f"simulation.seed={seed}")
        done = found.trace.of(Stream.COMPUTE)
        rows = np.stack([getattr(done, name) for name in COLUMNS if name in ("iteration", "stage", "op", "microbatch")])
        actions = rows[:, done.stage >= 0]
        assert len(np.unique(actions, axis=1).T) == actions.shape[1] == 3 * 3 * 6 * 2


def test_faults_of_links_do_not_move_with_the_placement():
    """Which links there are depends on who talks to whom."""
    links = modelled("{kind: link-down, on: links, between: {distribution: exponential, mean: 300 ms}, repair: 5 ms}")
    here = draw_faults(loads(BREAKS, overrides=[links]))
    there = draw_faults(loads(BREAKS, overrides=[links, "hardware.placement=[b/0, a/1, a/0]"]))
    shared = {fault.target for fault in here} & {fault.target for fault in there}
    assert shared
    assert {fault for fault in here if fault.target in shared} == {fault for fault in there if fault.target in shared}
