"""Trained fleets against the engine run from start to end, against a plain recomputation, and through hard moments."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from goodput_fleets import FREE, TIMES, S, World, link, random_plan, slow, stop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hops.build.setup import build
from hops.faults.plan import FaultPlan
from hops.fleet.fleet import FleetPlan
from hops.fleet.iteration_times import IterationDraws, Touched
from hops.fleet.recovery.base import RECOVERIES, Variant
from hops.fleet.simulate import _with_touched
from hops.fleet.time_use import TimeUse

POLICIES = ("checkpoint_restart", "spare", "reroute", "replan", "stall")


@pytest.fixture(scope="module")
def alone():
    return World()


@pytest.fixture(scope="module")
def three():
    return World(copies=3)


def engine_lengths_ns(world, plan, iterations):
    """All iterations with all faults in the engine, one after the other."""
    faults = FaultPlan.of(each.fault for each in plan)
    return world.pipelines.get(Variant()).lengths_ns(iterations, 0, faults)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb_h1"])
def test_without_jitter_all_iterations_end_as_in_the_engine_to_the_nanosecond(schedule):
    """Drawn iterations and touched ones together end exactly when the engine ends that runs them all."""
    world = World(schedule=schedule)
    for seed in range(4):
        plan = random_plan(world.fleet, seed, span_s=110, mtbf_s=40, mttr_s=5, slow_factor=1.3, down_links=True)
        lengths = engine_lengths_ns(world, plan, 60)
        story = world.train("stall", plan, horizon_ns=int(lengths.sum()), times=FREE)
        assert story.iterations == 60
        assert story.spent_ns[TimeUse.PRODUCTIVE] == 60 * world.iteration_ns
        assert 0 < story.touched_iterations < 60


def test_with_jitter_it_agrees_with_the_engine_within_sampling_error():
    world = World(more="jitter: {distribution: lognormal, mean: 1, std: 0.1}", samples=64)
    plan = random_plan(world.fleet, 3, span_s=1000, mtbf_s=200, mttr_s=40, slow_factor=1.5)
    lengths = engine_lengths_ns(world, plan, 500)
    story = world.train("stall", plan, horizon_ns=int(lengths.sum()), times=FREE)
    clean = world.pipelines.get(Variant()).lengths_ns(200, 1, FaultPlan())
    error = float(clean.std()) / clean.mean() * np.sqrt(1 / 500 + 1 / 64)
    assert story.iterations == pytest.approx(500, rel=4 * error + 0.002)


def plain_training(iteration_ns, stops, times, horizon_ns):
    """checkpoint_restart, one iteration and one phase at a time: an independent recomputation."""
    now = done = saved = number = down_until = 0
    due = times.interval_ns
    unsaved = Counter()
    spent = Counter()
    queue = []
    while now < horizon_ns:
        struck = False
        while number < len(stops) and stops[number][0] <= now:
            down_until, number, struck = max(down_until, stops[number][1]), number + 1, True
        if struck:
            spent["redone"] += unsaved.total()
            unsaved.clear()
            done = saved
            queue = [("detection", times.detection_ns), ("waiting", None)]
            queue += [("restart", times.restart_ns), ("reload", times.reload_ns)]
            continue
        coming = stops[number][0] if number < len(stops) else horizon_ns
        if queue:
            cause, length = queue[0]
            end = now + (max(0, down_until - now) if length is None else length)
            until = min(end, coming, horizon_ns)
            spent[cause] += until - now
            now = until
            if until == end:
                queue.pop(0)
                due = now + times.interval_ns
        elif due <= now:
            until = min(now + times.pause_ns, coming, horizon_ns)
            spent["checkpoint"] += until - now
            if until == now + times.pause_ns:
                saved, due = done, until + times.interval_ns
                spent["productive"] += unsaved.total()
                unsaved.clear()
            now = until
        else:
            end = now + iteration_ns
            if end <= min(coming, horizon_ns):
                unsaved["work"] += iteration_ns
                done, now = done + 1, end
            elif coming < horizon_ns:
                spent["redone"] += coming - now
                now = coming
            else:
                unsaved["work"] += horizon_ns - now
                now = horizon_ns
    spent["productive"] += unsaved.total()
    return done, spent


@pytest.mark.parametrize("seed", range(8))
def test_checkpoint_restart_is_a_plain_recomputation_to_the_nanosecond(alone, seed):
    plan = random_plan(alone.fleet, seed, span_s=30_000, mtbf_s=9000, mttr_s=600)
    stops = sorted((each.fault.start_ns, each.fault.end_ns) for each in plan)
    story = alone.train("checkpoint_restart", plan, horizon_ns=30_000 * S)
    done, spent = plain_training(alone.iteration_ns, stops, TIMES, 30_000 * S)
    assert story.iterations == done
    assert {cause.value: length for cause, length in story.spent_ns.items() if length} == {
        cause: length for cause, length in spent.items() if length
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_without_faults_only_checkpoints_cost_time(three, policy):
    """Goodput is 1 minus the checkpoints' share, exactly."""
    story = three.train(policy, [], horizon_ns=86_400 * S)
    checkpoints = story.spent_ns[TimeUse.CHECKPOINT]
    assert checkpoints % TIMES.pause_ns == 0
    assert checkpoints // TIMES.pause_ns == 86_400 // (610 + 1)  # an iteration that crosses the time ends first
    assert story.spent_ns[TimeUse.PRODUCTIVE] == 86_400 * S - checkpoints
    assert story.goodput == story.effective_training_time_ratio == 1 - checkpoints / (86_400 * S)
    assert story.interruptions == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_without_faults_and_checkpoints_all_time_is_productive(three, policy):
    story = three.train(policy, [], horizon_ns=1000 * S, times=FREE)
    assert story.goodput == 1.0
    assert story.iterations == 1000 * S // three.iteration_ns


def phases(story):
    """Seconds by cause, losses only."""
    return {cause.value: length / S for cause, length in story.spent_ns.items() if length and cause != "productive"}


def test_a_stop_costs_detection_repair_restart_reading_and_the_work_since_the_checkpoint(alone):
    work = round(100 * S)
    story = alone.train("checkpoint_restart", [stop("node1/0", 100, 160)], horizon_ns=590 * S)
    assert phases(story) == {"detection": 30, "waiting": 30, "restart": 60, "reload": 20, "redone": work / S}
    assert story.lost_iterations == {"device": work // alone.iteration_ns + 1}


def test_a_fault_at_time_0_loses_nothing_but_time(alone):
    story = alone.train("checkpoint_restart", [stop("node0/0", 0, 10)], horizon_ns=500 * S)
    assert phases(story) == {"detection": 30, "restart": 60, "reload": 20}
    assert story.lost_iterations == {"device": 0}


def test_a_fault_that_never_ends_leaves_everybody_waiting(alone):
    story = alone.train("checkpoint_restart", [stop("node0/0", 50, 1e9)], horizon_ns=5000 * S)
    assert phases(story) == {"redone": 50, "detection": 30, "waiting": 4920}
    stalled = alone.train("stall", [stop("node0/0", 50, 1e9)], horizon_ns=5000 * S, times=FREE)
    assert stalled.iterations == 50 * S // alone.iteration_ns
    assert sum(stalled.spent_ns.values()) == 5000 * S


def test_a_fault_during_recovery_starts_it_again(alone):
    """The second stop comes 5 s into the restart: detection, restart and reading are gone through once more."""
    faults = [stop("node0/0", 100, 110), stop("node1/0", 135, 140)]
    story = alone.train("checkpoint_restart", faults, horizon_ns=590 * S)
    assert phases(story) == {"detection": 60, "restart": 65, "reload": 20, "redone": 100}
    assert story.interruptions == 2


def test_two_simultaneous_faults_are_one_interruption(alone):
    faults = [stop("node0/0", 100, 110), stop("node1/0", 100, 150)]
    story = alone.train("checkpoint_restart", faults, horizon_ns=590 * S)
    assert story.interruptions == 1
    assert phases(story)["waiting"] == 150 - 130


def test_a_stop_during_a_checkpoint_loses_the_checkpoint(alone):
    """It is due at the end of the first iteration after 600 s, and takes 10 s; a stop in its middle undoes it."""
    due_s = -(-600 * S // alone.iteration_ns) * alone.iteration_ns / S
    story = alone.train("checkpoint_restart", [stop("node0/0", due_s + 4, due_s + 5)], horizon_ns=800 * S)
    found = phases(story)
    assert found["checkpoint"] == pytest.approx(4)
    assert found["redone"] == pytest.approx(due_s)


def test_an_asynchronous_checkpoint_counts_once_it_is_written(alone):
    times = replace(TIMES, asynchronous=True, pause_ns=2 * S, write_ns=100 * S)
    due_s = -(-600 * S // alone.iteration_ns) * alone.iteration_ns / S
    before = alone.train(
        "checkpoint_restart", [stop("node0/0", due_s + 99, due_s + 100)], horizon_ns=999 * S, times=times
    )
    after = alone.train(
        "checkpoint_restart", [stop("node0/0", due_s + 101, due_s + 102)], horizon_ns=999 * S, times=times
    )
    assert phases(before)["redone"] == pytest.approx(due_s + 97)
    assert phases(after)["redone"] == pytest.approx(99)


def test_slow_devices_cost_what_the_engine_says_and_the_slowest_copy_decides(three):
    lengths = [
        int(three.pipelines.get(Variant()).lengths_ns(1, 0, FaultPlan(faults=(slow("node1/0", 0, 1e9, factor),)))[0])
        for factor in (1.2, 1.5)
    ]
    plan = FleetPlan.of(FaultPlan(faults=(slow("node1/0", 0, 1e9, factor),)) for factor in (1.2, 1.5))
    story = three.train("stall", plan, horizon_ns=lengths[1] * 40, times=FREE)
    assert story.iterations == 40
    assert story.spent_ns[TimeUse.SLOW] == 40 * (lengths[1] - three.iteration_ns)


def test_a_device_that_stops_comes_back_healthy(alone):
    faults = [slow("node1/0", 0, 1e9, 2.0), stop("node1/0", 100, 110)]
    story = alone.train("checkpoint_restart", faults, horizon_ns=1000 * S, times=FREE)
    assert story.spent_ns[TimeUse.SLOW] == 0  # what was slow before is lost, and nothing is slow after it
    assert story.spent_ns[TimeUse.REDONE] == 100 * S


def test_a_link_that_is_down_lets_messages_wait(alone):
    story = alone.train("checkpoint_restart", [link("node1.nic.in", 10, 70)], horizon_ns=1000 * S, times=FREE)
    assert 58 < phases(story)["slow"] < 60  # what was computed before messages were missed is kept
    assert story.interruptions == 0


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 10**6),
    mtbf_s=st.floats(40, 3000),
    mttr_s=st.floats(0.01, 2000),
    slow_factor=st.none() | st.floats(1.01, 5),
    down_links=st.booleans(),
    spares=st.integers(0, 3),
    interval_s=st.none() | st.floats(1, 2000),
    costs_s=st.lists(st.sampled_from([0.0, 1.0, 45.5]), min_size=5, max_size=5),
    from_peer=st.booleans(),
    asynchronous=st.booleans(),
    copies=st.sampled_from([1, 3]),
)
def test_no_plan_hangs_a_life_and_time_and_iterations_are_conserved(
    alone,
    three,
    policy,
    seed,
    mtbf_s,
    mttr_s,
    slow_factor,
    down_links,
    spares,
    interval_s,
    costs_s,
    from_peer,
    asynchronous,
    copies,
):
    world = alone if copies == 1 else three
    detection, restart, reload, pause, copy = (round(each * S) for each in costs_s)
    times = replace(
        TIMES,
        detection_ns=detection,
        restart_ns=restart,
        reload_ns=reload,
        copy_ns=copy,
        pause_ns=pause,
        write_ns=pause,
        interval_ns=None if interval_s is None else round(interval_s * S),
        spares=spares,
        from_peer=from_peer,
        asynchronous=asynchronous,
    )
    plan = random_plan(
        world.fleet, seed, span_s=300, mtbf_s=mtbf_s, mttr_s=mttr_s, slow_factor=slow_factor, down_links=down_links
    )
    story = world.train(policy, plan, horizon_ns=300 * S, times=times, seed=seed)
    assert sum(story.spent_ns.values()) == 300 * S
    assert min(story.spent_ns.values()) >= 0
    whole = story.spent_ns[TimeUse.PRODUCTIVE] / world.iteration_ns
    assert story.iterations <= whole + 1e-6 < story.iterations + 1 + 1e-6
    assert 0 <= story.goodput <= story.effective_training_time_ratio <= 1
    moments = [moment for moment, _ in story.history]
    assert moments == sorted(moments)
    assert story == world.train(policy, plan, horizon_ns=300 * S, times=times, seed=seed)


def test_every_policy_is_tested_here():
    assert set(RECOVERIES.names()) == set(POLICIES)


def test_ranks_that_drift_apart_still_wait_for_a_device_once():
    """Without synchronization the result is an approximation, but a stop is awaited inside one iteration."""
    base = World().setup.spec
    loose = base.model_copy(update={"optimizer": base.optimizer.model_copy(update={"synchronized": False})})
    world = World.of(build(loose))
    story = world.train("stall", [stop("node1/0", 100, 400)], horizon_ns=1000 * S, times=FREE)
    assert story.touched_iterations <= 2
    assert phases(story)["stalled"] == pytest.approx(300, abs=3)


def timing_out(world, timeout_s):
    """The same world with a transport that gives up."""
    faults = replace(world.setup.settings.faults, link_timeout_ns=round(timeout_s * S))
    setup = replace(world.setup, settings=replace(world.setup.settings, faults=faults))
    return world.of(setup)


def test_a_transport_that_gives_up_fails_the_job(alone):
    """Down from 10 s to 400 s, given up after 60 s: restart, then everybody waits for the link; spares replace it."""
    impatient = timing_out(alone, 60)
    faults = [link("node1.nic.in", 10, 400)]
    story = impatient.train("checkpoint_restart", faults, horizon_ns=590 * S)
    found = phases(story)
    assert (found["detection"], found["restart"], found["reload"]) == (30, 60, 20)
    assert found["redone"] == pytest.approx(70, abs=2)
    assert found["waiting"] == pytest.approx(400 - 180, abs=2)
    assert story.lost_iterations.keys() == {"link-down"}
    replaced = impatient.train("spare", faults, horizon_ns=590 * S)
    assert TimeUse.WAITING not in phases(replaced)
    assert replaced.iterations > story.iterations + 50


def test_a_transport_that_gives_up_at_once_does_not_hang(alone):
    for policy in POLICIES:
        story = timing_out(alone, 0).train(policy, [link("node1.nic.in", 0, 400)], horizon_ns=590 * S, times=FREE)
        assert sum(story.spent_ns.values()) == 590 * S


def test_of_two_copies_in_which_something_changes_the_slower_decides(three):
    """Both get slow within one iteration; alone or with the milder one, the worse one costs the same."""
    horizon_ns = 30 * three.iteration_ns
    mild, bad = slow("node1/0", 4.5, 1e6, 1.2), slow("node1/0", 4.5, 1e6, 1.5)
    found = [
        three.train("stall", FleetPlan.of(FaultPlan.of(each) for each in faults), horizon_ns=horizon_ns, times=FREE)
        for faults in ([[bad]], [[mild], [bad]], [[bad], [mild]])
    ]
    assert [each.touched_iterations for each in found] == [1, 1, 1]
    assert found[0].spent_ns == found[1].spent_ns == found[2].spent_ns


def test_each_way_of_counting_a_touched_iteration_takes_its_own_slowest_copy():
    rest = IterationDraws(actual=np.asarray([3.0]), unslowed=np.asarray([1.0]), planned=np.asarray([1.0]))
    touched = [
        Touched(actual_ns=9, unslowed_ns=2, planned_ns=2),
        Touched(actual_ns=7, unslowed_ns=6, planned_ns=4),
    ]
    for order in (touched, touched[::-1]):
        whole = _with_touched(rest, order)
        assert (whole.actual[0], whole.unslowed[0], whole.planned[0]) == (9, 6, 4)
    idle = IterationDraws(actual=np.asarray([11.0]), unslowed=np.asarray([8.0]), planned=np.asarray([5.0]))
    whole = _with_touched(idle, touched)
    assert (whole.actual[0], whole.unslowed[0], whole.planned[0]) == (11, 8, 5)
