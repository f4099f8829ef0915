"""Predicted against measured of published rows: step times in one panel, peak memory in the other."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hops.published.score import PublishedValidation, RowResult, figures
from hops.viz.canvas import picture, picture_format
from hops.viz.style import QUIET, RULE, TEXT_PT, TITLE_PT
from hops.viz.ticks import plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_IN = 4.2
BAND = 0.1  # the shaded band is 10 % to each side
COLUMNS = 3  # of the legend
_COLOURS = ("#1f77b4", "#dd8f14", "#54306e", "#2f9e7d", "#c24a2e", "#6b7178", "#8a6d3b", "#17becf", "#111111")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "*", "d")

Pair = Callable[[RowResult], tuple[float | None, float | None]]


def draw_published(found: PublishedValidation, path: Path) -> None:
    """Write a PNG or SVG: both axes logarithmic, a point per row, colours tell sources apart."""
    picture_format(path)
    sources = found.sources
    rows = -(-len(sources) // COLUMNS)
    width, height = 2 * PANEL_IN + 0.8, PANEL_IN + 0.9 + 0.2 * rows
    with picture(path, width_in=width, height_in=height) as figure:
        title = f"Published measurements predicted, {len(found.results)} rows"
        figure.text(0.7 / width, 1 - 0.3 / height, title, fontsize=TITLE_PT, fontweight="bold")
        figure.text(0.7 / width, 1 - 0.5 / height, f"{found.how}; band: 10 %", fontsize=TEXT_PT, color=QUIET)
        bottom, side = (0.75 + 0.2 * rows) / height, (PANEL_IN - 0.85) / height
        of = figures(found.results)
        for place, (pair, unit, heading) in enumerate(_panels(of.time_mape_pct, of.memory_median_pct)):
            left = (0.7 + place * (PANEL_IN + 0.2)) / width
            axes = figure.add_axes((left, bottom, (PANEL_IN - 0.85) / width, side))
            _panel(axes, found, pair)
            axes.set_title(heading, loc="left")
            axes.set_xlabel(f"measured, {unit}")
            axes.set_ylabel(f"predicted, {unit}")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.6 / width, 0.05 / height), ncols=COLUMNS)


def _panels(time: float | None, memory: float | None) -> tuple[tuple[Pair, str, str], ...]:
    def said(value: float | None, what: str) -> str:
        return "not measured" if value is None else f"{what} {value:.1f} %"

    return (
        (lambda row: (row.measured_s, row.predicted_s), "s", f"Iteration: {said(time, 'MAPE')}"),
        (lambda row: (row.measured_gib, row.predicted_gib), "GiB", f"Memory: {said(memory, 'median error')}"),
    )


def _panel(axes: "Axes", found: PublishedValidation, pair: Pair) -> None:
    both = [(row.source, *pair(row)) for row in found.results]
    points = [(source, x, y) for source, x, y in both if x is not None and y is not None]
    values = [value for _, x, y in points for value in (x, y)] or [1.0]
    low, high = min(values) / 1.3, max(values) * 1.3
    line = [low, high]
    axes.fill_between(
        line, [each * (1 - BAND) for each in line], [each * (1 + BAND) for each in line], color=RULE, alpha=0.5, lw=0
    )
    axes.plot(line, line, color=QUIET, lw=0.8)
    for number, source in enumerate(found.sources):
        own = [(x, y) for name, x, y in points if name == source]
        axes.scatter(
            [x for x, _ in own],
            [y for _, y in own],
            s=11,
            alpha=0.7,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            label=source,
            linewidths=0,
            zorder=3,
        )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    plain_ticks(axes, low, high)
