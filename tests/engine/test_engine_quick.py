"""The short way and the events give the same trace, and the short way knows when it must not be taken."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from engine_programs import one_f_one_b

from hops.compiled import available
from hops.cost.base import StepCosts
from hops.cost.jittered import Jittered
from hops.cost.table import TableCosts
from hops.distributions import Exponential, LogNormal
from hops.engine.quick import follow, quick_rows
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import UsageError
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.program.wiring import wire
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import COLUMNS

STATIC = [
    name
    for name in SCHEDULERS.names()
    if issubclass(SCHEDULERS.get(name), StaticScheduler) and name not in {"program", "dualpipe_v"}
]


def network_of(ranks, *, latency_s, bandwidth, shared, jitter):
    """Either a link per pair of ranks, or one link for all."""
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    links = (
        [Link(name="bus", bandwidth=bandwidth)] if shared else [Link(name=f"{p}", bandwidth=bandwidth) for p in pairs]
    )
    noise = Exponential(mean=1e-4) if jitter else None
    stall = RareDelay(probability=0.1, extra=Exponential(mean=1e-3)) if jitter else None
    return Network(
        links=tuple(links),
        routes={
            pair: Route(links=(0 if shared else index,), latency_s=latency_s, jitter=noise, stall=stall)
            for index, pair in enumerate(pairs)
        },
    )


@st.composite
def runs(draw):
    """A built-in schedule, costs with everything that an iteration ends with, a network, and settings."""
    ranks, rounds = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    scheduler = SCHEDULERS.get(draw(st.sampled_from(STATIC)))()
    try:
        shape = scheduler.shape(ranks, ranks * rounds)
    except UsageError:
        scheduler = SCHEDULERS.get("1f1b")()
        shape = scheduler.shape(ranks, ranks * rounds)
    scheduler.configure(StageCosts.uniform(shape))
    times = st.lists(st.integers(0, 5), min_size=shape.num_stages, max_size=shape.num_stages)
    forward, inputs, weights = (tuple(each / 1e3 for each in draw(times)) for _ in range(3))
    steps = StepCosts(
        tied_reduce_s=draw(st.sampled_from([0.0, 2e-3])),
        grad_reduce_s=draw(st.sampled_from([(), tuple(1e-3 * rank for rank in range(ranks))])),
        optimizer_s=draw(st.sampled_from([(), tuple(2e-3 / (1 + rank) for rank in range(ranks))])),
        host_s=draw(st.sampled_from([0.0, 1e-3])),
        synchronized=draw(st.booleans()),
    )
    costs = TableCosts.of(
        forward_s=forward, input_backward_s=inputs, weight_backward_s=weights,
        bytes_per_message=draw(st.sampled_from([0, 1000])), step_costs=steps,
    )  # fmt: skip
    if draw(st.booleans()):
        costs = Jittered(inner=costs, factors=LogNormal(mean=1.0, std=0.3))
    network = network_of(
        ranks,
        latency_s=draw(st.sampled_from([0.0, 3e-4])),
        bandwidth=draw(st.sampled_from([float("inf"), 1e6, 7e5])),
        shared=draw(st.booleans()),
        jitter=draw(st.booleans()),
    )
    return scheduler.program, costs, network, draw(st.integers(1, 3))


@given(run=runs())
@settings(deadline=None, max_examples=80)
def test_the_short_way_and_the_events_give_the_same_trace(run):
    program, costs, network, iterations = run
    events = run_program(program, costs, network, RunSettings(iterations=iterations, by_events=True))
    quick = run_program(program, costs, network, RunSettings(iterations=iterations))
    for name in COLUMNS:
        assert np.array_equal(getattr(events, name), getattr(quick, name)), name
    assert events.meta == quick.meta


def rows(network, *, program=None, bytes_per_message=1000):
    program = program or one_f_one_b(3, 4)
    costs = TableCosts.uniform(3, f=1e-3, i=1e-3, w=1e-3, bytes_per_message=bytes_per_message)
    return quick_rows(program, wire(program.shape), costs, network, RunSettings())


def test_it_is_taken_where_no_link_is_shared():
    assert rows(network_of(3, latency_s=1e-4, bandwidth=1e9, shared=False, jitter=True)) is not None
    assert (
        rows(network_of(3, latency_s=1e-4, bandwidth=1e9, shared=True, jitter=False), bytes_per_message=0) is not None
    )


def test_it_is_not_taken_where_messages_meet_on_a_link():
    assert rows(network_of(3, latency_s=1e-4, bandwidth=1e6, shared=True, jitter=False)) is None


@pytest.mark.skipif(not available(), reason="needs the extra `fast` (numba)")
def test_compiled_and_plain_form_agree(monkeypatch):
    network = network_of(3, latency_s=1e-4, bandwidth=1e9, shared=False, jitter=True)
    plain = rows(network)
    monkeypatch.setattr("hops.engine.quick.COMPILED_FROM", 0)
    compiled = rows(network)
    assert follow.is_compiled
    assert plain._starts == compiled._starts
    assert plain._codes == compiled._codes
