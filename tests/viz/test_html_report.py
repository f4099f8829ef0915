"""What a report holds, without a browser: columns come back as they were, and everything is inside one file."""

import base64
import json
import re
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from viz_traces import one_f_one_b, trace_of

import hops
from hops.errors import UsageError
from hops.metrics.summary import RunFacts
from hops.viz.html import run as shown_run
from hops.viz.html.columns import ColumnStore
from hops.viz.html.page import render_report, report_of_runs, write_report
from hops.viz.html.run import ShownRun

NUMBERS = st.integers(-(2**52), 2**52)
COLUMNS = st.lists(st.lists(NUMBERS, max_size=9), max_size=3)


def read(store, place):
    """As the page's script does."""
    raw = zlib.decompress(base64.b64decode(store.text()))
    values = np.frombuffer(raw, dtype=f"<{place['type']}", count=place["length"], offset=place["at"])
    return np.cumsum(values.astype(np.float64)) if place["steps"] else values


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines with other work to do
@given(COLUMNS, st.booleans())
def test_columns_come_back_as_they_were(lists, steps):
    store = ColumnStore()
    places = [store.add(np.array(values, dtype=np.int64), steps=steps) for values in lists]
    for values, place in zip(lists, places, strict=True):
        assert place["at"] % 8 == 0
        assert read(store, place).tolist() == values


@pytest.mark.parametrize(("values", "kind"), [([0, 255], "u1"), ([-1, 3], "i1"), ([256], "u2"), ([1 << 40], "f8")])
def test_columns_take_the_smallest_type_that_holds_them(values, kind):
    assert ColumnStore().add(np.array(values))["type"] == kind


def shown(name="run", **options):
    return ShownRun.of(name, trace_of(one_f_one_b(3, 4), iterations=2, **options), RunFacts())


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_a_report_names_nothing_outside_of_itself():
    page = render_report(report_of_runs("a run", [shown()]))
    assert re.findall(r"""(?:src|href)\s*=\s*["'][^"'#]""", page) == []
    assert "@import" not in page
    assert re.findall(r"url\((?!data:)", page) == []


def test_the_same_report_gives_the_same_bytes():
    first, second = (render_report(report_of_runs("a run", [shown()])) for _ in range(2))
    assert first == second


def test_a_name_cannot_end_the_script_that_it_stands_in():
    hostile = "</script><script>alert(1)</script>"
    page = render_report(report_of_runs(hostile, [shown(hostile)]))
    assert hostile not in page
    assert data_of(page)["runs"][0]["name"] == hostile


def test_rows_gaps_and_paths_of_a_report_are_those_of_the_run():
    store, run = ColumnStore(), shown()
    data = shown_run.run_data(run, store)
    rows = {name: read(store, place) for name, place in data["rows"].items()}
    trace = run.measured.trace
    assert rows["length"].sum() == trace.duration_ns.sum()
    assert len(rows["rank"]) == len(trace)
    gap_rows = read(store, data["gaps"]["row"])
    ended = gap_rows >= 0
    begins = rows["start"][gap_rows[ended].astype(int)]
    gap_ends = (read(store, data["gaps"]["start"]) + read(store, data["gaps"]["length"]))[ended]
    assert begins.tolist() == gap_ends.tolist()
    assert read(store, data["path"]["length"]).sum() == (run.measured.end_ns - run.measured.start_ns).sum()


def test_of_many_rows_the_first_iterations_are_shown_and_it_is_said(monkeypatch):
    run = shown()
    monkeypatch.setattr(shown_run, "MOST_ROWS", len(run.measured.trace) // 2)
    data = shown_run.run_data(run, store := ColumnStore())
    assert data["notes"] == ["The timeline shows the first 1 of 2 iterations; figures count all."]
    assert len(data["iterations"]) == 1
    assert set(read(store, data["rows"]["iteration"]).tolist()) == {0}


def test_answers_say_the_figures_of_the_summary():
    spec = hops.from_dict(
        {
            "pipeline": {"model": "gpt2-medium", "microbatches": 8},
            "hardware": {"nodes": [{"devices": ["h100", "l4", "h100", "h100"]}]},
        }
    )
    run = hops.simulate(spec)
    ours = ShownRun.of("1f1b", run.trace, run.facts)
    bubble, bottleneck, memory, change = report_of_runs("x", [ours]).answers
    assert bubble.answer.startswith(f"{100 * ours.summary.bubble.iteration.fraction:.1f} % of the ranks' time is idle")
    assert bottleneck.answer.startswith("Rank 1 (l4 node0/1) computes longest")
    assert "It also has the most work on the critical path" in bottleneck.answer
    assert "rank 3: " in memory.answer
    assert "--schedules" in change.answer


def test_runs_of_a_report_have_different_names():
    with pytest.raises(UsageError, match="got the names run, run, expected different ones"):
        report_of_runs("x", [shown(), shown()])


def test_a_report_ends_in_html(tmp_path):
    with pytest.raises(UsageError, match=r"expected a name that ends in \.html; rename it"):
        write_report(report_of_runs("x", [shown()]), tmp_path / "report.pdf")
