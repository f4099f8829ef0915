"""A spec from plain data, and one changed in places, are checked like a file; messages name the path."""

import math

import pytest

from hops.errors import SpecError
from hops.spec.load import from_dict, load, loads
from hops.spec.text import dump

DATA = {
    "pipeline": {"model": "llama2-7b", "microbatches": 8},
    "hardware": {"nodes": [{"devices": [{"type": "h100", "count": 4}]}], "interconnect": "ethernet-100"},
}
TEXT = """
pipeline: {model: llama2-7b, microbatches: 8}
hardware: {nodes: [{devices: [{type: h100, count: 4}]}], interconnect: ethernet-100}
"""


def test_a_dict_gives_the_spec_that_a_file_gives():
    assert from_dict(DATA) == loads(TEXT)


def test_every_problem_is_said_with_its_path():
    wrong = {
        "pipeline": {"model": "lama2-7b", "microbatches": 0, "microbatch": 3},
        "hardware": {"nodes": [{"devices": ["h100"]}], "interconnect": {"bandwidth": 25}},
    }
    with pytest.raises(SpecError) as caught:
        from_dict(wrong)
    said = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in said] == [
        "pipeline.model",
        "pipeline.microbatches",
        "pipeline.microbatch",
        "hardware.interconnect.bandwidth",
    ]
    assert said[1] == "pipeline.microbatches: got 0, expected at least 1"
    assert said[2] == "pipeline.microbatch: unknown key; did you mean microbatches?"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: 2}, "got 1 as a key, expected a name"),
        (
            {"pipeline": {**DATA["pipeline"], "microbatches": {3}}},
            "pipeline.microbatches: got {3}, expected text",
        ),
        (
            {"pipeline": {**DATA["pipeline"], "split_overhead": math.nan}},
            "pipeline.split_overhead: got nan, exp",
        ),
    ],
)
def test_what_no_file_can_say_is_refused(change, message):
    with pytest.raises(SpecError) as caught:
        from_dict({**DATA, **change})
    assert str(caught.value).splitlines()[0].startswith(message)


def test_data_that_contains_itself_is_refused():
    data = dict(DATA)
    data["output"] = data
    with pytest.raises(SpecError, match="deeper than 40 levels"):
        from_dict(data)


def test_a_changed_spec_is_the_spec_of_the_changed_file():
    changed = loads(TEXT).with_({"hardware.interconnect": {"bandwidth": "100 Gbit/s", "latency": "5 us"}})
    other = TEXT.replace("ethernet-100", "{bandwidth: 100 Gbit/s, latency: 5 us}")
    assert changed == loads(other)


def test_a_value_inside_what_was_written_short_can_be_changed():
    changed = loads(TEXT).with_({"hardware.interconnect.bandwidth": "100 Gbit/s", "hardware.nodes[0].count": 2})
    assert changed.hardware.interconnect.bandwidth == 100e9 / 8
    assert changed.hardware.interconnect.name == "ethernet-100"
    assert len(changed.hardware.ranks()) == 8


def test_what_was_left_to_defaults_follows_from_the_new_values():
    """The model's sequence length and tied embeddings are its own, and not those of the model before."""
    spec = loads(TEXT)
    assert (spec.pipeline.sequence_length, spec.optimizer.tied_embeddings) == (4096, False)
    changed = spec.with_({"pipeline.model": "gpt2-medium"})
    assert changed == loads(TEXT.replace("llama2-7b", "gpt2-medium"))
    assert (changed.pipeline.sequence_length, changed.optimizer.tied_embeddings) == (1024, True)


def test_changes_add_up_and_leave_the_spec_as_it_was():
    spec = loads(TEXT)
    before = dump(spec)
    once = spec.with_({"pipeline.microbatches": 16})
    twice = once.with_({"simulation.seed": 7})
    assert (twice.pipeline.microbatches, twice.simulation.seed) == (16, 7)
    assert dump(spec) == before
    assert spec.with_({}) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline.microbatches": 0}, "pipeline.microbatches: got 0, expected at least 1"),
        ({"pipeline.microbaches": 4}, "pipeline.microbaches: unknown key; did you mean microbatches?"),
        (
            {"hardware.nodes[7].count": 2},
            "hardware.nodes[7].count: there is no entry [7]: hardware.nodes is",
        ),
        ({"pipeline..x": 2}, "pipeline..x: expected a path, such as hardware.nodes[0].count"),
        (
            {"hardware.interconnect.bandwidth": 5},
            "hardware.interconnect.bandwidth: got 5, expected a bandwidth",
        ),
        ({"pipeline.schedule": "auto"}, "pipeline.schedule: got auto, expected one value"),
        ({"hardware.placement": ["node0/9"]}, "hardware.placement[0]: unknown device id, got 'node0/9'"),
    ],
)
def test_a_wrong_change_is_said_as_in_a_file(changes, message):
    with pytest.raises(SpecError) as caught:
        loads(TEXT).with_(changes)
    assert str(caught.value).startswith(message)


def test_files_beside_the_spec_are_still_found(tmp_path):
    (tmp_path / "samples.txt").write_text("1.1\n0.9\n")
    (tmp_path / "spec.yaml").write_text(TEXT + "simulation: {seed: 1}\n")
    spec = load(tmp_path / "spec.yaml", ["pipeline.jitter={distribution: empirical, file: samples.txt}"])
    assert spec.with_({"simulation.seed": 2}).pipeline.jitter.build().samples == (1.1, 0.9)


def test_a_spec_shows_itself_in_a_line():
    assert repr(loads(TEXT)) == "Spec(1f1b, 8 microbatches, 4 h100)"
