"""Raw events: what is written is read back equal, and wrong files are named with line, value and what is expected."""

import gzip
import json
import sys
from importlib.util import find_spec
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.errors import TraceError, UsageError
from hops.program.action import Op
from hops.trace.files import HEADER, read_events, write_events
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace, TraceMeta

META = TraceMeta(
    source="simulated",
    schedule="1f1b",
    num_microbatches=8,
    rank_of_stage=(0, 1, 1, 0),
    devices=("H100", "L4, second"),
    hosts=("käse", 'quo"te'),
    links=(LinkMeta(name="nic", bandwidth=3.125e9), LinkMeta(name="free", bandwidth=inf)),
    routes={(0, 1): (0, 1), (1, 0): ()},
)
ENDINGS = (".csv", ".csv.gz", *([".parquet"] if find_spec("pyarrow") else []))  # an extra


@st.composite
def traces(draw):
    size = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start = rng.integers(0, 2**40, size)
    columns = {
        "iteration": rng.integers(0, 1000, size),
        "rank": rng.integers(0, 2, size),
        "stream": rng.choice(list(Stream), size),
        "stage": rng.integers(0, 4, size),
        "op": rng.choice(list(Op), size),
        "microbatch": rng.integers(0, 8, size),
        "peer": rng.integers(-1, 2, size),
        "start_ns": start,
        "end_ns": start + rng.integers(0, 2**40, size),
        "bytes": rng.integers(0, 2**50, size),
    }
    return Trace.from_columns(columns, META)


TRACE = Trace.from_columns(
    {
        "iteration": [0, 0, 0],
        "rank": [0, 0, 1],
        "stream": [Stream.COMPUTE, Stream.MESSAGE, Stream.COMPUTE],
        "stage": [0, 0, -1],
        "op": [Op.F, Op.F, Op.OPTIMIZER],
        "microbatch": [3, 3, -1],
        "peer": [-1, 1, -1],
        "start_ns": [0, 10, 20],
        "end_ns": [10, 15, 30],
        "bytes": [0, 4096, 0],
    },
    META,
)


@settings(deadline=None, max_examples=30)
@given(traces(), st.sampled_from(ENDINGS))
def test_reading_gives_back_what_was_written(tmp_path_factory, trace, ending):
    path = tmp_path_factory.mktemp("events") / f"run{ending}"
    write_events(trace, path)
    assert read_events(path) == trace


@pytest.mark.parametrize("rows", [0, 65_536, 65_537])
def test_pieces_join_without_a_seam(tmp_path, rows):
    times = np.arange(rows)
    columns = {name: np.zeros(rows) for name in COLUMNS} | {"start_ns": times, "end_ns": times + 1}
    trace = Trace.from_columns(columns, META)
    write_events(trace, tmp_path / "run.csv")
    assert read_events(tmp_path / "run.csv") == trace


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_trace_gives_the_same_bytes(tmp_path, ending):
    for name in ("a", "b"):
        write_events(TRACE, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_csv_reads_as_documented(tmp_path):
    write_events(TRACE, tmp_path / "run.csv")
    head, *lines = (tmp_path / "run.csv").read_text().splitlines()
    assert json.loads(head.removeprefix("# "))["rank_of_stage"] == [0, 1, 1, 0]
    assert lines == [
        "iteration,rank,stream,stage,op,microbatch,peer,start_ns,end_ns,bytes",
        "0,0,COMPUTE,0,F,3,-1,0,10,0",
        "0,0,MESSAGE,0,F,3,1,10,15,4096",
        "0,1,COMPUTE,-1,OPTIMIZER,-1,-1,20,30,0",
    ]


def test_metadata_needs_only_what_cannot_be_guessed(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(
        '# {"source": "measured", "num_microbatches": 1, "rank_of_stage": [0], "devices": ["x"], "hosts": ["y"]}\n'
        f"{HEADER}\n0,0,COMPUTE,0,B,0,-1,0,10,0\r\n"
    )
    assert read_events(path).meta.links == ()
    assert read_events(path).op.tolist() == [Op.B]


GOOD = "0,0,COMPUTE,0,F,0,-1,0,10,0"
NEEDED = {"source": "measured", "num_microbatches": 1, "rank_of_stage": [0], "devices": ["x"], "hosts": ["y"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,0,COMPUTE,0,F,0,-1,0,10", r":4: got 9 values \('0,0,COMPUTE,0,F,0,-1,0,10'\), expected 10: iteration,rank"),
        ("0,0,CPU,0,F,0,-1,0,10,0", r":4: stream: got 'CPU', expected one of COMPUTE, MESSAGE, COLLECTIVE"),
        ("0,0,COMPUTE,0,G,0,-1,0,10,0", r":4: op: got 'G', expected one of F, B, I, W, OPTIMIZER"),
        ("0,0,COMPUTE,0,F,0,-1,0.5,10,0", r":4: start_ns: got '0.5', expected an integer"),
        ("0,0,COMPUTE,0,F,0,-1,0,nan,0", r":4: end_ns: got 'nan', expected an integer"),
        ("0,1,COMPUTE,0,F,0,-1,0,10,0", r":4: .*; rank: expected 0 to 0, as the metadata has it"),
        ("0,0,COMPUTE,7,F,0,-1,0,10,0", r":4: .*; stage: expected -1 to 0"),
        ("0,0,COMPUTE,-1,F,0,-1,0,10,0", r":4: .*; stage and microbatch: expected from 0 on for F, B, I and W"),
        ("0,0,MESSAGE,0,F,0,4,0,10,0", r":4: .*; peer: expected -1 to 0"),
        ("0,0,COMPUTE,0,F,0,-1,10,5,0", r":4: .*; end_ns: expected at least start_ns"),
        ("0,0,COMPUTE,0,F,0,-1,-5,5,0", r":4: .*; start_ns: expected a number from 0 on that fits int64"),
        ("9999999999,0,COMPUTE,0,F,0,-1,0,5,0", r":4: .*; iteration: expected a number from 0 on that fits int32"),
        (f"0,0,COMPUTE,0,F,0,-1,0,{'9' * 30},0", r":4: end_ns: got '9{30}', expected an integer"),
        ("0,0,COMPUTE,0,F,2147483647,-1,0,5,0", r":4: .*; microbatch: expected -1 to 0, as the metadata has it"),
        (
            f"0,0,COMPUTE,0,F,0,-1,0,{2**63 - 1},0",
            rf":4: .*; end_ns: expected at most {2**61}, for 1 ranks to fit",
        ),
        ("", r":4: got 1 values \(''\), expected 10"),
    ],
)
def test_a_wrong_row_is_named_with_its_line(tmp_path, line, message):
    path = tmp_path / "bad.csv"
    path.write_text(f"# {json.dumps(NEEDED)}\n{HEADER}\n{GOOD}\n{line}\n{GOOD}\n")
    with pytest.raises(TraceError, match=rf"bad\.csv{message}"):
        read_events(path)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", r":1: got '', expected a comment with metadata: # \{"),
        ("iteration,rank", r":1: got 'iteration,rank', expected a comment with metadata"),
        ("# nonsense", r":1:3: is not JSON: Expecting value\nexpected metadata such as \{"),
        ("# [1]", r":1:3: got a list, expected a mapping"),
        (
            f"# {json.dumps(NEEDED | {'format': 'other/9'})}",
            r":1:115: format: got 'other/9', expected hops-trace/1",
        ),
        (
            f"# {json.dumps(NEEDED | {'source': 'guessed'})}",
            r":1:14: source: got 'guessed', expected one of simulated, measured",
        ),
        (f"# {json.dumps(NEEDED | {'num_microbatches': 2**31})}", r":1:46: num_microbatches: got 2147483648, exp"),
        (f"# {json.dumps(NEEDED | {'devices': 'x'})}", r":1:82: devices: got 'x', expected a list"),
        (
            f"# {json.dumps({'source': 'measured'})}",
            r":1:3: num_microbatches: missing; add it\n.*rank_of_stage: missing",
        ),
        (f"# {json.dumps(NEEDED | {'hosts': []})}", r":1:3: got 0 hosts for 1 devices"),
        (
            f"# {json.dumps(NEEDED | {'rank_of_stage': [3]})}",
            r":1:3: rank_of_stage \[3\] names ranks beyond the 1 devices",
        ),
        (
            f"# {json.dumps(NEEDED | {'routes': [[0, 1, [5]]]})}",
            r":1:3: routes name links beyond the 0",
        ),
    ],
)
def test_wrong_metadata_is_named(tmp_path, head, message):
    path = tmp_path / "bad.csv"
    path.write_text(f"{head}\n{HEADER}\n")
    with pytest.raises(TraceError, match=rf"bad\.csv{message}"):
        read_events(path)


def test_wrong_column_names_are_shown_beside_the_right_ones(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(f"# {json.dumps(NEEDED)}\nrank,stage\n")
    with pytest.raises(
        TraceError, match=r"bad\.csv:2: got 'rank,stage', expected the column names iteration,rank,stream"
    ):
        read_events(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_not_there_or_broken_is_a_trace_error(tmp_path, ending):
    with pytest.raises(TraceError, match="cannot be read"):
        read_events(tmp_path / f"none{ending}")
    (tmp_path / f"torn{ending}").write_bytes(gzip.compress(b"# {}")[:-9] if "gz" in ending else b"\xff\xfe\x00")
    with pytest.raises(TraceError, match=r"torn"):
        read_events(tmp_path / f"torn{ending}")


def test_parquet_of_something_else_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    parquet.write_table(pyarrow.table({"rank": [1]}), path)
    with pytest.raises(TraceError, match=r"no HOPS trace: it lacks the columns iteration, stream"):
        read_events(path)


def test_rows_in_parquet_are_checked_too(tmp_path):
    pytest.importorskip("pyarrow")
    bad = Trace.from_columns({name: getattr(TRACE, name) for name in COLUMNS} | {"rank": [0, 0, 9]}, META)
    write_events(bad, tmp_path / "bad.parquet")
    with pytest.raises(TraceError, match=r"bad\.parquet: rank: expected 0 to 1"):
        read_events(tmp_path / "bad.parquet")


def test_without_pyarrow_the_message_names_the_extra_and_the_way_around(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'hops-sim\[parquet\]'.*\.csv or \.csv\.gz"):
        write_events(TRACE, tmp_path / "run.parquet")


def test_an_unknown_ending_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"run\.txt: unknown format .* ends in \.csv, \.csv\.gz, \.parquet"):
        write_events(TRACE, tmp_path / "run.txt")
