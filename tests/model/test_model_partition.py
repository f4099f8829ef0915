"""Partitions hold every layer once; the balanced one is the best there is."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.model.partition import Partition, StageSlice


@settings(deadline=None, max_examples=100)
@given(layers=st.integers(1, 200), stages=st.integers(1, 64))
def test_even_parts_differ_by_one_at_most_and_hold_all_layers(layers, stages):
    if stages > layers:
        return
    partition = Partition.even(layers, stages)
    assert partition.num_stages == stages
    assert sum(partition.layers) == layers
    assert max(partition.layers) - min(partition.layers) <= 1
    assert list(partition.layers) == sorted(partition.layers, reverse=True)


def test_ranges_follow_each_other_along_the_model():
    partition = Partition(layers=(2, 3, 1))
    assert [partition.layer_range(stage) for stage in range(3)] == [range(2), range(2, 5), range(5, 6)]


def test_first_stage_holds_the_embedding_and_last_the_head():
    partition = Partition(layers=(2, 3, 1))
    assert [partition.slice(stage) for stage in range(3)] == [
        StageSlice(layers=2, embedding=True, head=False),
        StageSlice(layers=3, embedding=False, head=False, first=2),
        StageSlice(layers=1, embedding=False, head=True, first=5),
    ]


def test_a_single_stage_holds_everything():
    assert Partition(layers=(4,)).slice(0) == StageSlice(layers=4, embedding=True, head=True)


def every_partition(layers, stages):
    for cuts in combinations(range(1, layers), stages - 1):
        edges = (0, *cuts, layers)
        yield tuple(end - start for start, end in pairwise(edges))


def stage_costs(layers, cost_of):
    ends = [sum(layers[: stage + 1]) for stage in range(len(layers))]
    return [cost_of(stage, end - count, end - 1) for stage, (count, end) in enumerate(zip(layers, ends, strict=True))]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_balanced_equals_exhaustive_search(data):
    """Least bottleneck first, least sum of squares among those: layers of any cost on stages of any speed."""
    layers = data.draw(st.integers(1, 8))
    stages = data.draw(st.integers(1, layers))
    work = data.draw(st.lists(st.integers(1, 20), min_size=layers, max_size=layers))
    speed = data.draw(st.lists(st.sampled_from([1, 2, 4]), min_size=stages, max_size=stages))
    extra = data.draw(st.lists(st.integers(0, 10), min_size=stages, max_size=stages))

    def cost_of(stage, first, last):
        return (sum(work[first : last + 1]) + extra[stage]) / speed[stage]

    def quality(partition):
        costs = stage_costs(partition, cost_of)
        return max(costs), sum(cost * cost for cost in costs)

    best = min(quality(partition) for partition in every_partition(layers, stages))
    assert quality(Partition.balanced(layers, stages, cost_of).layers) == pytest.approx(best)


def test_equal_layers_on_equal_stages_are_balanced_evenly():
    assert Partition.balanced(24, 8, lambda stage, first, last: last - first + 1) == Partition.even(24, 8)


def test_a_stage_twice_as_fast_gets_twice_the_layers():
    speed = (1, 2, 1)
    assert Partition.balanced(16, 3, lambda stage, first, last: (last - first + 1) / speed[stage]).layers == (4, 8, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Partition(layers=()), "a partition must have at least one stage, but got none"),
        (lambda: Partition(layers=(-1, 2)), "layers of stage 0 must be at least 0, but got -1"),
        (
            lambda: Partition.even(3, 4),
            "the number of stages must be between 1 and the number of layers, but got 4 stages for 3 layers",
        ),
        (
            lambda: Partition.balanced(3, 0, lambda *_: 1.0),
            "the number of stages must be between 1 and the number of layers, but got 0 stages for 3 layers",
        ),
    ],
)
def test_impossible_partitions_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message


def test_first_and_last_stage_may_hold_no_layer_at_all():
    """Megatron-LM can give embedding and loss a stage of their own."""
    assert Partition(layers=(0, 2, 2, 0)).num_layers == 4
