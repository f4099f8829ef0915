"""Files that no run writes are refused with their place, at once and without eating the memory."""

import pytest

from hops.errors import HopsError, TraceError
from hops.importers import read_trace
from hops.trace.files import HEADER
from hops.trace.trace import longest_ns

META = (
    '{{"source": "measured", "num_microbatches": {microbatches}, "rank_of_stage": [0], "devices": ["a"], '
    '"hosts": ["b"]{more}}}'
)
ROW = "0,0,COMPUTE,0,F,{microbatch},-1,0,{end},0"


def own(tmp_path, *, microbatches=1, microbatch=0, end=10, more=""):
    file = tmp_path / "events.csv"
    meta = META.format(microbatches=microbatches, more=more)
    file.write_text(f"# {meta}\n{HEADER}\n{ROW.format(microbatch=microbatch, end=end)}\n")
    return file


def test_a_microbatch_that_the_metadata_has_not_is_no_reason_to_fill_the_memory(tmp_path):
    with pytest.raises(TraceError, match=r"events\.csv:3: got .*; microbatch: expected -1 to 0, as the metadata"):
        read_trace(own(tmp_path, microbatch=2**31 - 2))


@pytest.mark.parametrize("microbatches", [0, -3, 2**31])
def test_numbers_of_microbatches_that_no_iteration_has(tmp_path, microbatches):
    with pytest.raises(TraceError, match=rf"events\.csv:1:46: num_microbatches: got {microbatches}, expected at "):
        read_trace(own(tmp_path, microbatches=microbatches))


def test_times_may_be_as_long_as_all_ranks_together_fit_64_bits(tmp_path):
    assert longest_ns(1) == 2**61
    assert read_trace(own(tmp_path, end=2**61)).trace.end_ns.tolist() == [2**61]
    with pytest.raises(TraceError, match=r"events\.csv:3: got .*; end_ns: expected at most 2305843009213693952, for 1"):
        read_trace(own(tmp_path, end=2**61 + 1))


@pytest.mark.parametrize("bandwidth", ["0", "-1", "NaN", "1" + 400 * "0", '"x"'])
def test_bandwidths_that_no_link_has(tmp_path, bandwidth):
    links = f', "links": [{{"name": "l", "bandwidth_bytes_per_s": {bandwidth}}}]'
    with pytest.raises(TraceError, match=r"events\.csv:1.*: links\[0\]\.bandwidth_bytes_per_s: got .*, expected "):
        read_trace(own(tmp_path, more=links))


def test_a_bomb_of_brackets_is_a_malformed_line(tmp_path):
    file = tmp_path / "events.csv"
    file.write_text(f"# {'[' * 100_000}\n{HEADER}\n")
    with pytest.raises(HopsError, match="is not JSON that can be read"):
        read_trace(file, format_name="hops")
    folder = tmp_path / "megatron_trace"
    folder.mkdir()
    (folder / "rank0.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(TraceError, match=r"rank0\.jsonl:1: .*expected one JSON object a line"):
        read_trace(tmp_path, format_name="megatron")
    (tmp_path / "rank0.json").write_text('{"traceEvents": ' + "[" * 100_000)
    with pytest.raises(TraceError, match=r"rank0\.json: cannot be read as a profile"):
        read_trace(tmp_path / "rank0.json")


def test_a_clock_that_is_wrong_by_a_century_is_named(tmp_path):
    rows = ["iteration,stage,op,microbatch,start_s,end_s", "0,0,F,0,0,1", "0,0,B,0,4000000000,4000000001"]
    (tmp_path / "run.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(
        TraceError, match=r"run\.csv:3: 0B0 of iteration 0 on rank 0 ends 2305843009 s or more after the"
    ):
        read_trace(tmp_path / "run.csv")
