"""A timeline shows every action once, its memory to the byte, and nothing on top of anything else."""

from contextlib import contextmanager

import numpy as np
import pytest
from viz_layout import artists, boxes, drawn_texts, outside, overlapping
from viz_traces import MS, facts_of, looped_gpipe, one_f_one_b, trace_of

from hops.errors import UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.memory import memory_over_time
from hops.program.action import Action, Op
from hops.trace.trace import Stream
from hops.viz.canvas import blank
from hops.viz.style import ALERT
from hops.viz.timeline import MEMORY, draw_timeline, full_scale, paint_timeline, timeline_scene, timeline_sheet
from hops.viz.window import choose_window

LONG_NAMES = ("NVIDIA H100 80GB HBM3 SXM5 (custom bin, liquid cooled)", "L4")


def interleaved(ranks, microbatches, chunks=2, **options):
    return trace_of(
        looped_gpipe(ranks, microbatches, chunks),
        rank_of_stage=tuple(range(ranks)) * chunks,
        schedule="interleaved_1f1b",
        **options,
    )


CASES = {
    "4 ranks": trace_of(one_f_one_b(4, 8)),
    "4 ranks, split, 3 iterations, a fault": trace_of(one_f_one_b(4, 8, split=True), iterations=3, faults=[(1, 5, 12)]),
    "8 ranks, 3 chunks, long names": interleaved(8, 8, 3, devices=LONG_NAMES),
    "64 ranks": trace_of(one_f_one_b(64, 32)),
    "100 ranks": trace_of(one_f_one_b(100, 2)),
    "1 rank, 1 microbatch": trace_of(one_f_one_b(1, 1), step=False),
    "unknown devices": trace_of(one_f_one_b(2, 2), devices=("",)),
    "hours": trace_of(one_f_one_b(2, 2), stretch=1e6),
    "nanoseconds": trace_of(one_f_one_b(2, 2), stretch=1e-5),
}


@contextmanager
def timeline(trace, facts=None, **choice):
    """The figure of a timeline, and its scene."""
    facts = facts or facts_of(trace)
    scene = timeline_scene(trace, facts, choose_window(trace, facts, **choice))
    sheet = timeline_sheet(scene)
    with blank(width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_timeline(figure, scene, sheet)
        yield figure, scene


@pytest.mark.parametrize("trace", CASES.values(), ids=CASES)
def test_no_text_overlaps_another_or_leaves_the_sheet(trace):
    with timeline(trace) as (figure, _):
        texts = drawn_texts(figure)
    assert overlapping(texts) == []
    assert outside(texts, figure) == []


def test_no_text_overlaps_where_many_short_iterations_are_shown():
    trace = trace_of(one_f_one_b(2, 1), iterations=60)
    with timeline(trace, iterations=range(60)) as (figure, _):
        assert overlapping(drawn_texts(figure)) == []
        assert len(artists(figure, "iterations")[0].get_segments()) == 60


@pytest.mark.parametrize("trace", CASES.values(), ids=CASES)
def test_every_row_inside_the_window_is_one_box_of_its_op(trace):
    with timeline(trace) as (figure, scene):
        inside = trace.where(scene.window.overlaps(trace))
        rows = inside.where((inside.stream != Stream.MESSAGE) & (inside.stream != Stream.FAULT))
        for op in Op:
            assert boxes(figure, f"op-{op.name}") == int((rows.op == op).sum())


def test_a_box_lies_where_its_action_ran():
    trace = trace_of(one_f_one_b(2, 2))
    with timeline(trace) as (figure, _):
        drawn = {
            tuple(np.round([*path.vertices[:, 0][[0, 1]], path.vertices[0, 1] // 1], 9))
            for path in artists(figure, "op-F")[0].get_paths()
        }
    rows = trace.where(trace.op == Op.F).of(Stream.COMPUTE)
    expected = zip(rows.start_ns / MS, rows.end_ns / MS, rows.rank, strict=True)
    assert drawn == {tuple(np.round(row, 9)) for row in expected}


def test_boxes_are_cut_at_the_edges_of_a_time_window():
    with timeline(CASES["4 ranks"], window_s=(0.0105, 0.0155)) as (figure, _):
        xs = np.concatenate([path.vertices[:, 0] for op in artists(figure, "op-") for path in op.get_paths()])
        assert (xs.min(), xs.max()) == (10.5, 15.5)


def test_every_number_that_is_drawn_is_narrower_than_its_box_and_all_fit_at_4_ranks():
    with timeline(CASES["4 ranks"]) as (figure, scene):
        numbers = artists(figure, "number-")
        assert sum(len(number.get_offsets()) for number in numbers) == boxes(figure, "op-F") + boxes(figure, "op-B")
        narrowest_ms = scene.rows.duration_ns[scene.rows.op <= Op.W].min() / MS
        (axes,) = figure.axes
        box_px = axes.transData.transform((narrowest_ms, 0))[0] - axes.transData.transform((0, 0))[0]
        widths = [
            number.get_transform().transform_path(number.get_paths()[0]).get_extents().width for number in numbers
        ]
        assert max(widths) < box_px


def test_numbers_are_left_out_where_they_could_not_be_read():
    with timeline(trace_of(one_f_one_b(4, 200))) as (figure, _):
        assert artists(figure, "number-") == []


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_chunk_n_bears_n_lines(chunks):
    with timeline(interleaved(2, 2, chunks)) as (figure, _):
        marks = {mark.get_gid(): len(mark.get_segments()) for mark in artists(figure, "chunk-")}
    per_chunk = 2 * 2 * 2  # ranks, microbatches, F and B
    assert marks == {f"chunk-{n}": per_chunk * (chunks - n) for n in range(1, chunks)}


def test_messages_are_arrows_at_4_ranks_and_a_strip_at_64():
    for name, kind in (("4 ranks", "LineCollection"), ("64 ranks", "PolyCollection")):
        with timeline(CASES[name]) as (figure, _):
            (messages,) = artists(figure, "messages")
            assert type(messages).__name__ == kind
            assert len(messages.get_paths()) == int((CASES[name].stream == Stream.MESSAGE).sum())


def test_an_arrow_leads_from_the_sender_at_the_start_to_the_receiver_at_delivery():
    trace = trace_of([[Action(0, Op.F, 0)], [Action(1, Op.F, 0)]], hop_ms=2, step=False)
    with timeline(trace) as (figure, _):
        ((start, end),) = artists(figure, "messages")[0].get_segments()
    assert (start[0], int(start[1])) == (1.0, 0)
    assert (end[0], int(end[1])) == (3.0, 1)


@pytest.mark.parametrize("name", ["4 ranks", "4 ranks, split, 3 iterations, a fault", "8 ranks, 3 chunks, long names"])
def test_the_area_of_a_memory_strip_is_the_integral_of_its_bytes(name):
    trace = CASES[name]
    facts = facts_of(trace)
    with timeline(trace) as (figure, scene):
        areas = [polygon_area(path.vertices) for path in artists(figure, "memory")[0].get_paths()]
        per_byte = (MEMORY[1] - MEMORY[0]) / full_scale(scene.curves)
    window = scene.window
    for area, held in zip(areas, memory_over_time(Iterations.of(trace, facts)), strict=True):
        edges = np.concatenate(
            [[window.start_ns], np.clip(held.at_ns, window.start_ns, window.end_ns), [window.end_ns]]
        )
        byte_ms = float((np.diff(edges) / MS * np.concatenate([[held.initial], held.value])).sum())
        assert area == pytest.approx(byte_ms * per_byte)


def polygon_area(vertices):
    x, y = vertices.T
    return abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())) / 2


def test_memory_is_left_out_when_it_is_unknown_and_says_peak_and_capacity_when_known():
    trace = CASES["4 ranks"]
    with timeline(trace) as (figure, _):
        texts = [text.get_text() for text in figure.axes[0].texts]
        assert "peak 14 GiB of 80 GiB" in texts
    with timeline(trace, facts_of(trace, memory=False)) as (figure, _):
        assert artists(figure, "memory") == []
        assert not any("peak" in text.get_text() for text in figure.axes[0].texts)


def test_a_peak_above_the_capacity_is_red_and_the_strip_shows_where_the_capacity_lies():
    trace = CASES["8 ranks, 3 chunks, long names"]
    with timeline(trace) as (figure, scene):
        colours = {text.get_text(): text.get_color() for text in figure.axes[0].texts if "peak" in text.get_text()}
        limits = artists(figure, "capacity")[0].get_segments()
    full = full_scale(scene.curves)
    assert {colour == ALERT for text, colour in colours.items() if "of 24 GiB" in text} == {True}
    assert {colour == ALERT for text, colour in colours.items() if "of 80 GiB" in text} == {False}
    height = (MEMORY[1] - MEMORY[0]) * 24 * 2**30 / full
    assert [line[0][1] for line in limits] == pytest.approx([rank + MEMORY[1] - height for rank in (1, 2, 4, 5, 7)])


def test_a_fault_is_hatched_over_its_lane_and_named_in_the_legend():
    with timeline(CASES["4 ranks, split, 3 iterations, a fault"]) as (figure, _):
        (fault,) = artists(figure, "faults")
        assert fault.get_hatch()
        (x0, y0), (x1, y1) = fault.get_paths()[0].get_extents().get_points()
        assert (x0, x1, y0, y1) == (5.0, 12.0, 1.0, 2.0)
        assert "fault" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_heading_says_what_ran_and_its_key_figures():
    with timeline(CASES["4 ranks"]) as (figure, _):
        title, figures = (text.get_text() for text in figure.texts)
    assert title == "1f1b, 4 ranks, 8 microbatches, simulated"
    assert figures.startswith("iteration 45 ms, pipeline bubble 33.0 %, 728,502 tokens/s, MFU ")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_trace_gives_the_same_bytes(tmp_path, suffix):
    trace = CASES["4 ranks, split, 3 iterations, a fault"]
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        draw_timeline(trace, facts_of(trace), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_svg_of_16_thousand_actions_stays_small(tmp_path):
    trace = trace_of(one_f_one_b(64, 125))
    assert int(((trace.op <= Op.W) & (trace.stream == Stream.COMPUTE)).sum()) == 16_000
    draw_timeline(trace, facts_of(trace), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size < 2_000_000


def test_warm_up_that_leaves_nothing_is_said(tmp_path):
    trace = CASES["4 ranks"]
    with pytest.raises(UsageError, match="no iteration left to measure"):
        draw_timeline(trace, facts_of(trace, warmup=1), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_suffix_is_refused_before_anything_is_drawn(tmp_path):
    with pytest.raises(UsageError, match=r"got suffix '\.jpg', expected \.png, \.svg or \.pdf; rename the picture"):
        draw_timeline(CASES["4 ranks"], facts_of(CASES["4 ranks"]), tmp_path / "a.jpg")
