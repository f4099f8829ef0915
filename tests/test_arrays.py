"""What stands in for a slower function of NumPy gives the same."""

import numpy as np
import pytest

from hops.arrays import distinct


@pytest.mark.parametrize("values", [[], [3], [3, 3, 3], [0, 0, 1, 1, 0, 2, 2, 1], [5, 4, 4, 5]])
def test_distinct_values_are_those_of_unique(values):
    column = np.array(values, dtype=np.int32)
    found = distinct(column)
    assert found.tolist() == np.unique(column).tolist()
    assert found.dtype == column.dtype
