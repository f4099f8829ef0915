"""Theory: availability, Young and Daly, order statistics, and what must grow with what."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from goodput_fleets import FREE, TIMES, S, World, random_plan

from hops.fleet.checkpoint_sweep import lowest_of_curve, sweep_intervals
from hops.fleet.fault_timeline import downtime_ns
from hops.fleet.iteration_times import FleetTimes, IterationTimes
from hops.fleet.recovery_times import availability, daly_interval, goodput_of_interval, young_interval
from hops.fleet.study import Study, prepare
from hops.fleet.time_use import TimeUse
from hops.spec.failure import PolicyChoice


@pytest.fixture(scope="module")
def world():
    return World()


def study(world, *, times, mtbf_s, mttr_s, days, seeds, policy="checkpoint_restart"):
    """A study with plans of our own: every device stops at a constant rate."""
    horizon_ns = round(days * 86_400 * S)
    plans = tuple(
        random_plan(world.fleet, seed, span_s=horizon_ns / S, mtbf_s=mtbf_s, mttr_s=mttr_s) for seed in range(seeds)
    )
    stops = sum(map(len, plans))
    return Study(
        setup=world.setup,
        fleet=world.fleet,
        times=times,
        policy=PolicyChoice(name=policy),
        table=world.table,
        plans=plans,
        seeds=tuple(range(seeds)),
        horizon_ns=horizon_ns,
        mtbf_s=horizon_ns / S * seeds / stops,
    )


def test_young_and_daly_in_closed_form():
    assert young_interval(50, 10_000) == 1000
    assert daly_interval(50, 10_000) == pytest.approx(1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50)
    assert daly_interval(100, 40) == 40
    grid = np.geomspace(50, 20_000, 4000)
    for pause_s, mtbf_s in ((10, 3600), (60, 86_400), (120, 3600)):
        best = grid[np.argmax([goodput_of_interval(tau, pause_s=pause_s, mtbf_s=mtbf_s) for tau in grid])]
        assert daly_interval(pause_s, mtbf_s) == pytest.approx(best, rel=0.005)
        assert young_interval(pause_s, mtbf_s) == pytest.approx(best, rel=2 * sqrt(pause_s / mtbf_s))


@pytest.mark.parametrize(("pause_s", "mtbf_s"), [(10, 5600), (60, 12_000), (9, 80_000), (120, 20_000)])
def test_the_curve_through_points_of_theory_is_lowest_at_theorys_optimum(pause_s, mtbf_s):
    young = young_interval(pause_s, mtbf_s)
    intervals = np.geomspace(young / 4, young * 4, 15).tolist()
    lost = [1 - goodput_of_interval(each, pause_s=pause_s, mtbf_s=mtbf_s) for each in intervals]
    best_s, least = lowest_of_curve(intervals, lost)
    assert best_s == pytest.approx(daly_interval(pause_s, mtbf_s), rel=0.025)
    assert least == pytest.approx(min(lost), abs=0.001)


def test_the_best_interval_of_a_sweep_is_theorys_within_5_percent(world):
    """Checkpoints of 60 s, a stop of something every 3.3 hours: sqrt(2 x 60 x 12,000) is 20 minutes."""
    times = replace(FREE, interval_ns=300 * S, pause_ns=60 * S, write_ns=60 * S)
    found = sweep_intervals(study(world, times=times, mtbf_s=36_000, mttr_s=0.001, days=30, seeds=1), points=7)
    assert found.mtbf_s == pytest.approx(12_000, rel=0.1)
    assert found.best_s == pytest.approx(found.daly_s, rel=0.05)
    assert found.best_s == pytest.approx(found.young_s, rel=0.05 + 1 - found.daly_s / found.young_s)
    assert found.best_goodput == pytest.approx(
        goodput_of_interval(found.young_s, pause_s=60, mtbf_s=found.mtbf_s), abs=0.005
    )


def test_goodput_by_interval_is_dalys_formula(world):
    times = replace(FREE, interval_ns=400 * S, pause_ns=10 * S, write_ns=10 * S, restart_ns=100 * S)
    lives = study(world, times=times, mtbf_s=9000, mttr_s=0.001, days=20, seeds=3)
    measured = np.mean([story.goodput for story in lives.trajectories()])
    whole = -(-400 * S // world.iteration_ns) * world.iteration_ns / S  # checkpoints wait for the iteration's end
    expected = goodput_of_interval(whole, pause_s=10, mtbf_s=lives.mtbf_s, restart_s=100)
    assert measured == pytest.approx(expected, abs=0.01)


def test_availability_of_a_device_is_mtbf_over_mtbf_and_mttr(world):
    plan = random_plan(world.fleet, 5, span_s=2e6, mtbf_s=2000, mttr_s=500)
    down = downtime_ns(plan, world.fleet, round(2e6 * S))
    up = 1 - np.asarray(list(down.values())) / (2e6 * S)
    error = 0.8 * sqrt(2) * 0.2 / sqrt(2e6 / 2500)  # of the ratio of means of two exponentials
    assert up == pytest.approx(availability(2000, 500), abs=4 * error)


def test_stalled_training_of_one_device_is_available_that_part_of_the_time(world):
    """With three devices that fail at different times, goodput is the availability of all three together."""
    lives = study(world, times=FREE, mtbf_s=60_000, mttr_s=600, days=15, seeds=1, policy="stall").trajectories()
    expected = 1 / (1 + 3 * 600 / 60_000)
    assert lives[0].goodput == pytest.approx(expected, abs=0.01)


def test_goodput_grows_with_the_time_between_failures(world):
    goodputs = [
        np.mean(
            [s.goodput for s in study(world, times=TIMES, mtbf_s=mtbf_s, mttr_s=60, days=3, seeds=2).trajectories()]
        )
        for mtbf_s in (3000, 9000, 27_000, 81_000, 243_000)
    ]
    assert goodputs == sorted(goodputs)
    assert goodputs[-1] - goodputs[0] > 0.1


def test_the_slowest_of_many_copies_is_an_order_statistic():
    """Against the maximum of 1,000 normal draws, whose mean lies 3.24 standard deviations up."""
    rng = np.random.default_rng(0)
    spread = IterationTimes.of(np.rint(rng.normal(1e9, 1e7, 4000)).astype(np.int64))
    slowest = spread.slowest(rng.random(20_000), 1000)
    assert slowest.mean() == pytest.approx(1e9 + 3.2414 * 1e7, abs=0.4 * 1e7)  # the largest of the samples scatter
    one = spread.slowest(rng.random(20_000), 1)
    assert one.mean() == pytest.approx(1e9, rel=1e-3)
    assert one.std() == pytest.approx(1e7, rel=0.03)


def test_few_samples_still_tell_the_slowest_of_many():
    """Beyond the largest of 64 samples the tail of a normal goes on: 1,000 copies are not as fast as 64."""
    spread = IterationTimes.of(np.rint(np.random.default_rng(1).normal(1e9, 1e7, 64)).astype(np.int64))
    slowest = spread.slowest(np.random.default_rng(2).random(20_000), 1000)
    assert slowest.mean() == pytest.approx(1e9 + 3.24 * 1e7, rel=0.01)


def test_equal_samples_are_drawn_exactly():
    spread = IterationTimes.of(np.full(3, 123_456_789, dtype=np.int64))
    assert set(spread.slowest(np.random.default_rng(0).random(50), 1024).tolist()) == {123_456_789.0}


def test_more_copies_are_slower_with_jitter_and_equally_fast_without():
    jitter = "jitter: {distribution: lognormal, mean: 1, std: 0.1}"
    noisy = [World(copies=copies, more=jitter, samples=48) for copies in (1, 16, 256)]
    kept = [each.train("stall", [], horizon_ns=2000 * S, times=FREE).iterations for each in noisy]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > 1.02 * kept[2]
    steady = [World(copies=copies).train("stall", [], horizon_ns=2000 * S, times=FREE) for copies in (4, 4096)]
    assert steady[0].spent_ns[TimeUse.PRODUCTIVE] == steady[1].spent_ns[TimeUse.PRODUCTIVE] == 2000 * S


def test_nothing_stops_and_young_asks_for_no_checkpoints(world):
    recovery = world.setup.spec.failure.recovery
    young = recovery.model_copy(
        update={
            "checkpoint": recovery.checkpoint.model_copy(update={"interval": "young", "pause": 1.0}),
            "state": 10**9,
        }
    )
    prepared = prepare(world.setup, young, days=1, seeds=1)
    assert prepared.mtbf_s == inf
    assert prepared.times.interval_ns is None
    assert prepared.trajectories()[0].goodput == 1.0


def test_each_way_of_counting_takes_its_own_slowest_copy():
    """One group is slow (5 instead of 3), one has other work (4), one copy is missing: as planned, all take 2."""
    times = {ns: IterationTimes.of(np.full(2, ns, dtype=np.int64)) for ns in (2, 3, 4, 5)}
    groups = ((times[5], times[3]), (times[4], times[4]))
    for order in (groups, groups[::-1]):
        drawn = FleetTimes(counts=(1, 2, 1), groups=order, planned=times[2]).draw(3, np.random.default_rng(0))
        assert [each.tolist() for each in (drawn.actual, drawn.unslowed, drawn.planned)] == [[5] * 3, [4] * 3, [2] * 3]
    gone = FleetTimes(counts=(2,), groups=(), planned=times[2]).draw(1, np.random.default_rng(0))
    assert [each.tolist() for each in (gone.actual, gone.unslowed, gone.planned)] == [[0], [0], [2]]
    mixed = IterationTimes.of(np.asarray([1, 3], dtype=np.int64))
    varied = FleetTimes(counts=(1, 1), groups=((mixed, mixed),), planned=mixed).draw(50, np.random.default_rng(0))
    assert (varied.unslowed == varied.actual).all()
    assert (varied.planned > varied.actual).any()  # the missing copy would sometimes have been the slowest
