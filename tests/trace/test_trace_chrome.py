"""Chrome traces: well formed, nested, with arrows from who sends to who receives."""

import gzip
import json
from collections import Counter as Tally
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from hops.program.action import Op
from hops.trace.chrome import Counter, write_chrome_trace
from hops.trace.trace import Stream, Trace, TraceMeta

META = TraceMeta(
    source="simulated",
    num_microbatches=1,
    rank_of_stage=(0, 1),
    devices=("H100", "L4"),
    hosts=("node a", "node b"),
    routes={},
)


def trace_of(*rows, meta=META):
    """Rows as (rank, stream, stage, op, microbatch, peer, start, end, bytes)."""
    names = ("rank", "stream", "stage", "op", "microbatch", "peer", "start_ns", "end_ns", "bytes")
    columns = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    return Trace.from_columns(columns | {"iteration": [0] * len(rows)}, meta)


PIPELINE = trace_of(
    (0, Stream.COMPUTE, 0, Op.F, 0, -1, 0, 1000, 0),
    (0, Stream.MESSAGE, 0, Op.F, 0, 1, 1000, 1500, 64),
    (1, Stream.COMPUTE, 1, Op.F, 0, -1, 1500, 2500, 0),
    (1, Stream.COMPUTE, 1, Op.B, 0, -1, 2500, 4500, 0),
    (1, Stream.MESSAGE, 1, Op.B, 0, 0, 4500, 5000, 64),
    (0, Stream.COMPUTE, 0, Op.B, 0, -1, 5000, 7000, 0),
    (0, Stream.COLLECTIVE, -1, Op.GRAD_REDUCE, -1, -1, 7000, 7100, 0),
    (0, Stream.COMPUTE, -1, Op.OPTIMIZER, -1, -1, 7100, 7300, 0),
    (0, Stream.HOST, -1, Op.HOST, -1, -1, 7300, 7400, 0),
    (1, Stream.FAULT, -1, Op.F, -1, -1, 5000, 6000, 0),
)


def written(trace, tmp_path, counters=()):
    write_chrome_trace(trace, tmp_path / "run.json", counters)
    return json.loads((tmp_path / "run.json").read_text())["traceEvents"]


def test_every_row_is_one_slice_with_its_time_in_microseconds(tmp_path):
    slices = [e for e in written(PIPELINE, tmp_path) if e["ph"] == "X"]
    actions, others = ["0F0", "1F0", "1B0", "0B0"], ["gradient reduction", "optimizer", "host", "fault"]
    assert Tally(e["name"] for e in slices) == Tally([*actions, "0F0 to rank 1", "1B0 to rank 0", *others])
    forward = next(e for e in slices if e["name"] == "1F0")
    assert (forward["ts"], forward["dur"]) == (1.5, 1.0)
    assert forward["args"] == {"iteration": 0, "stage": 1, "op": "F", "microbatch": 0}
    message = next(e for e in slices if e["name"] == "0F0 to rank 1")
    assert (message["args"]["from_rank"], message["args"]["to_rank"], message["args"]["bytes"]) == (0, 1, 64)


def test_hosts_are_processes_and_ranks_are_threads_by_name(tmp_path):
    titles = [e for e in written(PIPELINE, tmp_path) if e["ph"] == "M"]
    assert [e["args"]["name"] for e in titles if e["name"] == "process_name"] == ["node a", "node b"]
    assert [e["args"]["name"] for e in titles if e["name"] == "thread_name"] == [
        "rank 0 H100",
        "rank 0 H100 communication",
        "rank 1 L4",
        "rank 1 L4 communication",
        "rank 1 L4 faults",
    ]


def test_no_thread_is_numbered_0_or_as_its_process_since_viewers_treat_those_differently(tmp_path):
    places = {(e["pid"], e["tid"]) for e in written(PIPELINE, tmp_path) if e["ph"] == "X"}
    assert all(tid > 0 and tid != pid for pid, tid in places)


def test_ranks_of_one_host_share_a_process(tmp_path):
    meta = TraceMeta(
        source="simulated",
        num_microbatches=1,
        rank_of_stage=(0, 1),
        devices=("a", "b"),
        hosts=("same", "same"),
        routes={},
    )
    trace = Trace.from_columns({name: getattr(PIPELINE, name) for name in PIPELINE.__slots__ if name != "meta"}, meta)
    assert {e["pid"] for e in written(trace, tmp_path)} == {1}


def test_arrows_lead_from_the_sender_through_its_message_to_the_receiver(tmp_path):
    events = written(PIPELINE, tmp_path)
    flows = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
    assert [[_slice_at(events, step) for step in flow] for flow in flows.values()] == [
        ["0F0", "0F0 to rank 1", "1F0"],
        ["1B0", "1B0 to rank 0", "0B0"],
    ]
    assert all([step["ph"] for step in flow] == ["s", "t", "f"] for flow in flows.values())


def test_arrows_need_no_message_rows(tmp_path):
    bare = PIPELINE.where(PIPELINE.stream != Stream.MESSAGE)
    assert [e["ph"] for e in written(bare, tmp_path) if e["ph"] in "stf"] == ["s", "f", "s", "f"]


def test_messages_that_overlap_lie_on_threads_of_their_own(tmp_path):
    rows = [(0, Stream.MESSAGE, 0, Op.F, m, 1, 10 * m, 10 * m + 25, 1) for m in range(6)]
    threads = defaultdict(list)
    for event in written(trace_of(*rows), tmp_path):
        if event["ph"] == "X":
            threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert len(threads) == 3
    for spans in threads.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_counters_are_curves_of_their_rank(tmp_path):
    curve = Counter(rank=1, name="memory", at_ns=np.array([0, 2000]), values=np.array([5, 7]))
    counts = [e for e in written(PIPELINE, tmp_path, [curve]) if e["ph"] == "C"]
    assert [(e["name"], e["pid"], e["ts"], e["args"]) for e in counts] == [
        ("rank 1 memory", 2, 0, {"value": 5}),
        ("rank 1 memory", 2, 2, {"value": 7}),
    ]


def test_a_name_that_ends_in_gz_is_packed(tmp_path):
    write_chrome_trace(PIPELINE, tmp_path / "run.json.gz")
    assert json.loads(gzip.decompress((tmp_path / "run.json.gz").read_bytes()))["displayTimeUnit"] == "ms"


@pytest.mark.parametrize("name", ['a"b', "Gerät\n1"])
def test_names_of_any_kind_stay_json(tmp_path, name):
    meta = TraceMeta(
        source="simulated", num_microbatches=1, rank_of_stage=(0,), devices=(name,), hosts=(name,), routes={}
    )
    events = written(trace_of((0, Stream.COMPUTE, 0, Op.F, 0, -1, 0, 1, 0), meta=meta), tmp_path)
    assert events[0]["args"]["name"] == name


def _slice_at(events, step):
    """The slice that a flow step binds to: the one of its thread that holds its time."""
    return next(
        e["name"]
        for e in events
        if e["ph"] == "X"
        and (e["pid"], e["tid"]) == (step["pid"], step["tid"])
        and e["ts"] <= step["ts"] < e["ts"] + e["dur"]
    )
