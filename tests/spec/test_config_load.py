"""Loading: files, overrides, defaults that follow from others, and never a traceback."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import SpecError
from hops.spec.load import load, loads
from hops.spec.spec import Spec
from hops.spec.text import dump, starter

SMALL = """\
pipeline:
  model: gpt2-medium
  schedule: 1f1b
  microbatches: 16
hardware:
  nodes:
    - devices: [{type: h100, count: 2}]
    - devices: [l4, l4]
  interconnect: ethernet-25
"""


def message_of(text, **options):
    with pytest.raises(SpecError) as caught:
        loads(text, name="spec.yaml", **options)
    return str(caught.value)


def test_the_smallest_useful_file_has_under_ten_lines():
    spec = loads(SMALL)
    assert SMALL.count("\n") < 10
    assert spec.hardware.ranks() == ("node0/0", "node0/1", "node1/0", "node1/1")
    assert spec.shape().num_stages == 4


def test_optional_sections_may_be_left_empty():
    assert loads(f"{SMALL}output:\noptimizer:\n") == loads(SMALL)


def test_a_file_is_read_from_disk(tmp_path):
    (tmp_path / "spec.yaml").write_text(SMALL, encoding="utf-8")
    assert load(tmp_path / "spec.yaml") == loads(SMALL)


def test_a_byte_order_mark_is_no_problem(tmp_path):
    (tmp_path / "spec.yaml").write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load(tmp_path / "spec.yaml") == loads(SMALL)


def test_errors_of_a_file_name_file_line_and_column(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text(SMALL.replace("16", "8.5"), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load(file)
    assert str(caught.value) == f"{file}:4:17: pipeline.microbatches: got 8.5, expected a whole number"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("spce.yaml", None, "cannot be read: there is no such file; did you mean {folder}/spec.yaml?"),
        ("other.txt", None, "cannot be read: there is no such file; `hops init` writes a starter"),
        (".", None, "cannot be read: it is a folder; name a file in it, such as {folder}/spec.yaml"),
        ("binary.yaml", b"pipeline\0", "is binary (a zero byte at 8), expected a YAML file"),
        ("latin.yaml", "müsli: 1".encode("latin-1"), "is not text in UTF-8 (byte 1), expected a YAML file"),
        ("png.yaml", b"\x89PNG\r\n\x1a\n\0\0", "is not text in UTF-8 (byte 0), expected a YAML file"),
    ],
)
def test_what_is_no_readable_file_is_one_message(tmp_path, name, content, message):
    (tmp_path / "spec.yaml").write_text(SMALL, encoding="utf-8")
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load(file)
    assert str(caught.value) == f"{file}: {message.format(folder=tmp_path)}"


def test_a_file_that_may_not_be_read_is_one_message(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "spec.yaml"
    file.write_text(SMALL, encoding="utf-8")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(SpecError) as caught:
        load(file)
    assert str(caught.value) == f"{file}: cannot be read: reading it is not permitted"


def test_files_that_a_spec_names_lie_in_its_own_folder(tmp_path):
    (tmp_path / "samples.txt").write_text("10 ms\n# slow\n12.5 ms  # rare\n", encoding="utf-8")
    times = "{forward: {distribution: empirical, file: samples.txt}, backward: 20 ms}"
    text = SMALL.replace("model: gpt2-medium", f"stage_times: {times}")
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    spec = load(tmp_path / "spec.yaml")
    assert spec.pipeline.stage_times.forward.samples == (0.010, 0.0125)
    assert loads(dump(spec)) == spec


def test_at_most_fifty_problems_are_listed():
    wrong = "".join(f"  key{number}: 1\n" for number in range(60))
    lines = message_of(f"{SMALL}output:\n{wrong}").splitlines()
    assert len(lines) == 51
    assert lines[-1] == "... and 10 more"


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("pipeline.microbatches=32", "pipeline.microbatches", 32),
        ("simulation.seed=7", "simulation.seed", 7),
        ("pipeline.schedule=gpipe", "pipeline.schedule.name", "gpipe"),
        ("hardware.nodes[1].devices[0].count=3", "hardware.nodes.1.devices.0.count", 3),
        ("hardware.interconnect.latency=50 us", "hardware.interconnect.latency.value", 50e-6),
        ("hardware.nodes[0].name= big", "hardware.nodes.0.name", "big"),
        ("pipeline.partition=[6, 6, 6, 6]", "pipeline.partition", (6, 6, 6, 6)),
        ("output.summary=", "output.summary", None),
    ],
)
def test_an_override_changes_one_value(override, path, value):
    found = loads(SMALL, overrides=[override])
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    assert found == value


def test_an_override_writes_out_what_was_written_short():
    text = SMALL.replace("1f1b", "interleaved_1f1b")
    assert loads(text, overrides=["pipeline.schedule.chunks=3"]).pipeline.schedule.parameters["chunks"] == 3
    device = loads(SMALL, overrides=["hardware.nodes[1].devices[1].memory=16 GiB"]).hardware.nodes[1].devices[1]
    assert (device.type, device.memory) == ("l4", 16 * 2**30)


def test_later_overrides_win():
    overrides = ["pipeline.microbatches=8", "pipeline.microbatches=24"]
    assert loads(SMALL, overrides=overrides).pipeline.microbatches == 24


def test_an_override_may_repair_what_is_wrong_in_the_file():
    text = SMALL.replace("16", ".inf")
    assert loads(text, overrides=["pipeline.microbatches=4"]).pipeline.microbatches == 4


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "pipeline.microbatches=8.5",
            "--set pipeline.microbatches=8.5: pipeline.microbatches: got 8.5, expected a whole number",
        ),
        (
            "pipeline.microbatch=8",
            "--set pipeline.microbatch=8: pipeline.microbatch: unknown key; did you mean microbatches?",
        ),
        (
            "pipeline.microbatches",
            (
                "--set pipeline.microbatches: expected KEY=VALUE, such as pipeline.microbatches=16 or "
                "hardware.nodes[0].count=2"
            ),
        ),
        (
            "hardware.nodes[7].name=x",
            "--set hardware.nodes[7].name=x: there is no entry [7]: hardware.nodes is a list of 2",
        ),
        (
            "pipeline.microbatches.x=1",
            "--set pipeline.microbatches.x=1: there is no key x: pipeline.microbatches is no mapping",
        ),
        (
            "pipeline[0]=1",
            "--set pipeline[0]=1: there is no entry [0]: pipeline is no list",
        ),
        (
            "pipeline.partition=[1",
            (
                "--set pipeline.partition=[1: pipeline.partition: not YAML: expected ',' or ']', "
                "but got '<stream end>' (while parsing a flow sequence)"
            ),
        ),
        (
            "simulation.seed=.nan",
            "--set simulation.seed=.nan: simulation.seed: got .nan, expected a finite number",
        ),
    ],
)
def test_errors_of_an_override_name_it(override, message):
    assert message_of(SMALL, overrides=[override]) == message


def test_defaults_that_follow_from_others_are_filled_in():
    spec = loads(SMALL)
    assert spec.pipeline.model.transformer().layers == spec.pipeline.model.layers == 24
    assert spec.pipeline.sequence_length == 1024
    assert spec.optimizer.state_bytes == 12  # Adam in mixed precision: Rajbhandari et al. 2020, section 3.1
    assert spec.optimizer.tied_embeddings is True
    assert loads(SMALL, overrides=["pipeline.precision=fp32"]).optimizer.state_bytes == 8
    assert loads(SMALL, overrides=["optimizer.kind=sgd"]).optimizer.state_bytes == 4
    assert loads(SMALL, overrides=["pipeline.model=llama2-7b"]).optimizer.tied_embeddings is False
    interleaved = loads(SMALL, overrides=["pipeline.schedule=interleaved_1f1b"]).pipeline.schedule
    assert interleaved.parameters["chunks"] == 2


def test_a_changed_model_keeps_the_proportions_of_the_named_one():
    model = loads(SMALL, overrides=["pipeline.model.hidden=2048"]).pipeline.model.transformer()
    assert (model.hidden, model.ffn_hidden, model.head_dim, model.kv_heads) == (2048, 8192, 128, 16)
    model = loads(SMALL, overrides=["pipeline.model={name: llama3-8b, layers: 8}"]).pipeline.model.transformer()
    assert (model.layers, model.kv_heads, model.ffn_hidden, model.gated) == (8, 8, 14336, True)


def test_a_model_by_shape_has_the_proportions_of_gpt():
    shape = "{layers: 8, hidden: 512, heads: 8, vocab: 1000}"
    spec = loads(SMALL, overrides=[f"pipeline.model={shape}", "pipeline.sequence_length=4096"])
    model = spec.pipeline.model.transformer()
    assert (model.ffn_hidden, model.kv_heads, model.head_dim, model.max_positions) == (2048, 8, 64, 4096)


def test_nodes_and_devices_with_counts_are_listed_one_by_one():
    text = SMALL.replace("- devices: [l4, l4]", "- {name: slow, count: 2, devices: [{type: l4, count: 2}]}")
    hosts = loads(text).hardware.hosts()
    assert [host.name for host in hosts] == ["node0", "slow0", "slow1"]
    assert hosts[2].device_ids == ("slow1/0", "slow1/1")
    assert [device.type for device in hosts[0].devices] == ["h100", "h100"]


def test_the_placement_decides_the_order_and_number_of_ranks():
    spec = loads(SMALL, overrides=["hardware.placement=[node1/1, node0/0]"])
    assert spec.hardware.ranks() == ("node1/1", "node0/0")
    assert spec.shape().num_ranks == 2


def outcome(text, *overrides):
    """A spec, or how every line of the error begins."""
    try:
        assert isinstance(loads(text, overrides=overrides), Spec)
    except SpecError as error:
        begins = {re.split(r"(?<=^spec:)|(?<=^--set)", line)[0] for line in str(error).split("\n")} - {"... and"}
        return begins.pop() if len(begins) == 1 else f"{begins}"
    return "a spec"


@given(text=st.text(max_size=200))
@settings(deadline=None, max_examples=60)
def test_any_text_is_a_spec_or_a_spec_error(text):
    assert outcome(text) in ("a spec", "spec:")


LINES = starter().splitlines()
PIECES = st.sampled_from(
    ["", "0", "-1", "true", "null", ".nan", "[]", "{}", "[[1]]", "{a: {b: c}}", "'x'", "1e99", "9 ms", "*a", "&a", "!t"]
)


@given(edits=st.lists(st.tuples(st.integers(0, len(LINES) - 1), st.integers(0, 40), PIECES), min_size=1, max_size=4))
@settings(deadline=None, max_examples=60)
def test_a_starter_with_values_overwritten_is_a_spec_or_a_spec_error(edits):
    lines = list(LINES)
    for number, column, piece in edits:
        key, colon, _ = lines[number].partition(":")
        lines[number] = f"{key}: {piece}" if colon else lines[number][:column] + piece
    assert outcome("\n".join(lines)) in ("a spec", "spec:")


@given(data=st.binary(max_size=100))
@settings(deadline=None, max_examples=50)
def test_any_bytes_are_a_spec_or_a_spec_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_bytes(data)
    with pytest.raises(SpecError):
        load(file)


@given(override=st.text(max_size=60) | st.from_regex(r"[a-z.\[\]0-9]{1,30}=.{0,10}"))
@settings(deadline=None, max_examples=60)
def test_any_override_is_applied_or_a_spec_error(override):
    assert outcome(SMALL, override) in ("a spec", "spec:", "--set")
