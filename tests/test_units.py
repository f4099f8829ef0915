"""Quantities: read exactly, refused with the right form, written so that they read back."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UnitError
from hops.units import (
    BANDWIDTH,
    BYTES,
    COMPUTE,
    TIME,
    format_bandwidth,
    format_bytes,
    format_compute,
    format_time,
    parse_bandwidth,
    parse_bytes,
    parse_compute,
    parse_time,
    shown,
    to_ns,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "80 GiB", 80 * 2**30),
        (parse_bytes, "80 GB", 80 * 10**9),
        (parse_bytes, "80GiB", 80 * 2**30),
        (parse_bytes, "1.5 KiB", 1536),
        (parse_bytes, "0 B", 0),
        (parse_bandwidth, "25 Gbit/s", 25e9 / 8),
        (parse_bandwidth, "25 GB/s", 25e9),
        (parse_bandwidth, "1 GiB/s", 2**30),
        (parse_bandwidth, "3.35 TB/s", 3.35e12),
        (parse_time, "15 us", 15e-6),
        (parse_time, "15 µs", 15e-6),
        (parse_time, "1.5 ms", 1.5e-3),
        (parse_time, "2 h", 7200.0),
        (parse_time, "1e-3 s", 1e-3),
        (parse_compute, "312 TFLOP/s", 312e12),
    ],
)
def test_a_quantity_is_its_number_times_its_unit(parse, text, value):
    assert parse(text) == value


def test_bits_are_an_eighth_of_bytes_and_1024_is_not_1000():
    assert 8 * parse_bandwidth("1 Gbit/s") == parse_bandwidth("1 GB/s")
    assert parse_bytes("1 GiB") / parse_bytes("1 GB") == 1.024**3


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (parse_time, 15, "got 15, expected a time with its unit, such as 1.5 ms or 15 us"),
        (parse_time, True, "got true, expected a time with its unit, such as 1.5 ms or 15 us"),
        (parse_time, None, "got null, expected a time with its unit, such as 1.5 ms or 15 us"),
        (parse_time, "15", "got '15', expected a time, such as 1.5 ms or 15 us: the unit is missing"),
        (parse_time, "fast", "got 'fast', expected a time, such as 1.5 ms or 15 us"),
        (parse_time, "-1 ms", "got '-1 ms', expected a time of at least 0, such as 1.5 ms or 15 us"),
        (parse_time, "nan s", "got 'nan s', expected a time, such as 1.5 ms or 15 us"),
        (parse_time, "inf s", "got 'inf s', expected a time, such as 1.5 ms or 15 us"),
        (parse_time, "1e300 s", "got '1e300 s', expected a time that can be, such as 1.5 ms or 15 us"),
        (parse_time, "١ s", "got '١ s', expected a time, such as 1.5 ms or 15 us"),
        (
            parse_time,
            "3 bit",
            (
                "got '3 bit', expected a time, such as 1.5 ms or 15 us: unknown unit 'bit', "
                "known are ns, us, ms, s, min, h, d"
            ),
        ),
        (
            parse_bandwidth,
            "25 Gb/s",
            "got '25 Gb/s', expected a bandwidth, such as 25 Gbit/s or 3.35 TB/s: write Gbit/s (bits) or GB/s (bytes)",
        ),
        (
            parse_bandwidth,
            "25 Gbps",
            "got '25 Gbps', expected a bandwidth, such as 25 Gbit/s or 3.35 TB/s: write Gbit/s (bits) or GB/s (bytes)",
        ),
        (
            parse_bytes,
            "80 KB",
            "got '80 KB', expected an amount of memory, such as 80 GiB: write KiB (1024) or kB (1000)",
        ),
        (
            parse_compute,
            "312 TFLOPS",
            "got '312 TFLOPS', expected a compute rate, such as 312 TFLOP/s: write TFLOP/s",
        ),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_right_form(parse, value, message):
    with pytest.raises(UnitError) as caught:
        parse(value)
    assert str(caught.value) == message


@pytest.mark.parametrize("dimension", [BANDWIDTH, TIME, COMPUTE])
@given(value=st.floats(min_value=0, max_value=1e20))
@settings(deadline=None, max_examples=200)
def test_what_is_written_exactly_reads_back_as_the_same_float(dimension, value):
    assert dimension.parse(dimension.exact(value)) == value


@given(value=st.integers(min_value=0, max_value=2**60))
@settings(deadline=None, max_examples=200)
def test_bytes_written_exactly_read_back_as_the_same_number(value):
    assert parse_bytes(BYTES.exact(value)) == value


@pytest.mark.parametrize("parse", [parse_bytes, parse_bandwidth, parse_time, parse_compute])
@given(value=st.one_of(st.text(max_size=20), st.integers(), st.floats(), st.none(), st.lists(st.integers())))
@settings(deadline=None, max_examples=100)
def test_anything_is_read_or_refused_with_a_unit_error(parse, value):
    try:
        read = parse(value)
    except UnitError as error:
        read = 0 if str(error).startswith("got ") else math.nan
    assert 0 <= read < math.inf


def test_exact_forms_are_the_ones_people_write():
    assert BYTES.exact(80 * 2**30) == "80 GiB"
    assert BYTES.exact(80 * 10**9) == "80 GB"
    assert BANDWIDTH.exact(3.35e12) == "3.35 TB/s"
    assert TIME.exact(15e-6) == "15 us"
    assert TIME.exact(0.0) == "0 s"
    assert COMPUTE.exact(312e12) == "312 TFLOP/s"


def test_pretty_forms_have_three_significant_digits():
    assert format_bytes(33_500_000_000) == "31.2 GiB"
    assert format_bandwidth(3.125e9) == "3.12 GB/s"
    assert format_time(0.0012345) == "1.23 ms"
    assert format_time(123.4567) == "2.06 min"
    assert format_compute(312e12) == "312 TFLOP/s"
    assert format_time(0.0) == "0 s"
    assert format_time(math.inf) == "inf"


def test_seconds_become_whole_nanoseconds():
    assert to_ns(1.5e-3) == 1_500_000
    assert to_ns(2.4e-9) == 2
    assert to_ns(86400.0 * 30) == 2_592_000 * 10**9


@given(nanoseconds=st.integers(min_value=0, max_value=10**15))
@settings(deadline=None)
def test_nanoseconds_survive_the_way_through_seconds(nanoseconds):
    assert to_ns(nanoseconds / 1e9) == nanoseconds


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_times_that_are_none_are_refused(seconds):
    with pytest.raises(UnitError, match="expected a finite time of at least 0"):
        to_ns(seconds)


@given(seconds=st.lists(st.floats(min_value=0, max_value=9e9), max_size=8))
@settings(deadline=None)
def test_an_array_of_seconds_becomes_what_each_becomes(seconds):
    many = to_ns(np.array([seconds]))
    assert many.dtype == np.int64
    assert many.tolist() == [[to_ns(each) for each in seconds]]


def test_halves_of_a_nanosecond_go_to_the_even_one():
    times = [0.5e-9, 1.5e-9, 2.5e-9, 0.7e-9]
    assert [to_ns(each) for each in times] == to_ns(np.array(times)).tolist() == [0, 2, 2, 1]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1e-9, 9.3e9])
def test_an_array_with_times_that_are_none_is_refused(seconds):
    with pytest.raises(UnitError) as caught:
        to_ns(np.array([1.0, seconds]))
    assert str(caught.value) == f"got {seconds!r} seconds, expected times of at least 0 and below 292 years"


def test_wrong_values_are_shown_in_the_words_of_yaml_and_cut_when_long():
    assert [shown(each) for each in (True, False, None, [1], {"a": 1}, "x", 3)] == [
        "true",
        "false",
        "null",
        "a list",
        "a mapping",
        "'x'",
        "3",
    ]
    assert shown("x" * 500) == f"'{'x' * 75}...'"
