"""The compiled search: its values are those of the floors, it makes proper layouts, repeats, and gets somewhere."""

import numpy as np
import pytest
from plan_cases import opened

from hops.compiled import available
from hops.planner import anneal as compiled
from hops.planner.anneal import annealed
from hops.planner.block_costs import MessageTimes, build_tables
from hops.planner.layout_bound import Layout, LayoutBound
from hops.planner.local_search import Freedom, improve
from hops.planner.problem import Pool, ScheduleFamily

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
ALL = Freedom().compiled_moves


@pytest.fixture(scope="module")
def floor():
    spec = opened(MIXED).base
    pool = Pool.of(spec)
    tables = build_tables(spec, pool)
    ways = MessageTimes.of(pool, tables.message_bytes)
    return LayoutBound(spec=spec, pool=pool, tables=tables, ways=ways, family=ScheduleFamily.ONE_F_ONE_B, size=12)


def search(floor, start=START, *, moves=ALL, prices=None, steps=800, seed=1):
    return annealed(floor, start, moves=moves, prices=prices, steps=steps, heat=0.01, seed=seed)


def test_every_move_keeps_the_layers_and_uses_no_device_twice():
    rng = np.random.default_rng(3)
    device, layers = np.array([4, 0, 5, 2, 0, 0]), np.array([1, 4, 2, 5, 0, 0])
    free = np.array([1, 3, 6])
    sizes = set()
    for move in ALL:
        reached = set()
        for _ in range(200):
            to_device, to_layers = np.zeros(7, dtype=np.int64), np.zeros(7, dtype=np.int64)
            size = compiled.propose(move, rng.random(4), device, layers, 4, free, 3, to_device, to_layers)
            if size == 0:
                continue
            assert sum(to_layers[:size]) == 12
            assert min(to_layers[:size]) >= 1
            assert len(set(to_device[:size].tolist())) == size
            sizes.add(size)
            reached.add((tuple(to_device[:size]), tuple(to_layers[:size])))
        assert len(reached) > 1
    assert sizes == {3, 4, 5}


@pytest.mark.skipif(not available(), reason="needs numba")
class TestSearch:
    def test_what_it_calls_best_is_best_by_the_exact_times(self, floor):
        """Improvements come best first, each fits, and the first is better than the start."""
        found = [floor.exact(layout) for layout in search(floor)]
        assert found == sorted(found)
        assert np.isfinite(found).all()
        assert found[0] < floor.exact(START)

    def test_it_is_as_good_as_the_search_in_python(self, floor):
        pool = floor.pool
        slow = improve(START, floor.exact, pool, Freedom(), evaluations=3000, seed=1, heat=0.01)
        assert floor.exact(search(floor, steps=20_000)[0]) <= slow.value * (1 + 1e-9)

    def test_the_same_seed_gives_the_same_layouts(self, floor):
        assert search(floor) == search(floor)
        assert search(floor) != search(floor, seed=2)

    def test_what_may_not_change_does_not(self, floor):
        (best, *_) = search(floor, moves=Freedom(devices=False).compiled_moves)
        assert best.devices == START.devices
        assert best.layers != START.layers
        (best, *_) = search(floor, moves=Freedom(layers=False).compiled_moves)
        assert best.layers == START.layers
        assert best.devices != START.devices

    def test_prices_make_it_prefer_cheap_devices(self, floor):
        """Where one device costs nothing to speak of, it is used alone."""
        prices = np.array([9.0, 9.0, 1e-3, 9.0, 9.0, 9.0])
        assert search(floor, prices=prices, steps=3000)[0].devices == (2,)


def test_it_is_not_used_where_it_knows_too_little():
    """Chunks, and layers that follow from a rule, are left to the search in Python."""
    assert Freedom(chunks=2).compiled_moves == ()
    assert Freedom(rule=lambda devices: devices).compiled_moves == ()
