"""Lines made by NumPy read as Python would write them, character by character."""

import numpy as np
import pytest

from hops.trace.lines import lines, microseconds, names, numbers, only

WHOLE = [0, 1, 9, 10, 99, 1000, 9999, 10_000, 10_010, 123_456_789, 10**12, 2**62, 2**63 - 1]


@pytest.mark.parametrize("values", [WHOLE, [-1, *WHOLE], [-(10**18), -10], [0], [-1], [10_000]])
def test_numbers_are_decimal(values):
    assert lines(numbers(np.array(values, dtype=np.int64))).decode().split("\n")[:-1] == [str(v) for v in values]


def test_narrow_columns_are_numbers_too():
    assert lines(numbers(np.array([-1, 127], dtype=np.int8))) == b"-1\n127\n"


def test_microseconds_keep_every_nanosecond():
    found = lines(microseconds(np.array([0, 7, 1000, 1_234_567, 2**62], dtype=np.int64))).decode().split()
    assert found == ["0.000", "0.007", "1.000", "1234.567", f"{2**62 // 1000}.{2**62 % 1000}"]


def test_parts_stand_side_by_side_and_only_where_they_are_wanted():
    odd = np.array([True, False, True])
    parts = (names(np.array([2, 0, 1]), ["a", "grün", ""]), b":", only(odd, b"odd "), only(odd, numbers(np.arange(3))))
    assert lines(*parts, end=b";").decode() == ":odd 0;a:;grün:odd 2;"


def test_no_rows_are_no_text():
    nothing = np.zeros(0, dtype=np.int64)
    assert lines(numbers(nothing), b",", microseconds(nothing)) == b""
