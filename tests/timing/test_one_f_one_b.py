"""The longest path through 1F1B without its program is the longest path through its program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.program.lowering import lower
from hops.program.shape import Shape
from hops.schedules.plain import OneFOneB
from hops.timing.longest_path import ActionTimes, start_times
from hops.timing.one_f_one_b import one_f_one_b
from hops.timing.stage_costs import StageCosts


def makespan(size, forward, fused, hop):
    """By `longest_path`, of the program that the schedule builds."""
    program = OneFOneB().build(StageCosts.uniform(Shape.loop(len(forward), num_microbatches=size)))
    kinds = np.zeros((len(forward), 4), dtype=np.int64)
    kinds[:, 0], kinds[:, 1] = forward, fused
    times = ActionTimes.of_kinds(program, kinds.reshape(-1), np.array(hop, dtype=np.int64), blocking=False)
    return int((start_times(lower(program), times) + times.duration).max())


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_both_are_equal(data):
    """Whole numbers, so that floats are exact; more stages than microbatches, too, and stages that take nothing."""
    stages, size = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    numbers = [
        data.draw(st.lists(st.integers(0, 20), min_size=count, max_size=count))
        for count in (stages, stages, stages - 1)
    ]
    found = one_f_one_b(size, *(np.array(each, dtype=np.float64) for each in numbers))
    assert found == makespan(size, *numbers)


@pytest.mark.parametrize(("stages", "size"), [(1, 1), (4, 8), (8, 3)])
def test_equal_stages_take_what_the_closed_form_says(stages, size):
    """(m + p - 1) (f + b), where messages take no time."""
    ones = np.ones(stages)
    assert one_f_one_b(size, ones, 2 * ones, np.zeros(stages - 1)) == 3 * (size + stages - 1)
