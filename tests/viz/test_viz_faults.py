"""What broke, on a timeline: each row of a fault is drawn once, where it was, and is named in the legend."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))

from viz_traces import MS, facts_of, one_f_one_b, trace_of

from hops.program.action import Op
from hops.trace.trace import COLUMNS, Stream, Trace
from hops.viz.timeline import paint_timeline, timeline_scene, timeline_sheet
from hops.viz.window import choose_window


def with_rows(trace, *rows):
    """The trace and (rank, stream, stage, op, microbatch, peer, start_ms, end_ms) more."""
    more = [
        (0, rank, stream, stage, op, microbatch, peer, round(start * MS), round(end * MS), 0)
        for rank, stream, stage, op, microbatch, peer, start, end in rows
    ]
    columns = {
        name: np.concatenate([getattr(trace, name), [row[number] for row in more]])
        for number, name in enumerate(COLUMNS)
    }
    return Trace.from_columns(columns, trace.meta)


def drawn(trace):
    facts = facts_of(trace)
    scene = timeline_scene(trace, facts, choose_window(trace, facts))
    figure = Figure()
    paint_timeline(figure, scene, timeline_sheet(scene))
    by_name = {artist.get_gid(): artist for artist in figure.axes[0].collections if artist.get_gid()}
    return by_name, {text.get_text() for text in figure.legends[0].get_texts()}


BASE = trace_of(one_f_one_b(3, 3))
BROKEN = with_rows(
    BASE,
    (1, Stream.FAULT, -1, Op.HOST, -1, -1, 5, 7),
    (0, Stream.FAULT, -1, Op.HOST, -1, 1, 8, 9),
    (1, Stream.LOST, 1, Op.F, 0, -1, 4, 5),
    (2, Stream.LOST, -1, Op.OPTIMIZER, -1, -1, 6, 7),
    (0, Stream.LOST, 0, Op.F, 1, 1, 8, 8.5),
)


def extents(artist):
    return sorted(tuple(path.get_extents().get_points().round(6).ravel().tolist()) for path in artist.get_paths())


def test_a_run_without_faults_shows_none():
    by_name, legend = drawn(BASE)
    assert not {"faults", "link-faults", "lost", "lost-messages"} & set(by_name)
    assert not {"fault", "link fault", "lost work", "lost message"} & legend


def test_faults_of_devices_links_lost_work_and_lost_messages_are_told_apart():
    by_name, legend = drawn(BROKEN)
    assert {"fault", "link fault", "lost work", "lost message"} <= legend
    assert [(x0, x1) for x0, _, x1, _ in extents(by_name["faults"])] == [(5, 7)]
    assert [(x0, int(y0), x1) for x0, y0, x1, _ in extents(by_name["lost"])] == [(4, 1, 5), (6, 2, 7)]
    assert [(x0, int(y), x1) for x0, y, x1, _ in extents(by_name["link-faults"])] == [(8, 0, 9), (8, 1, 9)]
    assert [(x0, x1) for x0, _, x1, _ in extents(by_name["lost-messages"])] == [(8, 8.5)]


def test_lost_work_is_no_box_of_its_op():
    boxes = {name: len(artist.get_paths()) for name, artist in drawn(BROKEN)[0].items() if name.startswith("op-")}
    assert boxes == {name: len(each.get_paths()) for name, each in drawn(BASE)[0].items() if name.startswith("op-")}
