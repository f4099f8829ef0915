"""The Pareto plot: throughput against cost of all simulated plans, memory as colour, the plans nobody beats joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hops.errors import UsageError
from hops.viz.canvas import picture, picture_format
from hops.viz.style import INK, QUIET, SMALL_PT, TEXT_PT, TITLE_PT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_IN, _HEIGHT_IN = 8.0, 5.2
_COLOURS = "viridis_r"
_NEAR = 0.04  # of the axes: labels nearer than this are joined


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPoint:
    """One plan as the plot shows it.

    Attributes:
        label: written beside it; "" for none.
        rate: tokens or samples per second, to be large.
        cost: price of a million of them, to be small.
        fullness: memory of the fullest device over its capacity; None if not known.
    """

    label: str
    rate: float
    cost: float
    fullness: float | None


def draw_pareto(points: Sequence[PlanPoint], path: Path, *, unit: str) -> None:
    """Write a PNG, SVG or PDF of plans; `unit` is what rates count, such as tokens.

    Raises UsageError for any other suffix, or without plans.
    """
    picture_format(path)
    if not points:
        raise UsageError("nothing to draw: got no plans, expected at least one")
    with picture(path, width_in=_WIDTH_IN, height_in=_HEIGHT_IN) as figure:
        axes = figure.add_axes((0.1, 0.12, 0.74, 0.72))
        figure.text(0.1, 0.93, "Plans: throughput, cost, memory", fontsize=TITLE_PT, fontweight="bold", color=INK)
        figure.text(
            0.1,
            0.885,
            f"{len(points)} simulated; right and down is better; the line joins plans that none beats in both",
            fontsize=TEXT_PT,
            color=QUIET,
        )
        _draw(axes, points, unit)


def frontier(points: Sequence[PlanPoint]) -> list[PlanPoint]:
    """Plans that no other beats in rate and cost at once, by rate."""
    kept: list[PlanPoint] = []
    for point in sorted(points, key=lambda point: (-point.rate, point.cost)):
        if not kept or point.cost < kept[-1].cost:
            kept.append(point)
    return kept[::-1]


def _draw(axes: "Axes", points: Sequence[PlanPoint], unit: str) -> None:
    best = frontier(points)
    axes.plot(
        [point.rate for point in best], [point.cost for point in best], color=QUIET, linewidth=1.0, zorder=1, marker=""
    )
    dots = axes.scatter(
        [point.rate for point in points],
        [point.cost for point in points],
        c=[100 * (point.fullness or 0.0) for point in points],
        cmap=_COLOURS,
        vmin=0,
        vmax=100,
        s=46,
        edgecolors=INK,
        linewidths=0.6,
        zorder=2,
    )
    for text, point in _labels(points):
        axes.annotate(
            text, (point.rate, point.cost), textcoords="offset points", xytext=(6, 5), fontsize=SMALL_PT, color=INK
        )
    axes.set_xlabel(f"{unit} per second")
    axes.set_ylabel(f"USD per million {unit}")
    axes.margins(0.12)
    axes.grid(visible=True)
    axes.ticklabel_format(useOffset=False, style="plain")
    inset = axes.inset_axes((1.03, 0.0, 0.025, 1.0))
    bar = axes.figure.colorbar(dots, cax=inset)
    bar.set_label("memory of the fullest device, %", fontsize=SMALL_PT)
    bar.outline.set_visible(False)


def _labels(points: Sequence[PlanPoint]) -> list[tuple[str, PlanPoint]]:
    """Labels of the labelled points; those too near to each other to read share one."""
    width = max(point.rate for point in points) - min(point.rate for point in points)
    height = max(point.cost for point in points) - min(point.cost for point in points)
    shared: list[tuple[list[str], PlanPoint]] = []
    for point in points:
        if not point.label:
            continue
        for texts, other in shared:
            if abs(point.rate - other.rate) <= _NEAR * width and abs(point.cost - other.cost) <= _NEAR * height:
                texts.append(point.label)
                break
        else:
            shared.append(([point.label], point))
    return [(", ".join(texts), point) for texts, point in shared]
