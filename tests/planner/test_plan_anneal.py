"""The moves and both searches: proper layouts, exact values, the same again for the same seed."""

from dataclasses import replace

import numpy as np
import pytest
from plan_cases import opened, problem_of

from hops.compiled import available
from hops.planner.anneal import annealed
from hops.planner.layout import Freedom, LayerRule, Layout
from hops.planner.layout_bound import expected_s, layout_bound
from hops.planner.layout_problem import layers_by_rule
from hops.planner.local_search import ADD, DROP, RELOCATE, SWAP, LayoutArrays, local_search, moves_of, propose
from hops.planner.problem import ScheduleFamily

MIXED = """\
simulation: {iterations: 1}
pipeline: {model: {layers: 12, hidden: 1024, heads: 16, vocab: 32000}, sequence_length: 1024, microbatches: 12}
hardware:
  nodes:
    - {name: a, devices: [h100, h100]}
    - {name: b, devices: [a100, {type: l4, memory: 3 GiB}]}
    - {name: c, devices: [l4, a10g]}
  interconnect: ethernet-100
"""
START = Layout(devices=(4, 3, 2, 1), layers=(3, 3, 3, 3))
ALL = moves_of(Freedom())


@pytest.fixture(scope="module")
def problem():
    return problem_of(opened(MIXED).base, ScheduleFamily.ONE_F_ONE_B)


def search(problem, start=START, *, by_price=False, steps=800, seed=1, **freedom):
    free = replace(problem, freedom=Freedom(**freedom))
    return annealed(free, start, by_price=by_price, steps=steps, heat=0.01, seed=seed)


def neighbours(layout, devices, move, chunks=1):
    """What a move makes of a layout on so many devices, two hundred times."""
    rng = np.random.default_rng(3)
    here, out = (LayoutArrays.of(layout, devices, chunks) for _ in range(2))
    return [out.layout for _ in range(200) if propose(move, here, rng.random(4), out)]


def test_every_move_keeps_the_layers_and_uses_no_device_twice():
    here = Layout(devices=(4, 0, 5, 2), layers=(1, 4, 2, 5))
    sizes = set()
    for move in ALL:
        reached = neighbours(here, 7, move)
        for layout in reached:
            assert sum(layout.layers) == 12
            assert min(layout.layers) >= 1
            assert len(set(layout.devices)) == len(layout.devices) == len(layout.layers)
        sizes |= {len(layout.layers) for layout in reached}
        assert len(set(reached)) > 1
    assert sizes == {3, 4, 5}


def test_with_two_chunks_layers_move_between_stages_and_devices_between_ranks():
    here = Layout(devices=(4, 0, 5), layers=(1, 4, 2, 5, 3, 3))
    moves = moves_of(Freedom(chunks=2))
    assert not {SWAP, RELOCATE, DROP, ADD} & set(moves)
    reached = {layout for move in moves for layout in neighbours(here, 6, move, chunks=2)}
    assert {len(layout.layers) for layout in reached} == {6}
    assert {sum(layout.layers) for layout in reached} == {18}
    assert {len(set(layout.devices)) for layout in reached} == {3}
    changed = {place for layout in reached for place in range(6) if layout.layers[place] != here.layers[place]}
    assert changed == set(range(6))


def test_moves_that_need_a_spare_device_are_refused_without_one():
    here = Layout(devices=(0, 1), layers=(2, 2))
    for move in moves_of(Freedom(layers=False)):
        assert {layout.devices for layout in neighbours(here, 2, move)} <= {(1, 0)}


class TestLocalSearch:
    def test_it_minimises_what_the_judge_says(self, problem):
        """A judge that likes device 5 and few ranks gets it alone."""
        found = local_search(
            problem,
            lambda layout, _: len(layout.devices) + (5 not in layout.devices),
            START,
            steps=400,
            seed=1,
        )
        assert found == Layout(devices=(5,), layers=(12,))

    def test_the_same_seed_gives_the_same_layout(self, problem):
        def floor(layout, _):
            return layout_bound(problem, layout)

        first, second = (local_search(problem, floor, START, steps=300, seed=4, heat=0.01) for _ in range(2))
        assert first == second
        assert layout_bound(problem, first) < layout_bound(problem, START)

    def test_a_judge_may_refuse_by_the_limit_that_it_is_given(self, problem):
        """The limit is the value so far where nothing worse is taken, so that refusing above it changes nothing."""

        def refusing(layout, limit):
            value = layout_bound(problem, layout)
            return np.inf if value > limit else value

        plain = local_search(problem, lambda layout, _: layout_bound(problem, layout), START, steps=200, seed=5)
        assert local_search(problem, refusing, START, steps=200, seed=5) == plain

    @pytest.mark.parametrize("rule", LayerRule)
    def test_layers_follow_from_the_devices_where_the_spec_says_how(self, problem, rule):
        free = replace(problem, freedom=Freedom(layers=False, rule=rule))
        start = Layout(devices=START.devices, layers=layers_by_rule(free, START.devices))
        found = local_search(free, lambda layout, _: layout_bound(free, layout), start, steps=200, seed=1)
        assert found.devices != start.devices
        assert found.layers == layers_by_rule(free, found.devices)


@pytest.mark.skipif(not available(), reason="needs numba")
class TestAnneal:
    def test_what_it_calls_best_is_best_by_the_exact_times(self, problem):
        """Improvements come best first, each fits, and the first is better than the start."""
        found = [expected_s(problem, layout) for layout in search(problem)]
        assert found == sorted(found)
        assert np.isfinite(found).all()
        assert found[0] < expected_s(problem, START)

    def test_it_is_as_good_as_the_search_that_any_judge_can_steer(self, problem):
        slow = local_search(
            problem, lambda layout, _: expected_s(problem, layout), START, steps=3000, seed=1, heat=0.01
        )
        assert expected_s(problem, search(problem, steps=20_000)[0]) <= expected_s(problem, slow) * (1 + 1e-9)

    def test_the_same_seed_gives_the_same_layouts(self, problem):
        assert search(problem) == search(problem)
        assert search(problem) != search(problem, seed=2)

    def test_what_may_not_change_does_not(self, problem):
        (best, *_) = search(problem, devices=False)
        assert best.devices == START.devices
        assert best.layers != START.layers
        (best, *_) = search(problem, layers=False)
        assert best.layers == START.layers
        assert best.devices != START.devices

    def test_prices_make_it_prefer_cheap_devices(self):
        """Where one device costs nothing to speak of, it is used alone."""
        cheap = MIXED.replace("[l4, a10g]", "[{type: l4, price_per_hour: 0.001}, a10g]")
        problem = problem_of(opened(cheap).base, ScheduleFamily.ONE_F_ONE_B)
        assert search(problem, by_price=True, steps=3000)[0].devices == (4,)
