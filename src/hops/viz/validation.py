"""Predicted against measured iteration times, one panel per variant, one point per run."""

from pathlib import Path
from typing import TYPE_CHECKING

from hops.calibrate.score import RunScore
from hops.calibrate.validate import Validation
from hops.viz.canvas import picture, picture_format, shorten
from hops.viz.style import ALERT, QUIET, RULE, SMALL_PT, TEXT_PT, TITLE_PT
from hops.viz.ticks import plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_IN = 3.4
BAND = 0.1  # the shaded band is 10 % to each side
_COLOURS = ("#1f77b4", "#dd8f14", "#54306e", "#2f9e7d", "#c24a2e", "#6b7178", "#8a6d3b", "#17becf", "#111111")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_NAMED = 2  # the worst runs of a panel are named
_LONGEST_NAME = 18


def draw_validation(found: Validation, path: Path) -> None:
    """Write a PNG, SVG or PDF. Mean iteration of every run, both axes logarithmic; colours tell devices apart."""
    picture_format(path)
    groups = sorted({run.groups["devices"] for run in found.runs})
    columns = len(found.variants)
    width, rows = PANEL_IN * columns + 0.5, -(-len(groups) // 3)
    height = PANEL_IN + 0.9 + 0.2 * rows
    with picture(path, width_in=width, height_in=height) as figure:
        title = f"Predicted against measured mean iteration, {len(found.runs)} runs"
        figure.text(0.6 / width, 1 - 0.3 / height, title, fontsize=TITLE_PT, fontweight="bold")
        figure.text(0.6 / width, 1 - 0.5 / height, f"{found.how}; band: 10 %", fontsize=TEXT_PT, color=QUIET)
        for place, name in enumerate(found.variants):
            left = (0.6 + place * PANEL_IN) / width
            bottom = (0.75 + 0.2 * rows) / height
            axes = figure.add_axes((left, bottom, (PANEL_IN - 0.75) / width, (PANEL_IN - 0.75) / height))
            _draw_panel(axes, found, name, groups)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.6 / width, 0.05 / height), ncols=3)


def _draw_panel(axes: "Axes", found: Validation, variant: str, groups: list[str]) -> None:
    figures = found.suite(variant)
    scores = [run.scores[variant] for run in found.runs]
    times = [1e3 * each for score in scores for each in _pair(score)]
    low, high = min(times) / 1.3, max(times) * 1.15
    axes.fill_between(
        [low, high],
        [low * (1 - BAND), high * (1 - BAND)],
        [low * (1 + BAND), high * (1 + BAND)],
        color=RULE,
        alpha=0.5,
        lw=0,
    )
    axes.plot([low, high], [low, high], color=QUIET, lw=0.8)
    for number, group in enumerate(groups):
        pairs = [_pair(run.scores[variant]) for run in found.runs if run.groups["devices"] == group]
        axes.scatter(
            [1e3 * measured for measured, _ in pairs],
            [1e3 * predicted for _, predicted in pairs],
            s=16,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            label=group,
            zorder=3,
            linewidths=0,
        )
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    _name_worst(axes, scores)
    axes.set_title(
        f"{variant}: {figures.throughput_mape_pct:.1f} % (worst {figures.throughput_max_pct:.0f} %)", loc="left"
    )
    axes.set_xlabel("measured, ms")
    if axes.get_subplotspec() is None and not axes.figure.axes.index(axes):
        axes.set_ylabel("predicted, ms")
    plain_ticks(axes, low, high)


def _name_worst(axes: "Axes", scores: list[RunScore]) -> None:
    """Name the worst runs, but none whose name would lie on another's."""
    named: list[float] = []
    low, high = axes.get_xlim()
    middle = (low * high) ** 0.5
    for score in sorted(scores, key=lambda score: -abs(score.throughput_pct))[:_NAMED]:
        measured, predicted = _pair(score)
        if any(abs(measured / other - 1) < BAND for other in named):
            continue
        named.append(measured)
        above, right = predicted > measured, 1e3 * measured > middle
        axes.annotate(
            shorten(score.name, _LONGEST_NAME),
            (1e3 * measured, 1e3 * predicted),
            xytext=(-4 if right else 4, 4 if above else -4),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom" if above else "top",
            fontsize=SMALL_PT,
            color=ALERT,
        )


def _pair(score: RunScore) -> tuple[float, float]:
    return score.measured.mean_iteration_s, score.predicted.mean_iteration_s
