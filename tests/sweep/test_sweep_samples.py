"""Samples: the spread of many seeds, with intervals that hold as often as they say."""

import numpy as np
import pytest
from sweep_cases import SPEC

import hops
from hops.build.run import simulate, summarize
from hops.errors import UsageError
from hops.sweep.samples import mean_of, paired_difference, probability, quantile_of, sample

NOISY = hops.from_dict(SPEC)


def test_samples_are_runs_of_seeds_that_follow_each_other():
    found = sample(NOISY, 5, jobs=1)
    times = [summarize(simulate(NOISY.with_({"simulation.seed": seed}))).iteration_time.mean_ms for seed in range(5)]
    assert list(found.iteration_ms) == times
    assert found.count == found.asked == 5
    assert found.iteration_time.mean.value == pytest.approx(np.mean(times))
    assert found.iteration_time.p50.value == np.median(times)
    assert (found.out_of_memory.value, found.failed.value) == (0.0, 0.0)


def test_any_number_of_processes_gives_the_same_samples():
    assert sample(NOISY, 40, jobs=1) == sample(NOISY, 40, jobs=2)


def test_a_spec_without_chance_is_run_once():
    still = hops.from_dict({**SPEC, "pipeline": {k: v for k, v in SPEC["pipeline"].items() if k != "jitter"}})
    found = sample(still, 100, jobs=1)
    assert (found.steady, found.count, found.asked) == (True, 1, 100)
    assert found.iteration_time.p5.value == found.iteration_time.p95.value


def test_it_stops_when_the_precision_is_reached():
    found = sample(NOISY, 2000, precision=0.01, jobs=1)
    assert found.count < 2000
    assert found.count % 32 == 0
    mean = found.iteration_time.mean
    assert (mean.high - mean.low) / 2 <= 0.01 * mean.value


def test_a_deadline_is_missed_as_often_as_samples_are_later():
    times = np.array(sample(NOISY, 64, jobs=1).iteration_ms)
    deadline = float(np.median(times))
    found = sample(NOISY, 64, deadline_ms=deadline, jobs=1)
    assert found.missed.value == (times > deadline).mean()
    assert found.missed.low < 0.5 < found.missed.high


def test_what_does_not_fit_counts_as_out_of_memory_and_misses_the_deadline():
    small = NOISY.with_({"pipeline.stage_times.weights": "30 GiB"})
    found = sample(small, 4, deadline_ms=1e9, jobs=1)
    assert (found.out_of_memory.value, found.missed.value, found.iteration_time) == (1.0, 1.0, None)
    assert list(found.reasons.values()) == [4]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"count": 1}, "--samples: got 1, expected at least 2"),
        ({"count": 2, "deadline_ms": 0.0}, "--deadline: got 0 ms, expected a time above 0"),
        ({"count": 2, "precision": 1.5}, "--precision: got 1.5, expected a part of the mean between 0 and 1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(numbers, message):
    with pytest.raises(UsageError, match=message):
        sample(NOISY, **numbers)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = {"mean": 0, "p95": 0, "share": 0}
    for _ in range(400):
        values = rng.exponential(1.0, 200)
        mean, p95, share = mean_of(values), quantile_of(values, 0.95), probability(int((values > 2).sum()), 200)
        hits["mean"] += mean.low <= 1 <= mean.high
        hits["p95"] += p95.low <= -np.log(0.05) <= p95.high
        hits["share"] += share.low <= np.exp(-2) <= share.high
    assert all(0.92 <= each / 400 <= 0.99 for each in hits.values()), hits


def test_a_probability_of_nothing_seen_is_not_surely_nothing():
    never, always = probability(0, 50), probability(50, 50)
    assert (never.value, never.low) == (0.0, 0.0)
    assert 0.05 < never.high < 0.08
    assert (always.low, always.high) == (1 - never.high, 1.0)


def test_the_same_draws_make_differences_surer_than_their_parts():
    one = sample(NOISY.with_({"pipeline.schedule": "1f1b"}), 64, jobs=1)
    other = sample(NOISY.with_({"pipeline.schedule": "zb_h1"}), 64, jobs=1)
    paired = paired_difference(one.by_seed, other.by_seed)
    assert paired.value == pytest.approx(other.iteration_time.mean.value - one.iteration_time.mean.value)
    apart = other.iteration_time.mean.high - other.iteration_time.mean.low
    assert paired.high - paired.low < apart
    assert paired_difference({1: 2.0}, {2: 1.0}) is None
