"""Laws that hold for every trace the engine makes: any schedule, any way of sending, ranks in step or on their own."""

from dataclasses import fields

import pytest

from hops.cost.base import StepCosts
from hops.cost.table import TableCosts
from hops.engine.settings import P2P, RunSettings
from hops.engine.simulate import run_policy
from hops.hardware.network import Link, Network, Route
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.model.memory import StageMemory
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts

RANKS, MICROBATCHES = 4, 8
SENDING = {"1f1b": [P2P.OVERLAPPED, P2P.BLOCKING_FUSED], "gpipe": list(P2P)}
CASES = [
    (name, p2p, synchronized)
    for name in SCHEDULERS.names()
    if name != "program"  # it needs a file
    for p2p in SENDING.get(name, [P2P.OVERLAPPED])
    for synchronized in (True, False)
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1].value}-{case[2]}")
def summary(request):
    """A pipeline of uneven stages on slow links that neighbours share, three iterations, one of them warm-up."""
    name, p2p, synchronized = request.param
    scheduler = SCHEDULERS.get(name)()
    shape = scheduler.shape(RANKS, MICROBATCHES)
    times = tuple(0.010 + 0.004 * (stage % 3) for stage in range(shape.num_stages))
    costs = TableCosts.of(
        forward_s=times,
        input_backward_s=times,
        weight_backward_s=times,
        bytes_per_message=1_000_000,
        step_costs=StepCosts(
            tied_reduce_s=0.02,
            grad_reduce_s=(0.01, 0.02, 0.03, 0.01),
            optimizer_s=(0.004, 0.002, 0.001, 0.006),
            host_s=0.003,
            synchronized=synchronized,
        ),
    )
    pairs = [(a, b) for a in range(RANKS) for b in range(RANKS) if a != b]
    network = Network(
        links=(Link(name="left", bandwidth=4e8), Link(name="right", bandwidth=4e8)),
        routes={(a, b): Route(links=(int(min(a, b) > 1),), latency_s=0.0002) for a, b in pairs},
    )
    trace = run_policy(
        scheduler.placed(StageCosts.uniform(shape)), costs, network, RunSettings(iterations=3, p2p=p2p, schedule=name)
    )
    memory = (StageMemory(weights_bytes=10, activation_bytes=4, kept_for_weight_bytes=1),) * shape.num_stages
    return summarize(trace, RunFacts(warmup_iterations=1, stage_memory=memory))


def values(record):
    return [getattr(record, field.name) for field in fields(record)]


def test_causes_sum_to_the_bubble(summary):
    for window in (summary.bubble.pipeline, summary.bubble.iteration):
        assert sum(values(window.by_cause)) == pytest.approx(window.fraction, abs=1e-12)
        assert min(values(window.by_cause)) >= 0


def test_busy_and_idle_of_every_rank_fill_the_iteration(summary):
    for rank in summary.ranks:
        assert rank.busy_ms + sum(values(rank.idle_ms)) == pytest.approx(summary.iteration_time.mean_ms)


def test_phases_fill_the_iteration(summary):
    assert sum(values(summary.phases)) == pytest.approx(summary.iteration_time.mean_ms)
    assert min(values(summary.phases)) >= 0


def test_links_carry_no_more_than_they_can(summary):
    for link in summary.links:
        assert 0 < link.utilization <= link.busy_share <= 1
        assert link.contention_ms <= link.busy_share * summary.iteration_time.mean_ms


def test_exposed_communication_is_part_of_idle_time(summary):
    for rank in summary.ranks:
        assert 0 <= rank.exposed_ms <= sum(values(rank.idle_ms)) + 1e-9


def test_memory_peaks_within_what_is_in_flight(summary):
    for rank in summary.ranks:
        held = rank.memory.activations_bytes
        assert rank.in_flight_peak <= held <= 4 * rank.in_flight_peak
