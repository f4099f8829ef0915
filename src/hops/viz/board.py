"""A panel of the dashboard: its axes and legend placed in inches, and bars that stack by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.draws import FloatArray
from hops.metrics import Run, Summary
from hops.viz.lanes import corners
from hops.viz.scale import LineKey, draw_legend
from hops.viz.style import QUIET, SMALL_PT, TEXT_PT, PartStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_IN = (4.5, 4.1)
LEFT_IN, RIGHT_IN, TOP_IN, FOOT_IN = 0.75, 0.2, 1.05, 0.6
PLOT_IN = (PANEL_IN[0] - LEFT_IN - RIGHT_IN, PANEL_IN[1] - TOP_IN - FOOT_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What panels show: the run without its warm-up, and its summary."""

    run: Run
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
