"""Known slow devices and links are put into runs and found again: which, since when, by how much, at what cost."""

from dataclasses import replace

import numpy as np
import pytest
from goodput_fleets import link, slow

from hops.build.prepared import PreparedRun
from hops.build.setup import build
from hops.diagnose import stragglers
from hops.diagnose.replay import replayed_ns
from hops.diagnose.series import levels
from hops.errors import UsageError
from hops.faults.plan import FaultPlan
from hops.spec.load import loads
from hops.trace.trace import TraceMeta


def find_stragglers(trace, **options):
    return stragglers.find_stragglers(trace, **options).stragglers


SPEC = """
simulation: {{iterations: {iterations}}}
pipeline:
  schedule: {schedule}
  stage_times: {{forward: {forward}, backward: 20 ms, message: 8 MiB}}
  microbatches: 8
  jitter: {{distribution: lognormal, mean: 1, std: {noise}}}
hardware:
  nodes: [{{count: 5, devices: [l4]}}]
  interconnect: ethernet-25
"""


def run(*faults, schedule="1f1b", iterations=24, noise=0.03, forward="10 ms"):
    """The trace of a run with these faults."""
    text = SPEC.format(schedule=schedule, iterations=iterations, noise=noise, forward=forward)
    pipeline = PreparedRun.of(build(loads(text)))
    settings = pipeline._settings(iterations, 7, FaultPlan.of(faults))
    return pipeline._run(settings)


@pytest.mark.parametrize(("schedule", "factor"), [("1f1b", 1.1), ("gpipe", 1.25), ("zb_h1", 2.0)])
def test_a_device_that_gets_slow_is_found_with_onset_and_factor(schedule, factor):
    trace = run(slow("node2/0", 4, 1e6, factor), schedule=schedule)
    (found,) = find_stragglers(trace)
    assert (found.what, found.names, found.ranks) == ("device", ("l4 node2/0",), (2,))
    assert found.against == "itself"
    assert found.since_ms == pytest.approx(4000, abs=120)
    assert found.until_ms is None
    assert found.factor == pytest.approx(factor, rel=0.02)
    assert found.slow_ms / found.usual_ms == pytest.approx(factor, rel=0.03)
    assert found.score > 8


def test_a_device_that_was_slow_for_a_time_is_found_with_its_end():
    (found,) = find_stragglers(run(slow("node1/0", 3, 6, 1.3)))
    assert found.names == ("l4 node1/0",)
    assert (found.since_ms, found.until_ms) == pytest.approx((3000, 6000), abs=120)
    assert found.factor == pytest.approx(1.3, rel=0.02)


def test_two_devices_are_two_stragglers_the_dearer_first():
    found = find_stragglers(run(slow("node1/0", 3, 1e6, 1.1), slow("node3/0", 5, 1e6, 1.6)))
    assert [each.ranks for each in found] == [(3,), (1,)]
    assert found[0].cost_ms > found[1].cost_ms


def test_a_sound_run_has_no_straggler():
    for seed in range(3):
        assert find_stragglers(run(noise=0.02 + 0.04 * seed)) == ()


def test_what_slows_everybody_is_nobodys_fault():
    assert find_stragglers(run(*(slow(f"node{node}/0", 4, 1e6, 1.5) for node in range(5)))) == ()


def test_a_device_slow_from_the_start_is_found_among_its_peers():
    trace = run(slow("node2/0", 0, 1e6, 1.2), noise=0.01)
    (found,) = find_stragglers(trace)
    assert (found.ranks, found.against, found.since_ms) == ((2,), "peers", None)
    assert found.factor == pytest.approx(1.2, rel=0.02)


def test_a_stage_with_more_work_is_no_straggler_once_the_work_is_known():
    forward = "[10 ms, 10 ms, 14 ms, 10 ms, 10 ms]"
    trace = run(noise=0.01, forward=forward)
    assert [each.ranks for each in find_stragglers(trace)] == [(2,)]
    expected = build(loads(SPEC.format(schedule="1f1b", iterations=1, noise=0.01, forward=forward))).expected
    assert find_stragglers(trace, expected=expected) == ()
    slowed = run(slow("node0/0", 0, 1e6, 1.2), noise=0.01, forward=forward)
    assert [each.ranks for each in find_stragglers(slowed, expected=expected)] == [(0,)]


def test_a_slow_link_is_named_by_the_ways_that_cross_it():
    """Everything into node2 gets slow, and nothing else."""
    (found, *others) = find_stragglers(run(link("node2.nic.in", 3, 1e6, 0.25)))
    assert found.what == "link"
    assert found.names == ("node2.nic.in",)
    assert found.ranks == (1, 2, 3)
    assert found.since_ms == pytest.approx(3000, abs=200)
    assert found.factor == pytest.approx(4.0, rel=0.05)
    assert all(other.what == "link" and other.factor < 2 for other in others)  # they share its messages' links


def test_the_cost_is_what_the_run_without_it_is_faster():
    trace, without = run(slow("node2/0", 2, 1e6, 1.5), noise=0.01), run(noise=0.01)
    (found,) = find_stragglers(trace)
    ends = [int(each.end_ns.max()) / 1e6 for each in (trace, without)]
    assert found.cost_ms * found.iterations == pytest.approx(ends[0] - ends[1], rel=0.05)
    assert found.cost_share == pytest.approx((ends[0] - ends[1]) / (ends[0] - 2000), rel=0.08)


def test_a_replay_of_recorded_times_is_the_recorded_iteration():
    """To one percent: messages take their median, and share no links."""
    trace = run(schedule="zb_h1", iterations=3)
    ends = [int(trace.end_ns[trace.iteration == number].max()) for number in range(3)]
    lengths = np.diff(ends, prepend=0)
    replayed = [replayed_ns(trace, number, trace.duration_ns) for number in range(3)]
    assert replayed == pytest.approx(lengths.tolist(), rel=0.01)


def test_a_trace_without_routes_names_the_way():
    trace = run(link("node2.nic.in", 3, 1e6, 0.25))
    meta = trace.meta
    bare = replace(
        trace,
        meta=TraceMeta(
            source="measured",
            num_microbatches=meta.num_microbatches,
            rank_of_stage=meta.rank_of_stage,
            devices=meta.devices,
            hosts=meta.hosts,
            routes={},
        ),
    )
    names = {each.names for each in find_stragglers(bare)}
    assert ("l4 node1/0 to l4 node2/0",) in names


def test_rows_that_are_missing_leave_the_cost_unknown():
    trace = run(slow("node2/0", 4, 1e6, 1.5))
    holed = trace.where(~((trace.stage == 3) & (trace.microbatch == 2)))
    (found, *_) = find_stragglers(holed)
    assert found.ranks == (2,)
    assert found.cost_ms is None


def test_levels_of_pure_noise_are_one():
    for seed in range(20):
        assert len(levels(np.random.default_rng(seed).normal(0, 0.05, 1000), least=0.03)) == 1


def test_levels_find_a_step_to_the_value():
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.01, 600)
    values[237:] += 0.2
    values[::50] += 3  # stalls
    first, second = levels(values, least=0.03)
    assert abs(first.last - 237) <= 1
    assert second.mean - first.mean == pytest.approx(0.2, abs=0.005)


def test_short_series_have_one_level():
    assert [(each.first, each.last) for each in levels(np.zeros(7), least=0.1)] == [(0, 7)]


def test_a_factor_of_one_is_refused():
    with pytest.raises(UsageError, match="--least: got 1, expected a factor of more than 1"):
        find_stragglers(run(iterations=1), least=1.0)
