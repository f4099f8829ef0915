"""The timeline: one lane per rank with its ops, messages and memory over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.metrics import RunFacts
from hops.trace import Trace
from hops.units import format_bytes
from hops.viz.canvas import picture, picture_format
from hops.viz.faults import Broken, broken_handles, broken_in, draw_broken
from hops.viz.headline import headline
from hops.viz.lanes import (
    Lanes,
    draw_background,
    draw_boxes,
    draw_iteration_starts,
    drawn_rows,
    frame,
)
from hops.viz.legend import area_handle, arrow_handle, capacity_handle, chunk_handle, op_handles
from hops.viz.memory import MemoryCurve, draw_memory, full_scale, memory_curves
from hops.viz.messages import arrows_readable, draw_arrows, draw_strip, messages_in
from hops.viz.sheet import TWO_LINES_FROM_IN, Sheet, chunks_of, lane_in, lane_names, lanes_width_in, write_lane_texts
from hops.viz.style import MEMORY_ACTIVATION, MEMORY_STATIC, MESSAGE
from hops.viz.window import TimeUnit, Window, choose_window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOXES = (0.05, 0.60)
BOXES_WITHOUT_MEMORY = (0.05, 0.84)
STRIP_IN_LANE = 0.09
MEMORY = (0.72, 1.0)
HEAD_IN = 0.8  # title, key figures, iteration numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What one timeline shows. `curves` is empty where memory is unknown."""

    trace: Trace
    window: Window
    rows: Trace
    messages: Trace
    broken: Broken
    curves: tuple[MemoryCurve, ...]
    title: str
    subtitle: str


def draw_timeline(
    trace: Trace,
    facts: RunFacts,
    path: Path,
    *,
    iterations: Sequence[int] | None = None,
    window_s: tuple[float, float] | None = None,
) -> None:
    """Write a PNG or SVG of what every rank did when.

    Args:
        trace: the run.
        facts: memory is shown if they say what the stages hold.
        path: ends in .png or .svg.
        iterations: which to show; by default the first after warm-up, as many as stay readable.
        window_s: an interval to show instead, in seconds since the start of the run.

    Raises:
        UsageError: other suffix, empty trace, or iterations or interval outside the trace.
    """
    picture_format(path)
    scene = timeline_scene(trace, facts, choose_window(trace, facts, iterations=iterations, window_s=window_s))
    sheet = timeline_sheet(scene)
    with picture(path, width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_timeline(figure, scene, sheet)


def timeline_scene(trace: Trace, facts: RunFacts, window: Window) -> Scene:
    """Select and compute what is shown."""
    title, subtitle = headline(trace, facts)
    return Scene(
        trace=trace,
        window=window,
        rows=drawn_rows(trace, window),
        messages=messages_in(trace, window),
        broken=broken_in(trace, window),
        curves=memory_curves(trace, facts),
        title=title,
        subtitle=subtitle,
    )


def timeline_sheet(scene: Scene) -> Sheet:
    """The sheet that holds it: wider for more boxes, higher for more ranks."""
    num_ranks = scene.trace.meta.num_ranks
    return Sheet.around(
        lanes_in=lanes_width_in(scene.rows, scene.window),
        body_in=lane_in(num_ranks) * num_ranks,
        head_in=HEAD_IN,
        left=lane_names(scene.trace, lane_in(num_ranks)),
        right=[curve.label for curve in scene.curves],
        legend=[handle.get_label() for handle in _handles(scene)],
    )


def paint_timeline(figure: "Figure", scene: Scene, sheet: Sheet) -> None:
    """Draw on an empty figure of the sheet's size."""
    window, num_ranks = scene.window, scene.trace.meta.num_ranks
    unit = TimeUnit.fit(window.end_ns - window.start_ns)
    span = (window.end_ns - window.start_ns) / unit.ns
    lanes = Lanes(
        boxes=BOXES if scene.curves else BOXES_WITHOUT_MEMORY,
        origin_ns=0,
        unit=unit,
        pt_per_x=sheet.lanes_in * 72 / span,
        pt_per_y=sheet.body_in * 72 / num_ranks,
    )
    axes = sheet.add_axes(figure)
    left = window.start_ns / unit.ns
    frame(axes, height=num_ranks, left=left, right=left + span, unit=unit, label="time since start of run")
    draw_background(axes, lanes, num_ranks, window)
    draw_boxes(axes, scene.rows, lanes, window)
    draw_broken(axes, scene.broken, lanes, window)
    draw_iteration_starts(axes, lanes, num_ranks, window, named=True)
    if arrows_readable(scene.messages):
        draw_arrows(axes, scene.messages, lanes)
    else:
        draw_strip(axes, scene.messages, lanes, (lanes.boxes[1], lanes.boxes[1] + STRIP_IN_LANE), window)
    if scene.curves:
        draw_memory(axes, scene.curves, lanes, MEMORY, window)
        at = sum(MEMORY) / 2 if sheet.body_in / num_ranks >= TWO_LINES_FROM_IN else 0.5
        too_full = [rank for rank, curve in enumerate(scene.curves) if not curve.fits]
        peaks = [curve.label for curve in scene.curves]
        write_lane_texts(axes, peaks, lanes, side="right", at=at, alert=too_full)
    write_lane_texts(
        axes, lane_names(scene.trace, sheet.body_in / num_ranks), lanes, side="left", at=sum(lanes.boxes) / 2
    )
    sheet.write_headings(figure, scene.title, scene.subtitle)
    sheet.add_legend(figure, _handles(scene))


def _handles(scene: Scene) -> list[Any]:
    """Legend entries of what there is to see."""
    handles = op_handles(np.unique(scene.rows.op).tolist())
    chunks = chunks_of(scene.trace.meta)
    if chunks > 1:
        handles.append(chunk_handle(chunks))
    if len(scene.messages):
        handles.append(arrow_handle() if arrows_readable(scene.messages) else area_handle(MESSAGE, "message under way"))
    if scene.curves:
        full = full_scale(scene.curves)
        handles.append(area_handle(MEMORY_STATIC, "static memory"))
        handles.append(area_handle(MEMORY_ACTIVATION, f"activations (full strip: {format_bytes(full)})"))
        if any(curve.capacity_bytes is not None and curve.capacity_bytes <= full for curve in scene.curves):
            handles.append(capacity_handle())
    return handles + broken_handles(scene.broken)
