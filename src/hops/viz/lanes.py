"""Lanes: what the ranks of a trace did over time, one lane per rank, as a few large collections."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hops.distributions import FloatArray
from hops.program.action import Op
from hops.trace.trace import Stream, Trace
from hops.viz.canvas import text_width_in
from hops.viz.coverage import bands, coverage, draw_images, too_narrow
from hops.viz.style import DPI, FONT, IDLE, INK, MIN_NUMBER_PT, NARROW, NUMBER_PT, OPS, QUIET, RULE, SMALL_PT
from hops.viz.window import TimeUnit, Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

_NUMBER_PAD_PT = 1.5


def draw_numbers(
    axes: "Axes", rows: Trace, middle: FloatArray, seen_pt: FloatArray, whole_pt: FloatArray, box_pt: float
) -> None:
    """One collection per number and colour (`gid` `number-12`): on all boxes of a rank, or on none.

    `seen_pt` and `whole_pt` are the widths of boxes in the window and without it: what its edge cuts may lack one.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.transforms import Affine2D

    actions = np.flatnonzero((rows.microbatch >= 0) & (rows.op <= Op.W))
    if not actions.size:
        return
    widths_pt = whole_pt[actions]
    numbered, size_pt = _numbered_ranks(rows.rank[actions], rows.microbatch[actions], widths_pt, box_pt)
    if size_pt is None:
        return
    actions = actions[numbered]
    inches = Affine2D().scale(1 / 72) + axes.figure.dpi_scale_trans
    colour = np.asarray([OPS[op].text == INK for op in Op])[rows.op[actions]]
    for number in np.unique(rows.microbatch[actions]).tolist():
        glyphs, width_pt = _digits(str(number), size_pt)
        fits = (rows.microbatch[actions] == number) & (seen_pt[actions] >= width_pt)
        for dark in (True, False):
            places = middle[actions[fits & (colour == dark)]]
            if not len(places):
                continue
            texts = PathCollection(
                [glyphs],
                offsets=places,
                offset_transform=axes.transData,
                facecolors=INK if dark else "white",
                linewidths=0,
                zorder=2.5,
            )
            texts.set_transform(inches)
            texts.set_gid(f"number-{number}")
            axes.add_collection(texts, autolim=False)


def _numbered_ranks(
    rank: NDArray[np.int32], microbatches: NDArray[np.int32], widths_pt: FloatArray, box_pt: float
) -> tuple[NDArray[np.bool_], float | None]:
    """Which actions are numbered, shape (actions,), and how large: ranks on which the longest number fits every box.

    Boxes cut by an edge of the window do not count: `widths_pt` is of the whole box.
    """
    most_pt = min(NUMBER_PT, 0.8 * box_pt)
    _, longest_pt = _digits("8" * len(str(microbatches.max())), most_pt)
    narrowest_pt = np.full(int(rank.max()) + 1, np.inf)
    np.minimum.at(narrowest_pt, rank, widths_pt)
    fit_pt = most_pt * (narrowest_pt - _NUMBER_PAD_PT) / longest_pt
    fits = (fit_pt >= MIN_NUMBER_PT) & np.isfinite(fit_pt)
    if most_pt < MIN_NUMBER_PT or not fits.any():
        return np.zeros(len(rank), dtype=np.bool_), None
    return fits[rank], float(min(fit_pt[fits].min(), most_pt))


@lru_cache(maxsize=4096)
def _digits(text: str, size_pt: float) -> tuple["Path", float]:
    """The outline of a number around (0, 0), and its width, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    path = TextPath((0, 0), text, size=size_pt, prop=FontProperties(family=FONT))
    box = path.get_extents()
    centred = Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2).transform_path(path)
    return centred, float(box.width)


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From so many boxes on, an SVG holds them as an image: paths would make it tens of MB.
RASTER_FROM = 4000
RASTER_BELOW = 3.0  # zorder: boxes lie below, numbers on boxes and text above
_EDGE_FROM_PT = 3.0  # boxes narrower than this have no white edge, which would hide them


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Where lanes lie: rank r from y = first + r to first + r + 1, downwards; parts as fractions of a lane.

    Attributes:
        boxes: top and bottom of the boxes of ops.
        origin_ns, unit: x = (time - origin) in units.
        pt_per_x, pt_per_y: points on paper per unit of x and per lane.
    """

    first: float = 0.0
    boxes: tuple[float, float]
    origin_ns: int
    unit: TimeUnit
    pt_per_x: float
    pt_per_y: float

    def x(self, time_ns: NDArray[np.int64]) -> FloatArray:
        return np.asarray((time_ns - self.origin_ns) / self.unit.ns, dtype=np.float64)

    def y(self, rank: NDArray[np.int32], fraction: float) -> FloatArray:
        return np.asarray(self.first + rank + fraction, dtype=np.float64)

    def pixels(self, window: Window) -> int:
        """How many pixels of a PNG wide a window is."""
        return max(1, round((window.end_ns - window.start_ns) / self.unit.ns * self.pt_per_x * DPI / 72))

    def covered(self, rows: Trace, window: Window) -> FloatArray:
        """How much of each pixel of each lane the rows cover; shape (ranks, pixels)."""
        pixels = self.pixels(window)
        scale = pixels / (window.end_ns - window.start_ns)
        left, right = (np.clip((time - window.start_ns) * scale, 0, pixels) for time in (rows.start_ns, rows.end_ns))
        return coverage(rows.rank, left, right, lanes=rows.meta.num_ranks, pixels=pixels)

    def draw_images(
        self, axes: "Axes", colours: FloatArray, part: tuple[float, float], window: Window, *, zorder: float, gid: str
    ) -> None:
        """Images of a window, RGBA of shape (ranks, rows, pixels, 4), on a part of each lane."""
        left, right = self.x(np.asarray([window.start_ns, window.end_ns])).tolist()
        draw_images(axes, colours, across=(left, right), first=self.first, part=part, zorder=zorder, gid=gid)

    @property
    def box_pt(self) -> float:
        """Height of a box in points."""
        return (self.boxes[1] - self.boxes[0]) * self.pt_per_y


def corners(left: FloatArray, right: FloatArray, top: FloatArray, bottom: FloatArray) -> Any:
    """Rectangles as a PolyCollection takes them: an array of shape (n, 4, 2), though its stubs ask for lists."""
    x = np.stack([left, right, right, left], axis=1)
    y = np.stack([top, top, bottom, bottom], axis=1)
    return np.stack([x, y], axis=2)


def drawn_rows(trace: Trace, window: Window) -> Trace:
    """The rows inside the window that are drawn as boxes: everything that was done, but messages."""
    boxes = ~np.isin(trace.stream, (Stream.MESSAGE, Stream.FAULT, Stream.LOST))
    return trace.where(boxes & window.overlaps(trace))


def draw_boxes(axes: "Axes", rows: Trace, lanes: Lanes, window: Window) -> None:
    """One collection per op, `gid` `op-F` and so on, cut at the window's edges; numbers where they fit."""
    from matplotlib.collections import PolyCollection

    left = lanes.x(np.maximum(rows.start_ns, window.start_ns))
    right = lanes.x(np.minimum(rows.end_ns, window.end_ns))
    top, bottom = (lanes.y(rows.rank, fraction) for fraction in lanes.boxes)
    widths_pt = (right - left) * lanes.pt_per_x
    edge = 0.4 if len(rows) and np.quantile(widths_pt, NARROW) >= _EDGE_FROM_PT else 0.0
    if len(rows) >= RASTER_FROM:
        axes.set_rasterization_zorder(RASTER_BELOW)
    narrow = rows.op <= Op.W if too_narrow(widths_pt) else np.zeros(len(rows), dtype=np.bool_)
    if narrow.any():
        _draw_shares(axes, rows.where(narrow), lanes, window)
    for op in ops_in(rows.where(~narrow)):
        mine = rows.op == op
        style = OPS[Op(op)]
        boxes = PolyCollection(
            corners(left[mine], right[mine], top[mine], bottom[mine]),
            facecolors=style.fill,
            edgecolors=QUIET if style.hatch else "white",
            linewidths=edge,
            hatch=style.hatch or None,
            snap=edge > 0,  # to whole pixels, unless boxes are so narrow that they would vanish
            zorder=2.0,
        )
        boxes.set_gid(f"op-{Op(op).name}")
        axes.add_collection(boxes, autolim=False)
    _draw_chunk_marks(axes, rows, lanes, left, right)
    _draw_pair_marks(axes, rows, lanes)
    middle = np.stack([(left + right) / 2, lanes.y(rows.rank, sum(lanes.boxes) / 2)], axis=1)
    whole_pt = np.asarray(rows.duration_ns / lanes.unit.ns * lanes.pt_per_x)
    draw_numbers(axes, rows, middle, widths_pt, whole_pt, lanes.box_pt)


def ops_in(rows: Trace) -> list[int]:
    """Numbers of the ops that occur, rising."""
    return np.flatnonzero(np.bincount(rows.op)).tolist()


def _draw_shares(axes: "Axes", rows: Trace, lanes: Lanes, window: Window) -> None:
    """All boxes as images, `gid` `shares`: in each pixel a band for each op, as high as its share of the time."""
    from matplotlib.colors import to_rgb

    parts = [(lanes.covered(rows.where(rows.op == op), window), to_rgb(OPS[Op(op)].fill)) for op in ops_in(rows)]
    height = max(1, round(lanes.box_pt * DPI / 72))
    lanes.draw_images(axes, bands(parts, height=height), lanes.boxes, window, zorder=2.0, gid="shares")


def _draw_chunk_marks(axes: "Axes", rows: Trace, lanes: Lanes, left: FloatArray, right: FloatArray) -> None:
    """Chunk n of a rank has n fine lines along the foot of its boxes, in the colour of their numbers."""
    from matplotlib.collections import LineCollection

    chunk = chunk_of_stage(rows.meta.rank_of_stage)[rows.stage]
    colours = np.asarray([OPS[op].text for op in Op])[rows.op]
    top, bottom = lanes.boxes
    for mark in range(1, int(chunk.max(initial=0)) + 1):
        mine = (rows.stage >= 0) & (chunk >= mark)
        y = lanes.y(rows.rank[mine], bottom - (bottom - top) * (0.02 + 0.1 * mark))
        ends = np.stack([np.stack([left[mine], y], axis=1), np.stack([right[mine], y], axis=1)], axis=1)
        width_pt = min(1.0, 0.045 * lanes.box_pt)
        lines = LineCollection(list(ends), colors=colours[mine].tolist(), linewidths=width_pt, zorder=2.1)
        lines.set_capstyle("butt")
        lines.set_gid(f"chunk-{mark}")
        axes.add_collection(lines, autolim=False)


def has_pairs(rows: Trace) -> bool:
    """Whether any two actions run as one: both bear their own rank as peer."""
    return bool(np.any((rows.op <= Op.W) & (rows.peer == rows.rank)))


def _draw_pair_marks(axes: "Axes", rows: Trace, lanes: Lanes) -> None:
    """A bar over the two boxes of each pair (`gid` `pairs`), which run as one."""
    from matplotlib.collections import LineCollection

    mine = np.flatnonzero((rows.op <= Op.W) & (rows.peer == rows.rank))
    if not mine.size:
        return
    mine = mine[np.lexsort((rows.start_ns[mine], rows.rank[mine]))]
    mine = mine[: len(mine) // 2 * 2]
    first, second = mine[::2], mine[1::2]
    y = lanes.y(rows.rank[first], lanes.boxes[0] - 0.015)
    gap_pt = 1.0 / lanes.pt_per_x
    ends = [lanes.x(rows.start_ns[first]) + gap_pt, lanes.x(rows.end_ns[second]) - gap_pt]
    points = np.stack([np.stack([x, y], axis=1) for x in ends], axis=1)
    lines = LineCollection(list(points), colors=INK, linewidths=min(1.6, 0.05 * lanes.pt_per_y), zorder=2.2)
    lines.set_capstyle("butt")
    lines.set_gid("pairs")
    axes.add_collection(lines, autolim=False)


def chunk_of_stage(rank_of_stage: Sequence[int]) -> NDArray[np.int64]:
    """For every stage, how many earlier stages its rank has. Shape (stages,)."""
    seen: dict[int, int] = {}
    chunks = []
    for rank in rank_of_stage:
        chunks.append(seen.setdefault(rank, 0))
        seen[rank] += 1
    return np.asarray(chunks, dtype=np.int64)


def draw_background(axes: "Axes", lanes: Lanes, num_ranks: int, window: Window) -> None:
    """Pale lanes, so that bubbles are seen as such."""
    from matplotlib.collections import PolyCollection

    ranks = np.arange(num_ranks, dtype=np.int32)
    edges = lanes.x(np.asarray([window.start_ns, window.end_ns]))
    left, right = np.full(num_ranks, edges[0]), np.full(num_ranks, edges[1])
    top, bottom = (lanes.y(ranks, fraction) for fraction in lanes.boxes)
    background = PolyCollection(corners(left, right, top, bottom), facecolors=IDLE, linewidths=0, zorder=0.5)
    background.set_gid("idle")
    axes.add_collection(background, autolim=False)


def draw_iteration_starts(axes: "Axes", lanes: Lanes, num_ranks: int, window: Window, *, named: bool) -> None:
    """A line where each iteration starts; with its number above the first lane if `named`."""
    from matplotlib.collections import LineCollection

    top, bottom = lanes.first, lanes.first + num_ranks
    xs = lanes.x(np.asarray(window.starts_ns, dtype=np.int64)).tolist()
    lines = LineCollection([[(x, top), (x, bottom)] for x in xs], colors=INK, linewidths=0.9, zorder=2.8)
    lines.set_linestyle((0, (4, 2)))
    lines.set_gid("iterations")
    axes.add_collection(lines, autolim=False)
    if named:
        _name_iterations(axes, window.iterations, xs, lanes)


def _name_iterations(axes: "Axes", numbers: Sequence[int], xs: Sequence[float], lanes: Lanes) -> None:
    """`iteration 3` where its line ends, unless the one before reaches that far."""
    free_from = -np.inf
    for number, x in zip(numbers, xs, strict=True):
        if x < free_from:
            continue
        name = f"iteration {number}"
        free_from = x + (text_width_in(name, SMALL_PT) * 72 + 8) / lanes.pt_per_x
        axes.annotate(name, (x, lanes.first), xytext=(2, 3), textcoords="offset points", fontsize=SMALL_PT, va="bottom")


def frame(axes: "Axes", *, height: float, left: float, right: float, unit: TimeUnit, label: str) -> None:
    """Limits, time axis and grid of an axes that holds lanes."""
    axes.set_xlim(left, right)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.set_xlabel(f"{label} [{unit.name}]")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=RULE, zorder=0)
