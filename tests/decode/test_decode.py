"""A form is a type: what fits becomes its value, everything that does not is said at once, each with its place."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from hops.decode.decode import Where, decode, decode_json, from_json, read, read_lines, read_text
from hops.decode.quantities import Bytes, Seconds
from hops.errors import CatalogError, TraceError, UsageError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    radius: float
    spokes: int
    colour: Colour = Colour.RED

    def __post_init__(self):
        if self.radius < 0:
            raise UsageError(f"radius must be at least 0, but got {self.radius}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bicycle:
    name: str
    wheels: tuple[Wheel, ...]
    range: tuple[int, int] = (0, 1)
    parts: Mapping[str, Wheel] | None = None
    load: Bytes = 0
    brake: Seconds = 0.0
    bell: bool = False


GOOD = {"name": "mine", "wheels": [{"radius": 1, "spokes": 20}, {"radius": 2.5, "spokes": 30, "colour": "blue"}]}


def test_what_fits_becomes_the_value():
    bicycle = decode(Bicycle, {**GOOD, "load": "2 KiB", "brake": "1.5 ms", "range": [3, 4]}, Where(name="here"))
    assert bicycle == Bicycle(
        name="mine",
        wheels=(Wheel(radius=1.0, spokes=20), Wheel(radius=2.5, spokes=30, colour=Colour.BLUE)),
        range=(3, 4),
        load=2048,
        brake=0.0015,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, 'name: got 3, expected text; write "3" if it is a name'),
        ({"nmae": 3}, "nmae: unknown key; did you mean name?"),
        ({"bell": 1}, "bell: got 1, expected true or false; write true"),
        ({"wheels": {}}, "wheels: got a mapping, expected a list"),
        ({"wheels": [3]}, "wheels[0]: got 3, expected a mapping of keys to values"),
        ({"wheels": [{"radius": "1", "spokes": 2}]}, "wheels[0].radius: got '1', expected a number"),
        ({"wheels": [{"radius": True, "spokes": 2}]}, "wheels[0].radius: got true, expected a number"),
        ({"wheels": [{"radius": float("nan"), "spokes": 2}]}, "wheels[0].radius: got nan, expected a finite number"),
        ({"wheels": [{"radius": 1, "spokes": 2.5}]}, "wheels[0].spokes: got 2.5, expected a whole number"),
        ({"wheels": [{"radius": 1}]}, "wheels[0].spokes: missing; add it"),
        ({"wheels": [{"radius": -1, "spokes": 2}]}, "wheels[0]: radius must be at least 0, but got -1.0"),
        (
            {"wheels": [{"radius": 1, "spokes": 2, "colour": "rde"}]},
            "wheels[0].colour: got 'rde', expected one of red, blue; did you mean red?",
        ),
        ({"range": [1]}, "range[1]: missing; add it"),
        ({"parts": {"front": {"radius": 1, "sopkes": 1}}}, "parts.front.sopkes: unknown key; did you mean spokes?"),
        ({"load": 5}, "load: got 5, expected an amount of memory with its unit, such as 80 GiB"),
        (
            {"brake": "5 m"},
            "brake: got '5 m', expected a time, such as 1.5 ms or 15 us: write ms (milliseconds) or min",
        ),
    ],
)
def test_what_does_not_fit_is_said_with_what_was_got_and_expected(change, message):
    with pytest.raises(UsageError) as caught:
        decode(Bicycle, {**GOOD, **change}, Where(name="here"))
    assert any(line.startswith(f"here: {message}") for line in str(caught.value).splitlines()), str(caught.value)


BAD_YAML = """\
name: 3
wheels:
  - {radius: x, spokes: 1}
  - {radius: -1, spokes: 1}
"""
SAID = [
    'bad.yaml:1:7: name: got 3, expected text; write "3" if it is a name',
    "bad.yaml:3:14: wheels[0].radius: got 'x', expected a number",
    "bad.yaml:4:5: wheels[1]: radius must be at least 0, but got -1.0",
]


def test_a_file_gets_all_complaints_at_once_with_line_and_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_text(BAD_YAML)
    with pytest.raises(CatalogError) as caught:
        read(Bicycle, "bad.yaml", error=CatalogError, expected="a bicycle")
    assert str(caught.value).splitlines() == SAID


def test_json_has_places_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text('{"name": 3,\n "wheels": [\n\t{"radius": "x", "spokes": 1}]}')
    with pytest.raises(UsageError) as caught:
        read(Bicycle, "bad.json", expected="a bicycle")
    assert str(caught.value).splitlines() == [
        'bad.json:1:10: name: got 3, expected text; write "3" if it is a name',
        "bad.json:3:13: wheels[0].radius: got 'x', expected a number",
    ]


def test_json_lines_are_read_one_by_one_and_errors_name_the_line(tmp_path):
    file = tmp_path / "many.jsonl"
    file.write_text(f"{json.dumps(GOOD)}\n\n{json.dumps({**GOOD, 'name': 'other'})}\n")
    assert [each.name for each in read_lines(Bicycle, file, expected="bicycles")] == ["mine", "other"]
    file.write_text(f'{json.dumps(GOOD)}\n\n{{"name": 4, "wheels": []}}\n')
    with pytest.raises(UsageError) as caught:
        read_lines(Bicycle, file, expected="bicycles")
    assert str(caught.value).startswith(f"{file}:3:10: name: got 4, expected text")
    file.write_text('{"name": "x", "wheels": []}\n{"name"}\n')
    with pytest.raises(UsageError, match=r"many\.jsonl:2:8: is not JSON: Expecting ':' delimiter"):
        read_lines(Bicycle, file, expected="bicycles")


def test_yaml_faults_are_said_beside_those_of_the_form(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("name: mine\nname: yours\nwheels: [{radius: .nan, spokes: x}]\n")
    with pytest.raises(UsageError) as caught:
        read(Bicycle, file, expected="a bicycle")
    assert [line.removeprefix(str(file)) for line in str(caught.value).splitlines()] == [
        ":2:1: name: the key name is given twice, first at 1:1; remove one",
        ":3:19: wheels[0].radius: got .nan, expected a finite number",
        ":3:33: wheels[0].spokes: got 'x', expected a whole number",
    ]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "[1"], ids=["lists", "maps", "digits", "cut"]
)
def test_bombs_are_refused(text):
    with pytest.raises(TraceError, match=r"^line\.jsonl:(7|7:3): is not JSON"):
        from_json(text, Where(name="line.jsonl", line=7, error=TraceError))


def test_long_lists_of_complaints_are_cut():
    with pytest.raises(UsageError) as caught:
        decode(tuple[int, ...], ["x"] * 80, Where(name="here"))
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (51, "... and 30 more")


def test_an_endless_file_is_read_up_to_its_limit():
    with pytest.raises(
        UsageError, match=r"/dev/zero: got more than 20000000 bytes, expected a bicycle of at most that"
    ):
        read(Bicycle, "/dev/zero", expected="a bicycle")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: there is no such file; expected a poem"),
        (b"\xff\xfe", "is not text in UTF-8 (byte 0), expected a poem"),
        (b"ab\0", "is binary (a zero byte at 2), expected a poem"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, message):
    file = tmp_path / "x.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read_text(file, error=TraceError, expected="a poem")
    assert str(caught.value) == f"{file}: {message}"


@pytest.mark.parametrize("odd", [r'"\ud800"', '"a\tb"', '"\x7f"'])
def test_json_that_is_no_yaml_is_read_all_the_same(odd):
    """Then messages stand at the file itself, or, had it been YAML, at their place."""
    text = f'{{"name": 3, "wheels": [], "bell": false, "parts": {{{odd}: null}}}}'
    with pytest.raises(UsageError) as caught:
        decode_json(Bicycle, text.replace("\t", "\\t"), Where(name="here"))
    assert re.match(r"here(:1:10)?: name: got 3, expected text", str(caught.value))


def test_a_file_of_samples_that_never_ends_is_refused_at_its_place():
    from hops.errors import SpecError
    from hops.spec.load import from_dict

    times = {"forward": {"distribution": "empirical", "file": "/dev/zero"}, "backward": "1 ms"}
    spec = {"pipeline": {"stage_times": times, "microbatches": 1}, "hardware": {"nodes": [{"devices": ["l4"]}]}}
    with pytest.raises(SpecError, match=r"^pipeline.stage_times.forward: /dev/zero: got more than 20000000 bytes"):
        from_dict(spec)


def test_places_in_large_json_are_not_looked_for():
    """Reading it again as YAML would take minutes; the path is said all the same."""
    text = json.dumps({**GOOD, "name": 3, "wheels": GOOD["wheels"] * 10_000})
    with pytest.raises(UsageError, match=r"^here: name: got 3, expected text"):
        decode_json(Bicycle, text, Where(name="here"))


@pytest.mark.parametrize(("text", "said"), [("null", "got null, expected a mapping"), ("", "the document is empty")])
def test_a_file_that_says_nothing_is_refused_once(tmp_path, text, said):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read(Bicycle, tmp_path / "x.yaml", expected="a bicycle")
    assert len(str(caught.value).splitlines()) == 1
    assert said in str(caught.value)
