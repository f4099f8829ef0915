"""Scales and legends of small panels, as plain texts and lines.

matplotlib's own ticks and legends are built to be interactive: on the dashboard's 14 axes they take 0.3 s of 0.9 s
(`hops run` of the demo shall end in under 2 s).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hops.viz.canvas import text_width_in
from hops.viz.style import INK, QUIET, RULE, SMALL_PT, PartStyle

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
    axes: "Axes", size_in: tuple[float, float], *, x: str, y: str, grid: Literal["x", "y"] = "y", whole: str = "x"
) -> None:
    """Numbers, grid and names of both axes of a plot `size_in` wide and high, after their limits are final.

    An axis without a name has no numbers.
    `whole` names the axes ("", "x", "y", "xy") that count whole things. Numbers are printed without their sign.
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
            axes.text(-0.045 / width, value, _number(value), transform=upward, ha="right", va="center", **small)
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


def _number(value: float) -> str:
    return f"{abs(value):,.10g}"


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
