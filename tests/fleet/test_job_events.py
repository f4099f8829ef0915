"""What happens to the whole job: planned stops, hangs, and training that goes wrong, from the spec to the figures."""

from dataclasses import replace

import pytest
from goodput_fleets import FREE, TIMES, S, World, stop
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.build.faults import draw_faults
from hops.build.run import simulate
from hops.build.setup import build
from hops.errors import HopsError
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.fleet.fleet import draw_fleet
from hops.fleet.job_events import JobEvents
from hops.fleet.result import summarize_study
from hops.fleet.state import NEVER, Hung, PlannedStop, WentWrong, WrongNoticed
from hops.fleet.study import prepare
from hops.fleet.time_use import TimeUse
from hops.fleet.trajectory import Trajectory
from hops.spec.load import loads

DAY_S = 86_400


@pytest.fixture(scope="module")
def alone():
    return World()


def job(kind, start_s, end_s):
    return Fault(kind=FaultKind(kind), target="job", start_ns=round(start_s * S), end_ns=round(end_s * S), cause="job")


def losses(trajectory: Trajectory):
    return {str(use): length / S for use, length in trajectory.spent_ns.items() if length and use != "productive"}


@pytest.mark.parametrize("policy", ["checkpoint_restart", "spare", "reroute", "replan", "stall"])
def test_a_planned_stop_costs_saving_the_stop_and_a_restart_under_every_policy(alone, policy):
    found = alone.train(policy, [job("planned-stop", 100, 400)], horizon_ns=590 * S)
    ends_s = -(-100 * S // alone.iteration_ns) * alone.iteration_ns / S  # the iteration under way ends first
    assert losses(found) == pytest.approx({"checkpoint": 10, "waiting": 400 - ends_s - 10, "restart": 60, "reload": 20})
    assert found.lost_iterations == {"planned-stop": 0}
    assert found.faults == {FaultKind.PLANNED_STOP: 1}


def test_a_hang_costs_the_time_until_somebody_acts_and_the_work_since_the_checkpoint(alone):
    found = alone.train("checkpoint_restart", [job("hang", 100, 400)], horizon_ns=590 * S)
    assert losses(found) == {"redone": 100, "detection": 300, "restart": 60, "reload": 20}
    assert found.lost_iterations == {"hang": 100 * S // alone.iteration_ns + 1}


def test_a_loss_spike_costs_the_work_since_the_checkpoint_before_it(alone):
    """Checkpoints end at about 611 and 1,222 s; wrong from 700 s on, noticed at 1,500 s."""
    found = alone.train("checkpoint_restart", [job("roll-back", 700, 1500)], horizon_ns=2000 * S)
    first_s = -(-600 * S // alone.iteration_ns) * alone.iteration_ns / S + 10
    second = 10
    assert losses(found)["redone"] == pytest.approx(1500 - first_s - second)
    assert losses(found) | {"redone": 0} == {"redone": 0, "checkpoint": 20, "restart": 60, "reload": 20}
    after = alone.train("checkpoint_restart", [job("roll-back", 1400, 1500)], horizon_ns=2000 * S)
    assert losses(after)["redone"] < 300


def test_what_a_stop_has_cured_costs_nothing_more(alone):
    """Wrong from 100 s on; a stop at 200 s goes back to the start, so that at 400 s nothing is to be seen."""
    cured = [job("roll-back", 100, 400), stop("node0/0", 200, 210)]
    with_it, without = (alone.train("checkpoint_restart", faults, horizon_ns=590 * S) for faults in (cured, cured[1:]))
    assert (with_it.spent_ns, with_it.iterations) == (without.spent_ns, without.iterations)


def test_a_hang_while_nobody_trains_is_none_and_a_planned_stop_is_made_up_for(alone):
    """The first of both falls into the recovery of the hang at 100 s."""
    hang = job("hang", 100, 400)
    again = alone.train("checkpoint_restart", [hang, job("hang", 200, 900)], horizon_ns=590 * S)
    assert again.interruptions == 1
    planned = alone.train("checkpoint_restart", [hang, job("planned-stop", 200, 700)], horizon_ns=1000 * S)
    assert losses(planned) == {
        "redone": 100,
        "detection": 300,
        "restart": 120,
        "reload": 40,
        "checkpoint": 10,
        "waiting": 700 - 480 - 10,
    }
    over = alone.train("checkpoint_restart", [hang, job("planned-stop", 200, 450)], horizon_ns=1000 * S)
    assert over.interruptions == 1


@settings(deadline=None, max_examples=40)
@given(
    windows=st.lists(
        st.tuples(st.sampled_from(["planned-stop", "hang", "roll-back"]), st.floats(0, 1900), st.floats(0.001, 600)),
        max_size=8,
    ),
    asynchronous=st.booleans(),
    policy=st.sampled_from(["checkpoint_restart", "spare", "reroute", "stall"]),
)
def test_time_is_conserved_whatever_happens_to_the_job(windows, asynchronous, policy):
    world = WORLD
    faults = FaultPlan.of(job(kind, start, start + length) for kind, start, length in windows)
    times = replace(TIMES, asynchronous=asynchronous, interval_ns=100 * S, write_ns=30 * S)
    found = world.train(policy, faults, horizon_ns=2000 * S, times=times)
    assert sum(found.spent_ns.values()) == 2000 * S
    assert min(found.spent_ns.values()) >= 0
    assert found.iterations <= found.spent_ns[TimeUse.PRODUCTIVE] / world.iteration_ns + 1e-6


WORLD = World()


def test_job_events_come_in_order_and_wait_for_training():
    plan = FaultPlan.of([job("planned-stop", 5, 9), job("hang", 2, 8), job("roll-back", 1, 4)])
    events = JobEvents(World.plan_of(plan))
    assert (events.next_break_ns(wrong=True), events.next_pause_ns, events.next_anyway_ns) == (2 * S, S, S)
    only_wrong = JobEvents(World.plan_of(FaultPlan.of([job("roll-back", 1, 4)])))
    assert (only_wrong.next_break_ns(wrong=True), only_wrong.next_break_ns(wrong=False)) == (4 * S, NEVER)
    assert events.take(S // 2, training=True) is None
    assert events.take(4 * S, training=False) == WentWrong()
    assert events.take(4 * S, training=False) == WrongNoticed()
    assert events.take(4 * S, training=False) is None
    assert events.take(6 * S, training=True) == PlannedStop(until_ns=9 * S)
    assert events.take(6 * S, training=True) is None
    alone = JobEvents(World.plan_of(FaultPlan.of([job("hang", 2, 8)])))
    assert alone.take(2 * S, training=True) == Hung(until_ns=8 * S)


SPEC = """
simulation: {seed: 3}
pipeline: {stage_times: {forward: 1 s, backward: 2 s}, microbatches: 4}
hardware: {nodes: [{count: 2, devices: [l4]}]}
optimizer: {data_parallel: 2}
failure:
  enabled: true
  models: [MODELS]
  recovery: {state: 1 GiB, storage_bandwidth: 1 GB/s, checkpoint: {interval: 30 min}}
"""


def spec(models, *overrides):
    return loads(SPEC.replace("MODELS", models), overrides=overrides)


HANG = "{kind: hang, between: {distribution: exponential, mean: 6 h}, repair: 1 h}"


def study(models, *overrides, days=20.0):
    loaded = spec(models, *overrides)
    return prepare(build(loaded), loaded.failure.recovery, days=days, seeds=2)


def test_hangs_come_to_the_job_and_not_to_each_copy():
    plan = draw_fleet(build(spec(HANG)), 3, 20 * DAY_S * S)
    assert {each.replica for each in plan} == {0}
    assert {(each.fault.target, each.fault.cause) for each in plan} == {("job", "job")}
    assert 40 < len(plan) < 100  # 68.6 cycles of 7 hours
    assert draw_faults(spec(HANG, "failure.horizon=20 d")) == FaultPlan.of(each.fault for each in plan)
    assert draw_fleet(build(spec(HANG, "optimizer.data_parallel=4")), 3, 20 * DAY_S * S) == plan


def test_hangs_without_loss_leave_their_share_of_the_time():
    """A renewal process: 6 h of training for each hour that nobody acts."""
    found = replace(study(HANG, days=60.0), times=FREE).trajectories()
    hung = sum(each.spent_ns[TimeUse.DETECTION] for each in found) / sum(each.horizon_ns for each in found)
    assert hung == pytest.approx(1 / 7, abs=0.02)


def test_longer_until_it_is_seen_costs_more():
    short, long = (
        summarize_study(each, each.trajectories()).goodput
        for each in (
            study("{kind: roll-back, between: {distribution: exponential, mean: 12 h}, repair: 10 min}"),
            study("{kind: roll-back, between: {distribution: exponential, mean: 12 h}, repair: 3 h}"),
        )
    )
    assert short > long + 0.1


def test_a_run_of_iterations_has_no_job_that_stops():
    plain, hangs = (simulate(spec(models)).trace for models in ("", HANG.replace("mean: 6 h", "mean: 1 s")))
    assert hangs.end_ns.tolist() == plain.end_ns.tolist()


@pytest.mark.parametrize(
    ("preset", "kind", "published", "days"),
    [
        ("llama3-planned", "planned-stop", 47, 54),
        ("opt-175b-manual", "hang", 35, 61),
        ("palm-spikes", "roll-back", 20, 64),
    ],
)
def test_presets_of_the_job_break_as_often_as_published(preset, kind, published, days):
    loaded = spec(f"{{preset: {preset}, repair: 1 s}}")
    plan = draw_fleet(build(loaded), 3, 100 * days * DAY_S * S)
    assert {each.fault.kind for each in plan} == {FaultKind(kind)}
    assert len(plan) == pytest.approx(100 * published, rel=4 / (100 * published) ** 0.5)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("{kind: hang, between: 6 h}", "hang does not say how long it takes until somebody kills the job; add repair"),
        ("{kind: planned-stop, at: [1 h]}", "planned-stop does not say for how long the job stands still"),
        ("{kind: roll-back, share: 0.5}", "got share for roll-back, which happens at some time; use between or at"),
        (
            "{kind: hang, on: devices, between: 6 h, repair: 1 h}",
            "a fault of kind hang happens to the whole job, but got",
        ),
        (
            "{kind: stop, on: job, between: 6 h, repair: 1 h}",
            "a fault of kind stop cannot happen to the job; name devices",
        ),
        ("{kind: hang, only: l4, between: 6 h, repair: 1 h}", "got only for hang, which happens to the whole job"),
        ("{kind: hang, factor: 2, between: 6 h, repair: 1 h}", "got a factor for hang, expected none"),
    ],
)
def test_what_cannot_be_is_refused(models, message):
    with pytest.raises(HopsError) as caught:
        spec(models)
    assert message in str(caught.value)
