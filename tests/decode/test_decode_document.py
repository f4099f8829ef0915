"""Documents: YAML 1.2 scalars as plain data, and the place of every key and value."""

import time

import pytest

from hops.decode.document import dotted, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-8", -8),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("1_000", 1000),
        ("8.5", 8.5),
        ("1e3", 1000.0),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("null", None),
        ("~", None),
        ("", None),
        ("'8'", "8"),
        ('"8 ms"', "8 ms"),
        ("25 Gbit/s", "25 Gbit/s"),
        ("2024-01-01", "2024-01-01"),
        ("1:30", "1:30"),
        ("node0/1", "node0/1"),
        ("[1, 2]", (1, 2)),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text, value):
    document = parse(f"key: {text}", name="x")
    assert document.data == {"key": value}
    assert type(document.data["key"]) is type(value)
    assert document.complaints == ()


def test_every_key_and_value_has_its_place():
    document = parse("a: 1\nb:\n  - {c: 2}\n  - x\n", name="f.yaml")
    assert document.place(("a",)).text == "f.yaml:1:4"
    assert document.place(("a",), at_key=True).text == "f.yaml:1:1"
    assert document.place(("b", 0, "c")).text == "f.yaml:3:9"
    assert document.place(("b", 0, "c"), at_key=True).text == "f.yaml:3:6"
    assert document.place(("b", 1)).text == "f.yaml:4:5"


def test_what_is_not_written_down_is_placed_at_what_is_around_it():
    document = parse("a: {b: 1}\n", name="f.yaml")
    assert document.place(("a", "missing")).text == "f.yaml:1:4"
    assert document.place(("nothing", 3, "here")).text == "f.yaml:1:1"


def test_an_alias_is_its_value_written_out_with_the_places_of_the_anchor():
    document = parse("a: &x {b: 1}\nc: *x\n", name="f.yaml")
    assert document.data["c"] == {"b": 1}
    assert document.place(("c", "b")).text == "f.yaml:1:11"


def test_paths_are_written_with_dots_and_indices():
    assert dotted(("hardware", "nodes", 0, "name")) == "hardware.nodes[0].name"
    assert dotted(()) == ""


def test_a_short_form_is_what_is_written_down_of_its_long_path():
    document = parse("schedule: 1f1b\nmodel: {name: gpt2}\n", name="f.yaml")
    assert document.written(("schedule", "name")) == ("schedule",)
    assert document.written(("model", "name")) == ("model", "name")
    assert document.written(("model", "layers")) == ("model", "layers")


def test_a_text_of_too_many_values_is_refused_before_it_is_read():
    started = time.process_time()
    document = parse(f"a: [{'1,' * 5_000_000}]", name="f.yaml")
    assert document.complaints[0].what.startswith("too deep or too large, expected at most 40 levels and 100000 values")
    assert time.process_time() - started < 2
