"""The dashboard answers eight questions with the summary's own numbers, legibly."""

from contextlib import contextmanager

import numpy as np
import pytest
from viz_layout import drawn_texts, outside, overlapping
from viz_traces import MS, facts_of, looped_gpipe, one_f_one_b, trace_of

from hops.errors import UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.program.action import Action, Op
from hops.trace.trace import Stream
from hops.viz.canvas import blank
from hops.viz.dashboard import SHEET_IN, draw_dashboard, paint_dashboard
from hops.viz.headline import device_table, key_table, number
from hops.viz.panel import Board

CASES = {
    "4 ranks, split, 3 iterations, a fault": trace_of(one_f_one_b(4, 8, split=True), iterations=3, faults=[(1, 5, 12)]),
    "8 ranks, 2 chunks, long names": trace_of(
        looped_gpipe(8, 8, 2),
        rank_of_stage=tuple(range(8)) * 2,
        devices=("NVIDIA H100 80GB HBM3 SXM5 (custom bin, liquid cooled)", *(f"device kind {n}" for n in range(7))),
        schedule="interleaved_1f1b_with_a_long_name_from_a_plug_in",
    ),
    "64 ranks": trace_of(one_f_one_b(64, 32)),
    "1 rank, 1 microbatch": trace_of(one_f_one_b(1, 1), step=False),
    "hours": trace_of(one_f_one_b(2, 2), stretch=1e6),
}
TITLES = [
    "Stage use",
    "Device use",
    "Microbatch latency",
    "Bubble by cause",
    "Compute against exposed communication",
    "Link use and contention",
    "Peak memory against capacity",
    "Key figures",
]


@contextmanager
def dashboard(trace, facts=None):
    """The figure of a dashboard, and the summary it shows."""
    facts = facts or facts_of(trace)
    summary = summarize(trace, facts)
    with blank(width_in=SHEET_IN[0], height_in=SHEET_IN[1]) as figure:
        paint_dashboard(figure, Board(run=Iterations.of(trace, facts), summary=summary))
        yield figure, summary


@pytest.mark.parametrize("known", [True, False], ids=["all facts", "no facts"])
@pytest.mark.parametrize("trace", CASES.values(), ids=CASES)
def test_eight_panels_without_texts_that_overlap_or_leave_the_sheet(trace, known):
    with dashboard(trace, facts_of(trace) if known else RunFacts()) as (figure, _):
        texts = drawn_texts(figure)
    assert [title for title in TITLES if title in dict(texts)] == TITLES
    assert overlapping(texts) == []
    assert outside(texts, figure) == []


def heights(figure, panel, label):
    """Heights of the bars of one part in one panel."""
    (bars,) = [c for c in figure.axes[panel].collections if c.get_gid() == f"bar-{label}"]
    return [float(np.ptp(path.vertices[:, 1])) for path in bars.get_paths()]


@pytest.fixture(scope="module")
def drawn():
    trace = CASES["4 ranks, split, 3 iterations, a fault"]
    with dashboard(trace) as (figure, summary):
        pass
    return figure, summary, trace


def test_stages_are_as_high_as_their_ops_take_of_the_iteration(drawn):
    figure, summary, _ = drawn
    forward = [100 * 8 * stage.forward_ms / summary.iteration_time.mean_ms for stage in summary.stages]
    assert heights(figure, 0, "F forward") == pytest.approx(forward)


def test_devices_are_as_high_as_they_are_used_and_all_parts_make_100_percent(drawn):
    figure, summary, _ = drawn
    busy = heights(figure, 1, "computing")
    assert busy == pytest.approx([100 * rank.utilization for rank in summary.ranks])
    exposed, idle = heights(figure, 1, "exposed communication"), heights(figure, 1, "idle")
    assert np.sum([busy, exposed, idle], axis=0) == pytest.approx(np.full(4, 100.0))


def test_causes_add_up_to_what_each_rank_idles(drawn):
    figure, summary, _ = drawn
    parts = [bars for bars in figure.axes[3].collections if (bars.get_gid() or "").startswith("bar-")]
    total = sum(np.array([np.ptp(path.vertices[:, 1]) for path in bars.get_paths()]) for bars in parts)
    assert total == pytest.approx([100 * (1 - rank.utilization) for rank in summary.ranks])
    assert len(parts) == 5


def test_computing_is_drawn_upwards_and_exposed_communication_downwards(drawn):
    figure, summary, _ = drawn
    assert heights(figure, 4, "computing") == pytest.approx([rank.busy_ms for rank in summary.ranks])
    below = sum(np.array(heights(figure, 4, kind)) for kind in ("messages", "reductions", "synchronisation"))
    assert below == pytest.approx([rank.exposed_ms for rank in summary.ranks])
    assert figure.axes[4].get_ylim()[0] < -max(below)


def test_memory_bars_are_as_high_as_their_parts_with_a_mark_at_each_capacity(drawn):
    figure, summary, _ = drawn
    for part, label in (("weights", "weights"), ("activations", "activations")):
        expected = [getattr(rank.memory, f"{part}_bytes") / 2**30 for rank in summary.ranks]
        assert heights(figure, 6, label) == pytest.approx(expected)
    (capacity,) = [c for c in figure.axes[6].collections if c.get_gid() == "capacity"]
    marks = [line[0][1] for line in capacity.get_segments()]
    assert marks == [rank.memory.capacity_bytes / 2**30 for rank in summary.ranks]


def test_the_histogram_counts_every_microbatch_once(drawn):
    figure, _, _ = drawn
    assert sum(bar.get_height() for bar in figure.axes[2].patches) == 3 * 8


def test_contention_is_drawn_as_the_part_of_a_links_time_with_several_messages():
    # One link for both directions: messages of 2 ms, the second starts when half of the first is over.
    trace = trace_of([[Action(0, Op.F, 0), Action(0, Op.F, 1)], [Action(1, Op.F, 0), Action(1, Op.F, 1)]], hop_ms=2)
    assert np.all(np.diff(trace.of(Stream.MESSAGE).start_ns) == MS)
    with dashboard(trace) as (figure, summary):
        one, several = figure.axes[5].containers
    window = summary.iteration_time.mean_ms
    assert one[0].get_width() == pytest.approx(100 * (2 + 2) / window)  # and 2 ms of the tied reduction
    assert several[0].get_width() == pytest.approx(100 * 1 / window)


def test_panels_without_data_say_so():
    trace = trace_of([[Action(0, Op.F, 0)]], step=False)
    with dashboard(trace, RunFacts()) as (figure, _):
        said = [text for text, _ in drawn_texts(figure)]
    assert "no microbatch came back to stage 0" in said
    assert "no rank ever idles" in said
    assert "the trace names no links" in said
    assert "the run does not say what its stages hold" in said


def test_key_figures_are_the_summarys(drawn):
    _, summary, trace = drawn
    table = dict(key_table(summary))
    assert table["iteration, mean"] == "38.5 ms"
    assert table["iterations measured"] == "3 after 0 of warm-up"
    assert table["bubble, pipeline"] == f"{100 * summary.bubble.pipeline.fraction:.1f} %"
    assert table["peak memory, fullest rank"] == "14 GiB"
    without = dict(key_table(summarize(trace, RunFacts())))
    assert "tokens per second" in table
    assert set(without) < set(table)


def test_devices_are_listed_by_kind_with_their_ranks(drawn):
    _, summary, _ = drawn
    expected = [("A100-80G-SXM", "2 ranks: 0, 3"), ("L4", "1 rank: 1"), ("RTX 4090", "1 rank: 2")]
    assert device_table(summary) == expected


def test_devices_that_are_named_by_kind_and_host_are_listed_by_kind():
    trace = trace_of(one_f_one_b(4, 2), devices=("h100 node0/0", "h100 node0/1", "l4 node0/2", "h100 node0/3"))
    expected = [("h100", "3 ranks: 0-1, 3"), ("l4", "1 rank: 2")]
    assert device_table(summarize(trace, RunFacts())) == expected


@pytest.mark.parametrize(
    ("value", "text"), [(1234567.8, "1,234,568"), (99.95, "100"), (12.345, "12.3"), (0.01234, "0.0123"), (0, "0")]
)
def test_numbers_have_three_digits_or_all_before_the_point(value, text):
    assert number(value) == text


def test_the_same_run_gives_the_same_bytes(tmp_path):
    trace = CASES["4 ranks, split, 3 iterations, a fault"]
    facts = facts_of(trace)
    for name in ("a.svg", "b.svg"):
        draw_dashboard(trace, summarize(trace, facts), facts, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_an_unknown_suffix_is_refused(tmp_path):
    trace = CASES["1 rank, 1 microbatch"]
    with pytest.raises(UsageError, match=r"got suffix '\.gif', expected \.png, \.svg or \.pdf; rename the picture"):
        draw_dashboard(trace, summarize(trace, RunFacts()), RunFacts(), tmp_path / "a.gif")
