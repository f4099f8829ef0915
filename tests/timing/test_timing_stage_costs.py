"""Stage costs as arrays: the same numbers in whole nanoseconds, in the order in which kernels take them."""

from dataclasses import replace

import numpy as np
import pytest

from hops.program.shape import Shape
from hops.timing.stage_costs import UNLIMITED, CostArrays, StageCosts, cost_arrays, durations_ns, hops_ns

SHAPE = Shape(num_microbatches=3, rank_of_stage=(0, 1, 0))
COSTS = StageCosts(
    shape=SHAPE,
    forward_s=(1e-9, 2e-9, 3e-9),
    input_backward_s=(4e-9, 5e-9, 6e-9),
    weight_backward_s=(7e-9, 8e-9, 9e-9),
    fused_backward_s=(11e-9, 13e-9, 15.6e-9),
    hop_s=(20e-9, 30e-9),
    activation_bytes=(5, 6, 7),
    kept_for_weight_bytes=(1, 2, 3),
    budget_bytes=(None, 40),
)


def test_arrays_hold_whole_nanoseconds_and_bytes():
    arrays = cost_arrays(COSTS)
    assert arrays.size == 3
    assert arrays.times.tolist() == [[1, 11, 4, 7], [2, 13, 5, 8], [3, 16, 6, 9]]
    assert arrays.hop.tolist() == [20, 30, 0]
    assert arrays.rank_of.tolist() == [0, 1, 0]
    assert arrays.later.tolist() == [2, -1, -1]
    assert (arrays.activation.tolist(), arrays.kept.tolist()) == ([5, 6, 7], [1, 2, 3])
    assert arrays.budget.tolist() == [UNLIMITED, 40]
    assert (durations_ns(COSTS) == arrays.times).all()
    assert hops_ns(COSTS).tolist() == [20, 30]


def test_blocking_messages_are_part_of_the_actions_that_take_them():
    """F waits for the stage before, B and I for the stage after; W takes no message, and ends send to nobody."""
    plain, blocking = cost_arrays(COSTS), cost_arrays(replace(COSTS, blocking=True))
    taken = [[0, 20, 20, 0], [20, 30, 30, 0], [30, 0, 0, 0]]
    assert (blocking.times - plain.times).tolist() == taken
    assert not blocking.hop.any()


def test_counts_follow_from_the_arrays():
    arrays = cost_arrays(COSTS)
    assert (arrays.num_stages, arrays.num_ranks, arrays.num_actions, arrays.longest_rank) == (3, 2, 27, 18)
    assert arrays.has_chunks
    assert not cost_arrays(StageCosts.uniform(Shape.loop(3, num_microbatches=1))).has_chunks


def test_arrays_are_read_only_and_in_the_order_of_their_names():
    arrays = cost_arrays(COSTS)
    for name, value in zip(CostArrays._fields, arrays, strict=True):
        assert value is getattr(arrays, name)
        if not isinstance(value, np.ndarray):
            continue
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 1


def test_a_budget_beyond_64_bits_is_none():
    assert cost_arrays(replace(COSTS, budget_bytes=(1 << 80, 0))).budget.tolist() == [UNLIMITED, 0]
    assert np.iinfo(np.int64).max > 2 * UNLIMITED
