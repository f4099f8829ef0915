"""A comparison shows every run whole, on one time axis, with its gain over the first."""

from contextlib import contextmanager

import pytest
from viz_layout import artists, boxes, drawn_texts, outside, overlapping
from viz_traces import MS, facts_of, looped_gpipe, one_f_one_b, trace_of

from hops.errors import UsageError
from hops.metrics.summarize import summarize
from hops.program.action import Op
from hops.trace.trace import Stream
from hops.viz.canvas import blank
from hops.viz.comparison import blocks_sheet, comparison_blocks, draw_comparison, paint_blocks


def runs_of(ranks, microbatches, **options):
    traces = {
        "1f1b": trace_of(one_f_one_b(ranks, microbatches), **options),
        "zb_h1": trace_of(one_f_one_b(ranks, microbatches, split=True), **options),
        "interleaved_1f1b": trace_of(
            looped_gpipe(ranks, microbatches, 2), rank_of_stage=tuple(range(ranks)) * 2, **options
        ),
    }
    return [(name, trace, summarize(trace, facts_of(trace)), facts_of(trace)) for name, trace in traces.items()]


@contextmanager
def comparison(runs):
    blocks = comparison_blocks(runs)
    sheet = blocks_sheet(blocks)
    with blank(width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_blocks(figure, blocks, sheet, title="title", subtitle="subtitle")
        yield figure


@pytest.mark.parametrize(("ranks", "microbatches"), [(1, 1), (4, 8), (16, 16), (64, 16)])
def test_no_text_overlaps_another_or_leaves_the_sheet(ranks, microbatches):
    with comparison(runs_of(ranks, microbatches)) as figure:
        texts = drawn_texts(figure)
    assert overlapping(texts) == []
    assert outside(texts, figure) == []


def test_all_actions_of_all_runs_are_drawn():
    runs = runs_of(4, 8)
    actions = [(trace.stream == Stream.COMPUTE) & (trace.op <= Op.W) for _, trace, _, _ in runs]
    with comparison(runs) as figure:
        assert sum(boxes(figure, f"op-{op}") for op in "FBIW") == sum(int(mask.sum()) for mask in actions)


def test_runs_share_the_axis_and_each_starts_at_zero_after_its_warm_up():
    runs = [
        (name, trace, summary, facts_of(trace, warmup=1)) for name, trace, summary, _ in runs_of(2, 4, iterations=2)
    ]
    with comparison(runs) as figure:
        starts = [lines.get_segments()[0][0][0] for lines in artists(figure, "iterations")]
        ends = [line.get_xdata()[0] for line in figure.axes[0].lines]
        limit = figure.axes[0].get_xlim()[1]
    assert starts == [0.0] * 3
    expected = [
        (trace.end_ns[trace.iteration == 1].max() - trace.start_ns[trace.iteration == 1].min()) / MS
        for _, trace, *_ in runs
    ]
    assert ends == pytest.approx(expected)
    assert limit == max(ends)


def test_each_run_says_its_figures_and_its_gain_over_the_first():
    runs = runs_of(4, 8)
    same = ("again", *runs[0][1:])
    first, faster, slower, equal = comparison_blocks([*runs, same])
    assert first.figures == "iteration 45 ms, pipeline bubble 33.0 %, 728,502 tokens/s, MFU 39.1 %"
    assert faster.figures.endswith("16.8 % more throughput than 1f1b")
    assert slower.figures.endswith("38.2 % less throughput than 1f1b")
    assert equal.figures.endswith("MFU 39.1 %, throughput as 1f1b")


def test_runs_of_different_ranks_can_be_compared():
    runs = [runs_of(2, 4)[0], runs_of(4, 8)[1]]
    with comparison(runs) as figure:
        lanes = sum(len(idle.get_paths()) for idle in artists(figure, "idle"))
    assert lanes == 6


def test_the_same_runs_give_the_same_bytes(tmp_path):
    runs = runs_of(4, 8)
    for name in ("a.svg", "b.svg"):
        draw_comparison(runs, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_nothing_to_compare_and_unknown_suffixes_are_said(tmp_path):
    with pytest.raises(UsageError, match="nothing to compare: got no runs, expected at least one"):
        draw_comparison([], tmp_path / "a.png")
    with pytest.raises(UsageError, match=r"got no suffix, expected \.png, \.svg or \.pdf"):
        draw_comparison(runs_of(1, 1), tmp_path / "a")
