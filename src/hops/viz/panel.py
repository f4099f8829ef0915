"""A panel of the dashboard: its axes and legend placed in inches, and bars that stack by part.

matplotlib's own ticks and legends are built to be interactive: on the dashboard's 14 axes they take 0.3 s of 0.9 s
(`hops run` of the demo shall end in under 2 s).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hops.distributions import FloatArray
from hops.metrics.iterations import Iterations
from hops.metrics.summary import Summary
from hops.viz.canvas import text_width_in
from hops.viz.lanes import corners
from hops.viz.style import INK, QUIET, RULE, SMALL_PT, TEXT_PT, PartStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TICKS = {"x": 9, "y": 6}
_SWATCH_IN, _GAP_IN, _ROW_IN = 0.17, 0.2, 0.165


@dataclass(frozen=True, slots=True, kw_only=True)
class LineKey:
    """A legend entry that is a line or a marker."""

    label: str
    colour: str = INK
    line: Any = "-"
    marker: str = ""


def draw_scales(
    axes: "Axes",
    size_in: tuple[float, float],
    *,
    x: str,
    y: str,
    grid: Literal["x", "y"] = "y",
    whole: str = "x",
    signed: bool = False,
) -> None:
    """Numbers, grid and names of both axes of a plot `size_in` wide and high, after their limits are final.

    An axis without a name has no numbers.
    `whole` names the axes ("", "x", "y", "xy") that count whole things. Numbers are printed without their sign, since
    what is drawn downwards counts as well, unless they are `signed` changes.
    """
    from matplotlib.collections import LineCollection

    width, height = size_in
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    small: dict[str, Any] = {"fontsize": SMALL_PT}
    ticks = {
        "x": _ticks(axes.get_xlim(), _MOST_TICKS["x"], whole="x" in whole),
        "y": _ticks(axes.get_ylim(), _MOST_TICKS["y"], whole="y" in whole),
    }
    if x:
        across = axes.get_xaxis_transform()
        for value in ticks["x"]:
            axes.text(value, -0.06 / height, _number(value), transform=across, ha="center", va="top", **small)
        axes.text(0.5, -0.28 / height, x, transform=axes.transAxes, ha="center", va="top")
    if y:
        upward = axes.get_yaxis_transform()
        for value in ticks["y"]:
            axes.text(
                -0.045 / width, value, _number(value, signed=signed), transform=upward, ha="right", va="center", **small
            )
        axes.text(-0.53 / width, 0.5, y, transform=axes.transAxes, ha="center", va="center", rotation=90)
    lines = [[(v, 0), (v, 1)] if grid == "x" else [(0, v), (1, v)] for v in ticks[grid]]
    transform = axes.get_xaxis_transform() if grid == "x" else axes.get_yaxis_transform()
    rules = LineCollection(lines, colors=RULE, linewidths=0.5, zorder=0.5, transform=transform)
    axes.add_collection(rules, autolim=False)


def _ticks(limits: tuple[float, float], most: int, *, whole: bool) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    low, high = sorted(limits)
    locator = MaxNLocator(nbins=most, integer=whole, min_n_ticks=1, steps=[1, 2, 2.5, 5, 10])
    return [float(value) for value in locator.tick_values(low, high) if low <= value <= high]


def _number(value: float, *, signed: bool = False) -> str:
    return f"{'−' if signed and value < 0 else ''}{abs(value):,.10g}"


def draw_legend(axes: "Axes", entries: Sequence[PartStyle | LineKey], size_in: tuple[float, float]) -> None:
    """Entries above the plot, which is `size_in` wide and high, one after the other in as many rows as they need."""
    rows: list[list[PartStyle | LineKey]] = [[]]
    left_in = 0.0
    for entry in entries:
        needed_in = _entry_in(entry)
        if rows[-1] and left_in + needed_in - _GAP_IN > size_in[0]:
            rows.append([])
            left_in = 0.0
        rows[-1].append(entry)
        left_in += needed_in
    for number, row in enumerate(reversed(rows)):
        left_in, foot_in = 0.0, size_in[1] + 0.06 + number * _ROW_IN
        for entry in row:
            _draw_key(axes, entry, left_in / size_in[0], foot_in / size_in[1], size_in)
            x = (left_in + _SWATCH_IN + 0.05) / size_in[0]
            y = (foot_in + 0.045) / size_in[1]
            axes.text(x, y, entry.label, transform=axes.transAxes, fontsize=SMALL_PT, va="center_baseline")
            left_in += _entry_in(entry)


def _entry_in(entry: PartStyle | LineKey) -> float:
    return _SWATCH_IN + 0.05 + text_width_in(entry.label, SMALL_PT) + _GAP_IN


def _draw_key(axes: "Axes", entry: PartStyle | LineKey, x: float, y: float, size_in: tuple[float, float]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    width, height = _SWATCH_IN / size_in[0], 0.09 / size_in[1]
    if isinstance(entry, PartStyle):
        swatch = Rectangle((x, y), width, height, facecolor=entry.fill, edgecolor=QUIET, hatch=entry.hatch or None)
        swatch.set(linewidth=0.0, transform=axes.transAxes, clip_on=False)
        axes.add_artist(swatch)
        return
    middle = y + height / 2
    xs = [x + width / 2] if entry.marker else [x, x + width]
    line = Line2D(
        xs,
        [middle] * len(xs),
        color=entry.colour,
        linestyle=entry.line,
        marker=entry.marker,
        markersize=3.5,
        linewidth=1.4,
        transform=axes.transAxes,
        clip_on=False,
    )
    axes.add_artist(line)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN = (4.5, 4.1)
LEFT_IN, RIGHT_IN, TOP_IN, FOOT_IN = 0.75, 0.2, 1.05, 0.6
PLOT_IN = (PANEL_IN[0] - LEFT_IN - RIGHT_IN, PANEL_IN[1] - TOP_IN - FOOT_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What panels show: the run without its warm-up, and its summary."""

    run: Iterations
    summary: Summary


def place_panel(figure: "Figure", column: int, row: int, sheet_in: tuple[float, float], head_in: float) -> "Axes":
    """The axes of the panel in this column and row of a sheet (width, height)."""
    width, height = sheet_in
    left = column * PANEL_IN[0] + LEFT_IN
    foot = height - head_in - (row + 1) * PANEL_IN[1] + FOOT_IN
    return figure.add_axes((left / width, foot / height, PLOT_IN[0] / width, PLOT_IN[1] / height))


def name_panel(axes: "Axes", title: str, remark: str = "") -> None:
    """Title over the panel, and a remark under the title."""
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "baseline"}
    axes.annotate(title, (0, 1), xytext=(0, (TOP_IN - 0.22) * 72), fontsize=TEXT_PT + 1, fontweight="bold", **above)
    if remark:
        axes.annotate(remark, (0, 1), xytext=(0, (TOP_IN - 0.37) * 72), fontsize=SMALL_PT, color=QUIET, **above)


def stack(axes: "Axes", parts: Sequence[tuple[PartStyle, FloatArray]], *, down: bool = False) -> None:
    """One bar for each position 0, 1, ...: its parts on top of each other, or below zero."""
    from matplotlib.collections import PolyCollection

    sign = -1.0 if down else 1.0
    base = np.zeros(len(parts[0][1]))
    places = np.arange(len(base), dtype=np.float64)
    for style, values in parts:
        bars = PolyCollection(
            corners(places - 0.4, places + 0.4, sign * base, sign * (base + values)),
            facecolors=style.fill,
            edgecolors=QUIET if style.hatch else style.fill,
            hatch=style.hatch or None,
            linewidths=0,
        )
        bars.set_gid(f"bar-{style.label}")
        axes.add_collection(bars)
        base = base + values
    axes.autoscale_view()


def show_ranks(axes: "Axes", count: int) -> None:
    """Limits of a horizontal axis of so many ranks or stages."""
    axes.set_xlim(-0.7, count - 0.3)


def panel_legend(axes: "Axes", entries: Sequence[PartStyle | LineKey]) -> None:
    """Legend between title and plot."""
    draw_legend(axes, entries, PLOT_IN)


def say_instead(axes: "Axes", text: str) -> None:
    """A sentence where there is nothing to plot."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=QUIET, fontsize=TEXT_PT)
