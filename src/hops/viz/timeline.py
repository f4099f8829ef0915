"""The timeline: one lane per rank with its ops, messages and memory over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hops.distributions import FloatArray
from hops.errors import UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.memory import StepFunction, memory_over_time
from hops.metrics.summary import RunFacts
from hops.trace.trace import Trace
from hops.units import format_bytes
from hops.viz.canvas import picture, picture_format
from hops.viz.headline import headline
from hops.viz.lanes import (
    Lanes,
    draw_background,
    draw_boxes,
    draw_iteration_starts,
    drawn_rows,
    frame,
    has_pairs,
    ops_in,
)
from hops.viz.look import SCREEN, Look
from hops.viz.overlays import (
    Broken,
    arrows_readable,
    broken_handles,
    broken_in,
    draw_arrows,
    draw_broken,
    draw_strip,
    messages_in,
)
from hops.viz.sheet import TWO_LINES_FROM_IN, Sheet, chunks_of, lane_in, lane_names, lanes_width_in, write_lane_texts
from hops.viz.style import (
    ALERT,
    MEMORY_ACTIVATION,
    MEMORY_STATIC,
    MESSAGE,
    area_handle,
    arrow_handle,
    capacity_handle,
    chunk_handle,
    op_handles,
    pair_handle,
)
from hops.viz.window import TimeUnit, Window, choose_window

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """What one rank holds over time, what of it all the time, and its device's capacity (None: unknown). Bytes."""

    held: StepFunction
    static_bytes: int
    capacity_bytes: int | None

    @property
    def fits(self) -> bool:
        return self.capacity_bytes is None or self.held.peak <= self.capacity_bytes

    @property
    def short_label(self) -> str:
        return format_bytes(self.held.peak)

    @property
    def label(self) -> str:
        peak = f"peak {format_bytes(self.held.peak)}"
        return peak if self.capacity_bytes is None else f"{peak} of {format_bytes(self.capacity_bytes)}"


def memory_curves(trace: Trace, facts: RunFacts) -> tuple[MemoryCurve, ...]:
    """One curve per rank, warm-up iterations included; none if the facts do not say what the stages hold."""
    held = memory_over_time(Iterations.recorded(trace, replace(facts, warmup_iterations=0)))
    capacities = facts.memory_bytes or (None,) * len(held)
    return tuple(
        MemoryCurve(held=one, static_bytes=one.initial, capacity_bytes=capacity)
        for one, capacity in zip(held, capacities, strict=False)
    )


def full_scale(curves: Sequence[MemoryCurve]) -> int:
    """Bytes that the full height of every strip stands for: the largest peak of all ranks."""
    return max(1, *(curve.held.peak for curve in curves))


def draw_memory(
    axes: "Axes", curves: Sequence[MemoryCurve], lanes: Lanes, part: tuple[float, float], window: Window
) -> None:
    """Areas `gid` `memory` (everything) and `memory-static`, red lines at the capacity where that is on the scale."""
    from matplotlib.collections import LineCollection, PolyCollection

    full = full_scale(curves)
    height = part[1] - part[0]
    areas, floors, limits = [], [], []
    edges = lanes.x(np.asarray([window.start_ns, window.end_ns]))
    for rank, curve in enumerate(curves):
        foot = lanes.first + rank + part[1]
        areas.append(_area(*_cut(curve.held, window), foot, height / full, lanes))
        static = foot - height * curve.static_bytes / full
        floors.append([(edges[0], foot), (edges[0], static), (edges[1], static), (edges[1], foot)])
        if curve.capacity_bytes is not None and curve.capacity_bytes <= full:
            y = foot - height * curve.capacity_bytes / full
            limits.append([(edges[0], y), (edges[1], y)])
    for gid, polygons, colour in (("memory", areas, MEMORY_ACTIVATION), ("memory-static", floors, MEMORY_STATIC)):
        area = PolyCollection(polygons, facecolors=colour, linewidths=0, zorder=1.2)
        area.set_gid(gid)
        axes.add_collection(area, autolim=False)
    lines = LineCollection(limits, colors=ALERT, linewidths=0.8, zorder=1.3)
    lines.set_gid("capacity")
    axes.add_collection(lines, autolim=False)


def _cut(held: StepFunction, window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges and levels of the steps inside the window, the first edge its start, the last its end."""
    inside = (held.at_ns > window.start_ns) & (held.at_ns < window.end_ns)
    before = int(np.searchsorted(held.at_ns, window.start_ns, side="right"))
    level = held.initial if before == 0 else int(held.value[before - 1])
    edges = np.concatenate([[window.start_ns], held.at_ns[inside], [window.end_ns]])
    return edges, np.concatenate([[level], held.value[inside]])


def _area(
    edges_ns: NDArray[np.int64], levels: NDArray[np.int64], foot: float, per_byte: float, lanes: Lanes
) -> FloatArray:
    """The polygon under a step function: shape (points, 2)."""
    x = np.repeat(lanes.x(edges_ns), 2)[1:-1]
    y = np.repeat(foot - levels * per_byte, 2)
    corners = np.stack([x, y], axis=1)
    return np.concatenate([[(x[0], foot)], corners, [(x[-1], foot)]])


if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOXES = (0.05, 0.60)
BOXES_WITHOUT_MEMORY = (0.05, 0.84)
STRIP_IN_LANE = 0.09
MEMORY = (0.72, 1.0)
NARROW_LANE_IN = 0.42
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
    ranks: tuple[int, ...]
    look: Look

    @property
    def names(self) -> tuple[str, ...]:
        """Left of each lane."""
        names = lane_names(self.trace, self.lane_in, short=self.look.is_narrow)
        return tuple(names[rank] for rank in self.ranks)

    @property
    def peaks(self) -> list[str]:
        """Right of each lane."""
        return [curve.short_label if self.look.is_narrow else curve.label for curve in self.curves]

    @property
    def lane_in(self) -> float:
        height_in = lane_in(len(self.ranks))
        return min(height_in, NARROW_LANE_IN) if self.look.is_narrow else height_in


def draw_timeline(
    trace: Trace,
    facts: RunFacts,
    path: Path,
    *,
    iterations: Sequence[int] | None = None,
    window_s: tuple[float, float] | None = None,
    ranks: Sequence[int] | None = None,
    look: Look = SCREEN,
) -> None:
    """Write a PNG, SVG or PDF of what every rank did when.

    Args:
        trace: the run.
        facts: memory is shown if they say what the stages hold.
        path: ends in .png, .svg or .pdf.
        iterations: which to show; by default the first after warm-up, as many as stay readable.
        window_s: an interval to show instead, in seconds since the start of the run.
        ranks: which to show; by default all.
        look: how wide, with letters of what size; narrow figures leave title and figures to their caption.

    Raises:
        UsageError: other suffix, empty trace, iterations, interval or ranks outside the trace, no room for lanes.
    """
    picture_format(path)
    window = choose_window(trace, facts, iterations=iterations, window_s=window_s)
    scene = timeline_scene(trace, facts, window, ranks=ranks, look=look)
    sheet = timeline_sheet(scene)
    with (
        look.applied(),
        picture(path, width_in=sheet.width_in, height_in=sheet.height_in, scale=look.scale) as figure,
    ):
        paint_timeline(figure, scene, sheet)


def timeline_scene(
    trace: Trace, facts: RunFacts, window: Window, *, ranks: Sequence[int] | None = None, look: Look = SCREEN
) -> Scene:
    """Select and compute what is shown."""
    count = trace.meta.num_ranks
    shown = tuple(range(count)) if ranks is None else tuple(ranks)
    if not shown or max(shown) >= count:
        raise UsageError(f"cannot show rank {max(shown, default='(none)')}: the run has ranks 0 to {count - 1}")
    title, subtitle = headline(trace, facts)
    if look.is_narrow:
        title, subtitle = "", ""
    if look.title is not None:
        title = look.title
    curves = memory_curves(trace, facts)
    lanes = on_lanes(trace, shown)
    return Scene(
        trace=trace,
        window=window,
        rows=drawn_rows(lanes, window),
        messages=messages_in(lanes, window),
        broken=broken_in(lanes, window),
        curves=tuple(curves[rank] for rank in shown) if curves else (),
        title=title,
        subtitle=subtitle,
        ranks=shown,
        look=look,
    )


def on_lanes(trace: Trace, ranks: Sequence[int]) -> Trace:
    """The rows of some ranks, and their messages to each other, by lane instead of rank: lane n is the n-th of them."""
    meta = trace.meta
    if tuple(ranks) == tuple(range(meta.num_ranks)):
        return trace
    lane = np.full(meta.num_ranks + 1, -1, dtype=np.int32)  # the last is that of no peer
    lane[np.asarray(ranks)] = np.arange(len(ranks))
    kept = (lane[trace.rank] >= 0) & ((trace.peer < 0) | (lane[trace.peer] >= 0))
    rows = trace.where(kept)
    others = {rank: len(ranks) + rank for rank in range(meta.num_ranks)}
    owners = tuple(int(lane[rank]) if lane[rank] >= 0 else others[rank] for rank in meta.rank_of_stage)
    shown = replace(
        meta,
        devices=tuple(meta.devices[rank] for rank in ranks),
        hosts=tuple(meta.hosts[rank] for rank in ranks),
        rank_of_stage=owners,
        routes={},
    )
    return replace(rows, rank=lane[rows.rank], peer=lane[rows.peer], meta=shown)


def timeline_sheet(scene: Scene) -> Sheet:
    """The sheet that holds it: wider for more boxes, higher for more ranks."""
    return Sheet.around(
        lanes_in=lanes_width_in(scene.rows, scene.window),
        body_in=scene.lane_in * len(scene.ranks),
        head_in=HEAD_IN - (0 if scene.subtitle else 0.2) - (0 if scene.title else 0.3),
        left=scene.names,
        right=scene.peaks,
        legend=[handle.get_label() for handle in _handles(scene)],
        width_in=scene.look.drawn_in,
    )


def paint_timeline(figure: "Figure", scene: Scene, sheet: Sheet) -> None:
    """Draw on an empty figure of the sheet's size."""
    window, num_ranks = scene.window, len(scene.ranks)
    unit = TimeUnit.fit(window.end_ns - window.start_ns)
    span = (window.end_ns - window.start_ns) / unit.ns
    lanes = Lanes(
        boxes=BOXES if scene.curves else BOXES_WITHOUT_MEMORY,
        origin_ns=window.origin_ns,
        unit=unit,
        pt_per_x=sheet.lanes_in * 72 / span,
        pt_per_y=sheet.body_in * 72 / num_ranks,
    )
    axes = sheet.add_axes(figure)
    left = (window.start_ns - window.origin_ns) / unit.ns
    frame(axes, height=num_ranks, left=left, right=left + span, unit=unit, label=window.label)
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
        write_lane_texts(axes, scene.peaks, lanes, side="right", at=at, alert=too_full)
    write_lane_texts(axes, scene.names, lanes, side="left", at=sum(lanes.boxes) / 2)
    sheet.write_headings(figure, scene.title, scene.subtitle)
    sheet.add_legend(figure, _handles(scene), at_edge=scene.look.width_in is not None)


def _handles(scene: Scene) -> list[Any]:
    """Legend entries of what there is to see."""
    handles = op_handles(ops_in(scene.rows))
    chunks = chunks_of(scene.trace.meta)
    if chunks > 1:
        handles.append(chunk_handle(chunks))
    if has_pairs(scene.rows):
        handles.append(pair_handle())
    if len(scene.messages):
        handles.append(arrow_handle() if arrows_readable(scene.messages) else area_handle(MESSAGE, "message under way"))
    if scene.curves:
        full = full_scale(scene.curves)
        handles.append(area_handle(MEMORY_STATIC, "static memory"))
        handles.append(area_handle(MEMORY_ACTIVATION, f"activations (full strip: {format_bytes(full)})"))
        if any(curve.capacity_bytes is not None and curve.capacity_bytes <= full for curve in scene.curves):
            handles.append(capacity_handle())
    return handles + broken_handles(scene.broken)
