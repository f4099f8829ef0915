"""The exact least bottleneck: equal to trying everything, and as it must change with the devices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_cases import least_by_trying, slowest

from hops.planner import bottleneck as reach
from hops.planner.block_costs import BlockCosts
from hops.planner.bottleneck import Problem, least_bottleneck, most_layers


@st.composite
def problems(draw):
    """Up to four devices of up to three kinds, up to five layers that differ, memory by position from the end."""
    kinds = draw(st.integers(1, 3))
    counts = draw(st.lists(st.integers(1, 2), min_size=kinds, max_size=kinds))
    layers = draw(st.integers(1, 5))
    times = st.lists(st.floats(0.5, 8.0), min_size=layers, max_size=layers)
    sizes = st.lists(st.integers(1, 6), min_size=layers, max_size=layers)
    forward = np.array([draw(times) for _ in range(kinds)])
    tables = BlockCosts.by_layer(forward, 2 * forward, static=draw(sizes), activation=draw(sizes))
    flight = np.minimum(np.arange(1, sum(counts) + 1), draw(st.integers(1, 4)))
    memory = np.array(draw(st.lists(st.integers(4, 60), min_size=kinds, max_size=kinds)))
    needed = tables.static[None] + flight[:, None, None] * tables.activation[None]
    return Problem(seconds=tables.whole, needed=needed, memory=memory, counts=np.array(counts))


@settings(deadline=None, max_examples=60)
@given(problems())
def test_the_least_bottleneck_is_that_of_all_placements_and_partitions(problem):
    """Dynamic programming over counts and brute force agree; the layout that comes with it has that bottleneck."""
    found, tried = least_bottleneck(problem), least_by_trying(problem)
    if found is None:
        assert tried == np.inf
        assert most_layers(problem) < problem.num_layers
    else:
        assert found.exact
        assert found.seconds == pytest.approx(tried, rel=1e-12)
        assert slowest(problem, found.layout.kinds, found.layout.layers) == pytest.approx(found.seconds, rel=1e-12)
        assert sum(found.layout.layers) == problem.num_layers


@settings(deadline=None, max_examples=30)
@given(problems(), st.data())
def test_another_device_never_makes_the_bottleneck_longer(problem, data):
    kind = data.draw(st.integers(0, len(problem.counts) - 1))
    counts = problem.counts.copy()
    counts[kind] += 1
    flight_of_more = np.concatenate([problem.needed, problem.needed[-1:]])
    more = Problem(seconds=problem.seconds, needed=flight_of_more, memory=problem.memory, counts=counts)
    before, after = least_bottleneck(problem), least_bottleneck(more)
    if before is not None:
        assert after is not None
        assert after.seconds <= before.seconds


@settings(deadline=None, max_examples=30)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_kinds_does_not_matter(problem, random):
    order = list(range(len(problem.counts)))
    random.shuffle(order)
    other = Problem(
        seconds=problem.seconds[order],
        needed=problem.needed,
        memory=problem.memory[order],
        counts=problem.counts[order],
    )
    first, second = least_bottleneck(problem), least_bottleneck(other)
    assert (first is None) == (second is None)
    if first is not None:
        assert first.seconds == second.seconds


def test_too_many_kinds_are_cut_and_it_is_said(monkeypatch):
    """Ten kinds of eight devices have more counts than can be listed: the answer is that of fewer devices."""
    tables = BlockCosts.by_layer(np.linspace(1, 2, 10)[:, None] * np.ones((10, 40)), np.ones((10, 40)))
    needed = np.zeros((1, 41, 41), dtype=np.int64)
    problem = Problem(seconds=tables.whole, needed=needed, memory=np.ones(10, dtype=np.int64), counts=np.full(10, 8))
    monkeypatch.setattr(reach, "MOST_STATES", 20_000)
    found = least_bottleneck(problem)
    assert found is not None
    assert not found.exact
    assert sum(found.layout.layers) == 40
