"""Files that a run leaves."""

import json

import numpy as np
import pytest

from hops.errors import UsageError
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.model.memory import StageMemory
from hops.program.action import Op
from hops.report.overview import write_chrome, write_summary
from hops.trace.trace import Stream, Trace, TraceMeta

META = TraceMeta(source="simulated", num_microbatches=1, rank_of_stage=(0,), devices=("H100",), hosts=("a",), routes={})
TRACE = Trace.from_columns(
    {
        "iteration": [0, 0, 1, 1],
        "rank": [0] * 4,
        "stream": [Stream.COMPUTE] * 4,
        "stage": [0] * 4,
        "op": [Op.F, Op.B, Op.F, Op.B],
        "microbatch": [0] * 4,
        "peer": [-1] * 4,
        "start_ns": [0, 1000, 3000, 4000],
        "end_ns": [1000, 3000, 4000, 6000],
        "bytes": [0] * 4,
    },
    META,
)
MEMORY = StageMemory(weights_bytes=100, activation_bytes=7)


def curve(tmp_path, facts):
    write_chrome(TRACE, tmp_path / "t.json", facts)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    return [(e["name"], e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C"]


def test_the_summary_file_is_the_summary_json(tmp_path):
    summary = summarize(TRACE, RunFacts())
    write_summary(summary, tmp_path / "s.json")
    assert (tmp_path / "s.json").read_text() == summary.to_json()
    assert json.loads((tmp_path / "s.json").read_text())["iteration_time"]["values_ms"] == [0.003, 0.003]


def test_a_chrome_trace_shows_memory_over_the_whole_run_warm_up_included(tmp_path):
    facts = RunFacts(stage_memory=(MEMORY,), warmup_iterations=1)
    assert curve(tmp_path, facts) == [
        ("rank 0 memory", 0, 107),
        ("rank 0 memory", 3, 107),
        ("rank 0 memory", 6, 100),
    ]


def test_without_stage_memory_it_shows_microbatches_in_flight(tmp_path):
    assert curve(tmp_path, RunFacts()) == [
        ("rank 0 in flight", 0, 1),
        ("rank 0 in flight", 3, 1),
        ("rank 0 in flight", 6, 0),
    ]


def test_not_a_number_never_gets_into_a_file(tmp_path):
    broken = summarize(TRACE, RunFacts(flop_per_microbatch=np.nan, peak_flop_per_s=(1.0,)))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_summary(broken, tmp_path / "s.json")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_written_is_named(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        write_summary(summarize(TRACE, RunFacts()), tmp_path)
