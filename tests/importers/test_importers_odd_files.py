"""Files that nobody means: each is a pointed error, and none takes memory for what it names."""

import json
from pathlib import Path

import pytest

from hops.errors import TraceError, UsageError
from hops.importers.assemble import Origin, assemble
from hops.importers.base import read_trace
from hops.importers.events import EventFilter, Events
from hops.importers.megatron.launch import read_launch
from hops.importers.megatron.trace_line import BadLineError, read_object
from hops.program.action import Op

EVENT = {"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "ts": 1, "dur": 1, "pid": 1, "tid": 1}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_a_line_of_brackets_without_end_is_malformed(text):
    with pytest.raises(BadLineError, match=r"expected one JSON object a line"):
        read_object(text)


def test_a_profile_of_brackets_without_end_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(TraceError, match=r"a\.json: cannot be read as a profile"):
        read_trace(tmp_path / "a.json", format_name="kineto")


def test_a_rank_of_two_milliards_takes_no_memory_for_those_between():
    """A step's ranks were a row of bits as long as the greatest rank: 2 GiB an iteration."""
    rank = 2**31 - 1
    events = Events([Path("x.csv")])
    for iteration in range(100):
        start = iteration * 100
        events.add(iteration, rank, 0, Op.F, 0, 0, 1, start, start + 10)
        events.add(iteration, rank, 0, Op.B, 0, 0, 1, start + 10, start + 20)
        events.add(iteration, rank, 0, Op.OPTIMIZER, -1, 0, 1, start + 20, start + 30)
    origin = Origin(devices=("x",), hosts=("y",))
    found = assemble(events, origin, EventFilter(lenient=False))
    assert len(found.trace) == 300


def test_a_launch_that_is_no_text_is_refused():
    with pytest.raises(UsageError, match=r"/dev/zero: got more than 1048576 bytes, expected a run folder"):
        read_launch(Path("/dev/zero"), ["h100"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseTimeNanoseconds": [1]}, r"baseTimeNanoseconds: got \[1\], expected nanoseconds"),
        (
            {"traceEvents": [EVENT | {"ts": float("inf")}]},
            r"traceEvents\[0\]: ts and dur: got \(inf, 1\), exp",
        ),
        ({"traceEvents": [EVENT | {"name": f"PP:{10**12}F0"}]}, r"no pipeline action in it"),
    ],
)
def test_a_profile_of_odd_values_is_refused(tmp_path, change, message):
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [EVENT], **change}))
    with pytest.raises(TraceError, match=message):
        read_trace(tmp_path / "a.json", format_name="kineto")
