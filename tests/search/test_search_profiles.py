"""Profiles from JSON: what is read, and a pointed message for everything that is wrong."""

import json
import math

import pytest

from hops.errors import UsageError
from hops.program.shape import Shape
from hops.timing.examples import profile_from_json, read_profiles

GOOD = {
    "name": "two",
    "microbatches": 3,
    "forward_ms": [1.5, 2],
    "input_backward_ms": [1, 1],
    "weight_backward_ms": [1, 2],
    "fused_backward_ms": [2, 2.5],
    "hop_ms": [0.25],
    "activation_bytes": [10, 12],
    "kept_for_weight_bytes": [4, 0],
    "memory_bytes": [20, None],
}


def test_a_good_profile_is_read_with_its_units():
    named = profile_from_json("here", GOOD)
    profile = named.profile
    assert named.name == "two"
    assert profile.shape == Shape.loop(2, num_microbatches=3)
    assert profile.forward_s == (0.0015, 0.002)
    assert profile.fused_backward_s == (0.002, 0.0025)
    assert profile.hop_s == (0.00025,)
    assert profile.budget_bytes == (20, None)
    assert not profile.blocking


def test_placement_and_blocking_are_optional():
    ranks = GOOD | {"rank_of_stage": [0, 0], "memory_bytes": [22], "blocking": True}
    profile = profile_from_json("here", ranks).profile
    assert profile.shape.rank_of_stage == (0, 0)
    assert profile.blocking


BAD = [
    ({"forward_ms": [-1, 2]}, "forward_ms[0]: got -1, expected at least 0"),
    ({"forward_ms": [1, math.nan]}, "forward_ms[1]: got nan, expected a finite number"),
    ({"weight_backward_ms": [1, math.inf]}, "weight_backward_ms[1]: got inf, expected a finite number"),
    ({"weight_backward_ms": [1, "2"]}, "weight_backward_ms[1]: got '2', expected a number"),
    ({"weight_backward_ms": [True, 2]}, "weight_backward_ms[0]: got true, expected a number"),
    ({"fused_backward_ms": [1]}, "fused_backward_ms: got 1 values, expected 2, since forward_ms has 2"),
    ({"hop_ms": [1, 1]}, "hop_ms: got 2 values, expected 1, since forward_ms has 2"),
    ({"forward_ms": []}, "forward_ms: got 0 entries, expected at least 1"),
    ({"forward_ms": 3}, "forward_ms: got 3, expected a list"),
    ({"microbatches": 0}, "microbatches: got 0, expected at least 1"),
    ({"microbatches": 2.5}, "microbatches: got 2.5, expected a whole number"),
    ({"microbatches": True}, "microbatches: got true, expected a whole number"),
    ({"memory_bytes": [9, None]}, "memory_bytes[0]: got 9, expected at least the 10 bytes that one microbatch takes"),
    ({"memory_bytes": [-1, None]}, "memory_bytes[0]: got -1, expected at least 0"),
    ({"memory_bytes": [20]}, "memory_bytes: got 1 values, expected 2, one per rank"),
    ({"activation_bytes": [1.5, 2]}, "activation_bytes[0]: got 1.5, expected a whole number"),
    ({"kept_for_weight_bytes": [11, 0]}, "kept_for_weight_bytes[0]: got 11, expected at most activation_bytes[0], 10"),
    ({"name": 7}, 'name: got 7, expected text; write "7" if it is a name'),
    ({"blocking": 1}, "blocking: got 1, expected true or false"),
    ({"rank_of_stage": [0, 2]}, "rank_of_stage: got rank 2, expected every rank from 0 to the highest to have a stage"),
    ({"rank_of_stage": [1, 1]}, "rank_of_stage: got rank 1, expected every rank from 0 to the highest to have a stage"),
    ({"foward_ms": [1, 2]}, "foward_ms: unknown key; did you mean forward_ms?"),
    ({"zzz": 1}, "zzz: unknown key, expected one of name, microbatches, forward_ms"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message.split(",")[0] for _, message in BAD])
def test_a_bad_profile_is_named_with_place_value_and_expectation(change, message):
    with pytest.raises(UsageError) as error:
        profile_from_json("here:7", GOOD | change)
    assert str(error.value).startswith(f"here:7: {message}")


def test_missing_keys_are_all_named():
    value = {key: GOOD[key] for key in GOOD if key not in {"hop_ms", "name"}}
    with pytest.raises(UsageError, match=r"^here: name: missing; add it\nhere: hop_ms: missing; add it$"):
        profile_from_json("here", value)


@pytest.mark.parametrize(("value", "shown"), [([], "a list"), (3, "3"), ("x" * 99, "'" + "x" * 75 + "...'")])
def test_a_profile_is_an_object(value, shown):
    with pytest.raises(UsageError) as error:
        profile_from_json("here", value)
    assert str(error.value) == f"here: got {shown}, expected a mapping of keys to values"


def test_a_jsonl_file_has_one_profile_a_line_and_errors_name_the_line(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + json.dumps(GOOD | {"name": "other"}) + "\n")
    assert [named.name for named in read_profiles(path)] == ["two", "other"]
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"microbatches": 0}) + "\n")
    with pytest.raises(UsageError, match=r"many\.jsonl:2:33: microbatches: got 0"):
        read_profiles(path)
    path.write_text(json.dumps(GOOD) + "\n{'name'\n")
    with pytest.raises(UsageError, match=r"many\.jsonl:2:2: is not JSON: Expecting property name"):
        read_profiles(path)


def test_a_json_file_has_one_profile(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(GOOD, indent=2))
    assert [named.name for named in read_profiles(path)] == ["two"]
    path.write_text('{\n  "name": }')
    with pytest.raises(UsageError, match=r"one\.json:2:11: is not JSON"):
        read_profiles(path)


def test_a_file_that_is_missing_empty_or_no_text_says_so(tmp_path):
    with pytest.raises(UsageError, match=r"none\.jsonl: cannot be read: there is no such file"):
        read_profiles(tmp_path / "none.jsonl")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(UsageError, match="holds no profile"):
        read_profiles(empty)
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\x80\x81\x82")
    with pytest.raises(UsageError, match=r"is not text in UTF-8 \(byte 0\)"):
        read_profiles(binary)
