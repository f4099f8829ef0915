"""Anybody's runs come in as a small CSV; and importers are found by what a file looks like, or by name."""

import gzip
import re

import numpy as np
import pytest

from hops.errors import TraceError, UsageError
from hops.importers.base import IMPORTERS, read_trace
from hops.program.action import Op
from hops.trace.files import write_events

HEADER = "iteration,stage,op,microbatch,start_us,end_us"
ROWS = """
0,0,F,0,1000,2000.5
0,1,F,0,2100,3000
0,1,B,0,3000,5000
0,0,B,0,5100,7000
0,0,OPTIMIZER,,9000,9500
0,1,OPTIMIZER,,9000,9400
"""


def write(tmp_path, rows=ROWS, header=HEADER, name="run.csv"):
    file = tmp_path / name
    file.write_text(f"{header}{rows}")
    return file


def test_what_the_lines_say_is_the_trace(tmp_path):
    trace = read_trace(write(tmp_path)).trace
    assert trace.start_ns.tolist() == [0, 1_100_000, 2_000_000, 4_100_000, 8_000_000, 8_000_000]
    assert trace.duration_ns[0] == 1_000_500
    assert trace.rank.tolist() == [0, 1, 1, 0, 1, 0]
    assert trace.meta.rank_of_stage == (0, 1)
    assert trace.meta.devices == ("rank 0", "rank 1")
    assert [Op(op).name for op in trace.op.tolist()] == ["F", "F", "B", "B", "OPTIMIZER", "OPTIMIZER"]


@pytest.mark.parametrize(("unit", "factor"), [("ns", 1e3), ("us", 1), ("ms", 1e-3), ("s", 1e-6)])
def test_times_may_be_in_any_unit(tmp_path, unit, factor):
    def scaled(row):
        *front, start, end = row.split(",")
        return ",".join([*front, f"{float(start) * factor:.10g}", f"{float(end) * factor:.10g}"])

    rows = "\n" + "\n".join(map(scaled, ROWS.split()))
    header = HEADER.replace("_us", f"_{unit}")
    assert read_trace(write(tmp_path, rows, header)).trace == read_trace(write(tmp_path, name="us.csv")).trace


def test_columns_may_come_in_any_order_with_ranks_devices_and_hosts(tmp_path):
    rows = "\n" + "\n".join(f"{row},{row.split(',')[1]},L4,host{row.split(',')[1]}" for row in ROWS.split())
    trace = read_trace(write(tmp_path, rows, HEADER + ",rank,device,host")).trace
    assert trace.meta.devices == ("L4", "L4")
    assert trace.meta.hosts == ("host0", "host1")


def test_packed_files_are_read(tmp_path):
    (tmp_path / "run.csv.gz").write_bytes(gzip.compress((HEADER + ROWS).encode()))
    assert len(read_trace(tmp_path / "run.csv.gz").trace) == 6


BAD = {
    "0,0,F,0,1000": "got 5 values",
    "0,0,X,0,1000,2000": "op: got 'X', expected one of F, B, I, W, OPTIMIZER",
    "0,-1,F,0,1000,2000": "stage: got '-1', expected a whole number",
    "0,0,F,,1000,2000": "microbatch: got ''",
    "0,0,F,0,2000,1000": "end: got 1000, before start 2000",
    "0,0,F,0,nan,1000": "start: got 'nan', expected a number >= 0",
    "0,0,F,0,x,1000": "start: got 'x'",
    "0,0,F,0,-5,1000": "start: got '-5'",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_named_and_lenient_reading_drops_it(tmp_path, line):
    file = write(tmp_path, f"{ROWS}{line}\n")
    with pytest.raises(TraceError, match=rf"run\.csv:8: {re.escape(BAD[line])}.*--lenient"):
        read_trace(file)
    found = read_trace(file, lenient=True)
    assert found.dropped == {"bad line": 1}
    assert len(found.trace) == 6


@pytest.mark.parametrize(
    "header", [HEADER.replace("end_us", "end_ms"), HEADER.replace("op,", ""), HEADER + ",colour", HEADER + ",stage"]
)
def test_a_wrong_header_says_what_is_expected(tmp_path, header):
    with pytest.raises(TraceError, match=rf"run\.csv:1: got the columns .*expected such as {HEADER}"):
        read_trace(write(tmp_path, header=header))


def test_a_file_without_lines_is_refused(tmp_path):
    with pytest.raises(TraceError, match="no event in it, expected lines under the header"):
        read_trace(write(tmp_path, "\n"))


def test_stages_and_ranks_have_no_gaps(tmp_path):
    with pytest.raises(TraceError, match="no line of rank 1, expected ranks from 0 to 2"):
        read_trace(write(tmp_path, ROWS.replace("0,1,", "0,2,")))


def test_raw_events_of_hops_are_told_from_the_small_csv(tmp_path):
    trace = read_trace(write(tmp_path)).trace
    for name in ("own.csv", "own.csv.gz", "own.parquet"):
        write_events(trace, tmp_path / name)
        assert read_trace(tmp_path / name).trace == trace


def test_an_importer_can_be_named(tmp_path):
    file = write(tmp_path, name="run.txt")
    with pytest.raises(UsageError, match=r"no importer recognises it .*name one with --format"):
        read_trace(file)
    assert len(read_trace(file, format_name="csv").trace) == 6
    with pytest.raises(UsageError, match="unknown importer 'cvs': did you mean 'csv'"):
        read_trace(file, format_name="cvs")


def test_a_path_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UsageError, match="no such file or folder"):
        read_trace(tmp_path / "nowhere")


@pytest.mark.parametrize("name", IMPORTERS.names())
def test_no_importer_recognises_an_empty_folder_or_an_empty_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").write_text("")
    importer = IMPORTERS.get(name)()
    assert not importer.recognises(tmp_path / "folder")
    assert not importer.recognises(tmp_path / "empty.csv")


def test_columns_hold_what_was_read_for_many_rows(tmp_path):
    """Conservation: busy time in is busy time out."""
    rows = "".join(
        f"{n},0,F,0,{1000 * n},{1000 * n + 300}\n{n},0,B,0,{1000 * n + 300},{1000 * n + 900}\n" for n in range(500)
    )
    trace = read_trace(write(tmp_path, f"\n{rows}")).trace
    assert trace.num_iterations == 500
    assert int(trace.duration_ns.sum()) == 500 * 900_000
    np.testing.assert_array_equal(np.unique(trace.iteration), np.arange(500))
