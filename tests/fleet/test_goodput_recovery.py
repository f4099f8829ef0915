"""Each recovery policy does what it says: whose state is lost, who waits for whom, how work is shared."""

from dataclasses import replace

import pytest
from goodput_fleets import TIMES, S, World, stop

from hops.faults.plan import FaultPlan
from hops.fleet.fleet import FleetPlan
from hops.fleet.recovery.base import RECOVERIES, FleetLayout, Situation, Unit, Variant
from hops.fleet.time_use import TimeUse

MODEL = """
pipeline:
  model: {layers: 12, hidden: 512, heads: 8, vocab: 4096, max_positions: 512}
  microbatches: 4
  partition: balanced
hardware:
  nodes: [{count: 3, devices: [l4]}]
  interconnect: ethernet-25
optimizer: {data_parallel: 3}
"""


@pytest.fixture(scope="module")
def three():
    return World(copies=3)


def losses(story):
    return {cause.value: length / S for cause, length in story.spent_ns.items() if length and cause != "productive"}


def fleet_plan(*faults_by_copy):
    return FleetPlan.of(FaultPlan.of(faults) for faults in faults_by_copy)


def test_a_spare_with_a_peers_state_loses_the_iteration_only(three):
    plan = fleet_plan([stop("node1/0", 100, 5000)], [], [])
    story = three.train("spare", plan, horizon_ns=500 * S)
    found = losses(story)
    assert found.pop("redone") == pytest.approx(100 % (three.iteration_ns / S))
    assert found == {"detection": 30, "restart": 60, "reload": 5}
    assert story.lost_iterations == {"device": 1}


def test_a_spare_with_a_checkpoints_state_loses_what_came_after_it(three):
    plan = fleet_plan([stop("node1/0", 100, 5000)], [], [])
    story = three.train("spare", plan, horizon_ns=500 * S, times=replace(TIMES, from_peer=False))
    assert losses(story) == {"detection": 30, "restart": 60, "reload": 20, "redone": 100}


def test_without_a_spare_everybody_waits_for_the_first_repair(three):
    plan = fleet_plan([stop("node1/0", 100, 400)], [stop("node2/0", 200, 900)], [])
    story = three.train("spare", plan, horizon_ns=1200 * S, times=replace(TIMES, spares=0, interval_ns=None))
    assert losses(story)["waiting"] == pytest.approx((400 - 130) + (900 - 430 + 0) - 0, abs=61)
    assert losses(story)["waiting"] >= 270


def test_a_repaired_device_becomes_a_spare(three):
    """One spare: the second stop takes the device that the first one's repair gave back."""
    plan = fleet_plan([stop("node1/0", 100, 300)], [stop("node2/0", 500, 9000)], [stop("node0/0", 1000, 9000)])
    story = three.train("spare", plan, horizon_ns=1500 * S, times=replace(TIMES, interval_ns=None))
    assert losses(story)["waiting"] == 1500 - 1030  # both are gone at the third
    assert story.interruptions == 3


def test_a_whole_stage_group_has_no_peer_left(three):
    """Every copy loses the same stage at once: its state is in the checkpoint alone."""
    group = fleet_plan(*[[stop("node1/0", 100, 5000)]] * 3)
    story = three.train("spare", group, horizon_ns=500 * S, times=replace(TIMES, spares=3))
    assert losses(story) == {"detection": 30, "restart": 60, "reload": 20, "redone": 100}


def test_a_group_that_dies_one_by_one_during_recovery_has_no_peer_left(three):
    plan = fleet_plan([stop("node1/0", 100, 5000)], [stop("node1/0", 110, 5000)], [stop("node1/0", 120, 5000)])
    story = three.train("spare", plan, horizon_ns=500 * S, times=replace(TIMES, spares=3))
    assert losses(story)["redone"] == 100
    assert losses(story)["reload"] == 20


def test_rerouted_peers_take_whole_microbatches(three):
    """Three copies of 4 microbatches, one device gone: the two others share 4, so each takes 2."""
    policy = RECOVERIES.get("reroute")(TIMES, three.fleet, three.table.seconds)
    assert policy.layout(frozenset()) == FleetLayout()
    assert policy.layout(frozenset({Unit(0, 1)})).common == Variant(extra=(0, 2, 0))
    assert policy.layout(frozenset({Unit(0, 1), Unit(2, 1)})).common == Variant(extra=(0, 8, 0))
    assert policy.layout(frozenset({Unit(0, 1), Unit(2, 2)})).common == Variant(extra=(0, 2, 2))


def test_rerouting_goes_on_slower_until_the_device_is_back(three):
    plan = fleet_plan([stop("node1/0", 100, 700)], [], [])
    story = three.train("reroute", plan, horizon_ns=1500 * S, times=replace(TIMES, interval_ns=None))
    found = losses(story)
    assert found["detection"] == 30
    assert found["reconfigure"] == 10 + 10  # without it, and with it again
    assert found["reload"] == 5
    slower = three.table.seconds(Variant(extra=(0, 2, 0))) / (three.iteration_ns / S)
    assert found["degraded"] == pytest.approx(560 * (1 - 1 / slower), rel=0.02)


def test_bubbles_take_a_part_of_the_extra_work(three):
    """Two more microbatches of 300 ms on one rank cost less than 600 ms, and nothing at all costs nothing."""
    usual = three.iteration_ns / S
    longer = three.table.seconds(Variant(extra=(0, 2, 0))) - usual
    assert longer < 0.6
    many = World(copies=3, more="# more")
    assert many.table.seconds(Variant(extra=(0, 0, 0))) == pytest.approx(usual)


def test_backwards_in_halves_leave_more_room_for_guests(three):
    from hops.fleet.iteration_times import IterationTimeTable
    from hops.fleet.variants import Pipelines

    fused = IterationTimeTable(Pipelines(three.setup, split_backward=False).get, samples=1, seed=0)
    extra = Variant(extra=(0, 2, 0))
    assert three.table.seconds(extra) < fused.seconds(extra)


def test_a_group_that_is_gone_waits_for_one_of_its_devices(three):
    plan = fleet_plan([stop("node1/0", 100, 900)], [stop("node1/0", 100, 400)], [stop("node1/0", 100, 600)])
    story = three.train("reroute", plan, horizon_ns=1500 * S, times=replace(TIMES, interval_ns=None))
    found = losses(story)
    assert found["waiting"] == 400 - 130
    assert found["redone"] == 100
    assert found["degraded"] > 0


def test_replanning_drops_the_broken_copy_or_cuts_it_anew():
    """Keeping the global batch: without one copy the others run 6 microbatches instead of 4."""
    from hops.build.setup import build
    from hops.fleet.fleet import Fleet
    from hops.fleet.iteration_times import IterationTimeTable
    from hops.fleet.variants import Pipelines
    from hops.spec.load import loads

    setup = build(loads(MODEL))
    fleet = Fleet.of(3, setup.spec.hardware.ranks(), microbatches=4)
    paces = IterationTimeTable(Pipelines(setup, split_backward=True).get, samples=1, seed=0)
    policy = RECOVERIES.get("replan")(TIMES, fleet, paces.seconds)
    layout = policy.layout(frozenset({Unit(1, 2)}))
    dropped = FleetLayout(common=Variant(microbatches=6), dropped=frozenset({1}))
    cut = [
        FleetLayout(common=Variant(microbatches=more), special={1: Variant(microbatches=kept, without=(2,))})
        for kept, more in ((4, 4), (3, 5), (2, 5), (1, 6))
    ]
    times = {
        index: max(paces.seconds(each.common), *(paces.seconds(v) for v in each.special.values()), 0)
        for index, each in enumerate([dropped, *cut])
    }
    assert layout == [dropped, *cut][min(times, key=times.get)]
    alone = RECOVERIES.get("replan")(TIMES, replace(fleet, replicas=1), paces.seconds)
    assert alone.layout(frozenset({Unit(0, 0)})).special == {0: Variant(microbatches=4, without=(0,))}


def test_replanning_waits_where_nothing_can_be_planned():
    """Stated stage times cannot be cut anew, so a single copy waits for its device."""
    world = World()
    story = world.train(
        "replan", [stop("node0/0", 100, 400)], horizon_ns=1000 * S, times=replace(TIMES, interval_ns=None)
    )
    assert losses(story)["waiting"] == 400 - 130


def test_a_replanner_of_ones_own_is_asked_for_the_devices_that_are_left(three):
    from hops.fleet.variants import Pipelines

    asked = []

    def replan(spec, devices):
        asked.append(devices)

    assert Pipelines(three.setup, split_backward=True, replan=replan).get(Variant(without=(1,))) is None
    assert asked == [("node0/0", "node2/0")]


def test_spares_are_filled_when_enough_devices_are_there():
    situation = Situation(now_ns=100, free=1, repairs_ns=(150, 300))
    assert [situation.filled_at(count) for count in (0, 1, 2, 3)] == [100, 100, 150, 300]


def test_degraded_time_is_no_loss_of_effective_time(three):
    plan = fleet_plan([stop("node1/0", 100, 5000)], [], [])
    story = three.train("reroute", plan, horizon_ns=2000 * S, times=replace(TIMES, interval_ns=None))
    kept = sum(story.spent_ns[cause] for cause in (TimeUse.PRODUCTIVE, TimeUse.DEGRADED))
    assert story.effective_training_time_ratio == kept / (2000 * S)
    assert story.goodput < story.effective_training_time_ratio
