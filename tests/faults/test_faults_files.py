"""Plans as files come back equal; wrong files and wrong availability traces are told where they are wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import UsageError
from hops.faults.draw import load_availability
from hops.faults.inventory import Inventory
from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan, load_plan, plan_to_json, save_plan

S = 1_000_000_000


@st.composite
def faults(draw):
    kind = draw(st.sampled_from(list(FaultKind)))
    start = draw(st.integers(0, 10**15))
    factor = {FaultKind.SLOW: st.floats(1, 1e6, exclude_min=True), FaultKind.LINK_SLOW: st.floats(1e-6, 0.999)}
    return Fault(
        kind=kind,
        target=draw(st.text(min_size=1, max_size=8)),
        start_ns=start,
        end_ns=draw(st.one_of(st.just(FOREVER), st.integers(start + 1, 2 * 10**15))),
        factor=draw(factor.get(kind, st.just(1.0))),
        cause=draw(st.text(max_size=8)),
    )


@given(found=st.lists(faults(), max_size=6))
@settings(deadline=None, max_examples=60)
def test_a_plan_comes_back_equal(found, tmp_path_factory):
    plan, path = FaultPlan.of(found), tmp_path_factory.mktemp("plans") / "plan.json"
    save_plan(plan, path)
    assert load_plan(path) == plan


def test_a_plan_is_readable_json_with_a_fault_a_line():
    plan = FaultPlan.of(
        [
            Fault(kind=FaultKind.SLOW, target="a/0", start_ns=5, end_ns=FOREVER, factor=1.5, cause="host a"),
            Fault(kind=FaultKind.STOP, target="a/1", start_ns=5, end_ns=9),
        ]
    )
    assert plan_to_json(plan) == (
        '{\n  "format": "hops-faults/1",\n  "faults": [\n'
        '    {"kind": "slow", "target": "a/0", "start_ns": 5, "end_ns": null, "factor": 1.5, "cause": "host a"},\n'
        '    {"kind": "stop", "target": "a/1", "start_ns": 5, "end_ns": 9}\n  ]\n}\n'
    )
    assert json.loads(plan_to_json(FaultPlan())) == {"format": "hops-faults/1", "faults": []}


GOOD = {"kind": "stop", "target": "a", "start_ns": 1, "end_ns": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "plan.json:1:2: is not JSON"),
        ("[]", "plan.json:1:1: got a list, expected a mapping of keys to values"),
        ("{}", "plan.json:1:1: format: missing; add it"),
        (
            '{"format": "hops-faults/9", "faults": []}',
            "plan.json:1:12: format: got 'hops-faults/9', expected hops-faults/1",
        ),
        ([3], "plan.json:1:40: faults[0]: got 3, expected a mapping"),
        ([{**GOOD, "when": 1}], "faults[0].when: unknown key, expected one of kind, target"),
        ([GOOD, {"kind": "stop", "target": "a", "start_ns": 1}], "faults[1].end_ns: missing; add it"),
        ([{**GOOD, "kind": "die"}], "faults[0].kind: got 'die', expected one of stop, slow, link-slow, link-down"),
        ([{**GOOD, "target": ""}], "target: got an empty text, expected a name"),
        ([{**GOOD, "start_ns": -1}], "start_ns: got -1, expected at least 0"),
        ([{**GOOD, "start_ns": 1.5}], "start_ns: got 1.5, expected a whole number"),
        ([{**GOOD, "end_ns": 1}], "faults[0]: end_ns: got 1, expected more than start_ns, 1, or null for never"),
        ([{**GOOD, "kind": "slow"}], "factor: got 1, expected more than 1 for slow"),
        ([{**GOOD, "kind": "slow", "factor": 0}], "factor: got 0, expected more than 1 for slow"),
        ([{**GOOD, "kind": "link-slow", "factor": 0}], "factor: got 0, expected more than 0 and less than 1"),
        ([{**GOOD, "factor": 2}], "factor: got 2, expected 1 or none for stop"),
        ([{**GOOD, "cause": 3}], "cause: got 3, expected text"),
    ],
)
def test_a_wrong_plan_is_told_where(text, message, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text if isinstance(text, str) else json.dumps({"format": "hops-faults/1", "faults": text}))
    with pytest.raises(UsageError) as caught:
        load_plan(path)
    assert message in str(caught.value)


def test_a_plan_that_is_not_there_or_no_text_is_told(tmp_path):
    with pytest.raises(UsageError, match=r"none\.json: cannot be read: there is no such file"):
        load_plan(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"binary\.json: is not text in UTF-8"):
        load_plan(tmp_path / "binary.json")


# Availability traces


CLUSTER = Inventory(
    kind_of={"a/0": "l4", "a/1": "l4", "b/0": "l4"},
    host_of={"a/0": "a", "a/1": "a", "b/0": "b"},
    nics={"a.nic": ("a.nic.out", "a.nic.in")},
    nics_of={"a": ("a.nic",)},
    links=("a.nic.out", "a.nic.in"),
)


def replayed(text, tmp_path):
    path = tmp_path / "spot.csv"
    path.write_text(text)
    return [(f.target, f.start_ns, f.end_ns) for f in load_availability(path, CLUSTER)]


def test_a_node_is_down_from_remove_to_add_and_a_host_takes_its_devices(tmp_path):
    text = "time,event,node\n# a spot fleet\n1.5,remove,a\n\n2 min,remove,b/0  # a device\n150,add,a\n"
    assert replayed(text, tmp_path) == [
        ("a/0", int(1.5 * S), 150 * S),
        ("a/1", int(1.5 * S), 150 * S),
        ("b/0", 120 * S, FOREVER),
    ]


def test_a_node_that_is_added_first_was_away_from_the_start(tmp_path):
    assert replayed("7,add,b\n9,remove,b\n", tmp_path) == [("b/0", 0, 7 * S), ("b/0", 9 * S, FOREVER)]
    assert replayed("0,add,b\n", tmp_path) == []


def test_the_cause_names_the_file(tmp_path):
    path = tmp_path / "spot.csv"
    path.write_text("1,remove,b\n")
    assert [fault.cause for fault in load_availability(path, CLUSTER)] == ["spot.csv: host b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "5,remove,a\n3,add,a\n",
            "spot.csv:2: got the time 3 s after 5 s, expected lines in order of time; sort the file",
        ),
        ("5,remove,c\n", "spot.csv:1: unknown target 'c': known are a/0, a/1, b/0, a, b, a.nic, a.nic.out, a.nic.in"),
        ("5,remove,a/7\n", "spot.csv:1: unknown target 'a/7': did you mean a/1?"),
        ("5,remove,a.nic\n", "spot.csv:1: got nic a.nic, expected a host or a device"),
        ("5,remove,a\n6,remove,a\n", "spot.csv:2: got remove of a, which is away already; expected add"),
        ("5,add,a\n6,add,a\n", "spot.csv:2: got add of a, which is there already; expected remove"),
        ("5,drop,a\n", "spot.csv:1: got 'drop', expected add or remove"),
        ("5;remove;a\n", "spot.csv:1: got '5;remove;a', expected time,add|remove,node, such as 120.5,remove,node3"),
        ("soon,remove,a\n", "spot.csv:1: got the time 'soon', expected seconds, or a time such as 2 h"),
        ("-1,remove,a\n", "spot.csv:1: got the time '-1', expected at least 0 s"),
        ("nan,remove,a\n", "spot.csv:1: got the time 'nan', expected at least 0 s"),
    ],
)
def test_a_wrong_trace_is_told_by_file_and_line(text, message, tmp_path):
    with pytest.raises(UsageError) as caught:
        replayed(text, tmp_path)
    assert message in str(caught.value)


def test_a_trace_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageError, match=r"none\.csv: cannot be read: there is no such file"):
        load_availability(tmp_path / "none.csv", CLUSTER)


def refusal(load, path, *arguments):
    """What a reader says of a file; just its name, with a colon, if it takes it."""
    try:
        load(path, *arguments)
    except UsageError as error:
        return str(error)
    return f"{path.name}:"


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["stop", "slow", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "factor", "x"]), inner),
    max_leaves=12,
)


@given(content=st.lists(NESTED, max_size=3))
@settings(deadline=None, max_examples=150)
def test_any_json_is_a_plan_or_an_error_that_names_the_file(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "plan.json"
    path.write_text(json.dumps({"format": "hops-faults/1", "faults": content}))
    assert "plan.json" in refusal(load_plan, path)


@given(text=st.text(alphabet="0123456789.,-addremov/b\n# enait", max_size=60))
@settings(deadline=None, max_examples=150)
def test_any_text_is_a_trace_or_an_error_that_names_the_line(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "spot.csv"
    path.write_text(text)
    assert "spot.csv:" in refusal(load_availability, path, CLUSTER)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": ' + "9" * 5_000 + "}"])
def test_json_that_no_reader_takes_is_refused(text, tmp_path):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(UsageError, match="is not JSON"):
        load_plan(tmp_path / "plan.json")
    with pytest.raises(UsageError, match="cannot be read: embedded null byte"):
        load_plan(tmp_path / "a\0b.json")
