"""Faults, and what they threw away, in files: rows come back equal, and Perfetto shows them on lanes of their own."""

import json

import pytest

from hops.program.action import Op
from hops.trace.chrome import write_chrome_trace
from hops.trace.files import read_events, write_events
from hops.trace.trace import COLUMNS, Stream, Trace, TraceMeta

ROWS = [
    (0, 0, Stream.LOST, 0, Op.F, 0, -1, 0, 4, 0),
    (0, 0, Stream.FAULT, -1, Op.HOST, -1, -1, 4, 8, 0),
    (0, 0, Stream.COMPUTE, 0, Op.F, 0, -1, 8, 18, 0),
    (0, 0, Stream.LOST, 0, Op.F, 0, 1, 18, 20, 64),
    (0, 0, Stream.FAULT, -1, Op.HOST, -1, 1, 20, 22, 0),
    (0, 1, Stream.LOST, -1, Op.OPTIMIZER, -1, -1, 20, 22, 0),
]
TRACE = Trace.from_columns(
    dict(zip(COLUMNS, zip(*ROWS, strict=True), strict=True)),
    TraceMeta(
        source="simulated",
        num_microbatches=1,
        rank_of_stage=(0, 1),
        devices=("a", "b"),
        hosts=("x", "y"),
        routes={},
    ),
)


@pytest.mark.parametrize("name", ["events.csv", "events.csv.gz", "events.parquet"])
def test_lost_rows_come_back_equal(name, tmp_path):
    write_events(TRACE, tmp_path / name)
    assert read_events(tmp_path / name) == TRACE


def test_perfetto_shows_faults_and_losses_on_lanes_of_their_own(tmp_path):
    write_chrome_trace(TRACE, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lane = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    shown = [(event["name"], event["cat"], lane[event["tid"]]) for event in events if event["ph"] == "X"]
    assert shown == [
        ("lost: 0F0", "lost", "rank 0 a faults"),
        ("fault", "fault", "rank 0 a faults"),
        ("0F0", "F", "rank 0 a"),
        ("lost: 0F0 to rank 1", "lost", "rank 0 a faults"),
        ("link fault to rank 1", "fault", "rank 0 a faults"),
        ("lost: optimizer", "lost", "rank 1 b faults"),
    ]
