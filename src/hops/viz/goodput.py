"""Pictures of goodput: over time, by cause, and by checkpoint interval."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hops.distributions import FloatArray
from hops.fleet.checkpoint_sweep import IntervalSweep
from hops.fleet.result import GoodputSummary
from hops.fleet.time_use import TimeUse
from hops.fleet.trajectory import Trajectory
from hops.units import NS_PER_S, format_time
from hops.viz.canvas import picture
from hops.viz.style import ALERT, BUSY, INK, MESSAGE, QUIET, RULE, SMALL_PT, TEXT_PT, TITLE_PT, PartStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DAY_NS = 86_400e9
_HOUR_S = 3600.0
PARTS: Mapping[TimeUse, PartStyle] = {
    TimeUse.REDONE: PartStyle(fill=ALERT, label="work done again"),
    TimeUse.WAITING: PartStyle(fill="#54306e", label="waiting for devices"),
    TimeUse.STALLED: PartStyle(fill="#54306e", label="stalled until back", hatch="////"),
    TimeUse.RESTART: PartStyle(fill="#dd8f14", label="restart"),
    TimeUse.RELOAD: PartStyle(fill="#f0c47c", label="reading state", hatch="...."),
    TimeUse.DETECTION: PartStyle(fill="#b9aedd", label="detection"),
    TimeUse.RECONFIGURE: PartStyle(fill="#d9d2ee", label="reconfiguration", hatch="xxxx"),
    TimeUse.CHECKPOINT: PartStyle(fill="#7fb8a4", label="checkpoints"),
    TimeUse.SLOW: PartStyle(fill=MESSAGE, label="slow devices and links"),
    TimeUse.DEGRADED: PartStyle(fill="#93aabb", label="devices missing", hatch="////"),
}

POLICY_COLOURS = ("#1f77b4", "#c24a2e", "#2f9e7d", "#54306e", "#dd8f14")
_LINES = ("-", "--", "-.", ":")


def draw_goodput(summary: GoodputSummary, trajectories: Sequence[Trajectory], path: Path) -> None:
    """Goodput up to each moment, one line per life and their mean; beside it, the hours lost by cause.

    Raises UsageError for a suffix other than png and svg.
    """
    with picture(path, width_in=11.0, height_in=4.6) as figure:
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (3, 2)})
        figure.subplots_adjust(left=0.07, right=0.965, top=0.80, bottom=0.13, wspace=0.52)
        _title(figure, summary)
        _over_time(left, trajectories)
        _by_cause(right, trajectories)


def draw_policies(
    summaries: Mapping[str, GoodputSummary], trajectories: Mapping[str, Sequence[Trajectory]], path: Path
) -> None:
    """Policies side by side: goodput up to each moment, and the hours that each loses by cause.

    A life is the same under every policy: what breaks when is drawn before any of them answers. So the range beside
    each bar is that of the differences to the first policy, life by life, and not of the lives.

    Raises UsageError for a suffix other than png, svg and pdf.
    """
    names = list(summaries)
    with picture(path, width_in=11.0, height_in=1.9 + max(2.6, 0.62 * len(names))) as figure:
        height_in = figure.get_size_inches()[1]
        left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1, 1)})
        figure.subplots_adjust(left=0.06, right=0.955, top=1 - 0.85 / height_in, bottom=1.0 / height_in, wspace=0.42)
        best = max(names, key=lambda name: summaries[name].goodput)
        title = f"Goodput of {len(names)} policies: {100 * summaries[best].goodput:.1f} % with {best}"
        figure.text(0.01, 1 - 0.28 / height_in, title, fontsize=TITLE_PT, fontweight="bold")
        first = summaries[names[0]]
        line = f"{first.devices:,} devices, {first.days:g} days, the same {first.seeds} lives under every policy"
        figure.text(0.01, 1 - 0.48 / height_in, line, fontsize=TEXT_PT, color=QUIET)
        _means_over_time(left, trajectories)
        _losses_of_policies(right, trajectories)
        figure.legend(
            *right.get_legend_handles_labels(),
            loc="lower left",
            bbox_to_anchor=(0.01, 0.01),
            ncols=5,
            fontsize=SMALL_PT,
        )


def _means_over_time(axes: "Axes", trajectories: Mapping[str, Sequence[Trajectory]]) -> None:
    lowest = 100.0
    for number, (name, lives) in enumerate(trajectories.items()):
        horizon = lives[0].horizon_ns
        times = np.linspace(horizon / 400, horizon, 400)
        mean = 100 * np.stack([_so_far(life, times, TimeUse.PRODUCTIVE) for life in lives]).mean(axis=0)
        style = _LINES[number % len(_LINES)]
        axes.plot(
            times / _DAY_NS, mean, color=POLICY_COLOURS[number % len(POLICY_COLOURS)], linestyle=style, label=name
        )
        lowest = min(lowest, float(mean[len(times) // 6 :].min()))  # early on everything is still possible
        axes.set_xlim(0, horizon / _DAY_NS)
    axes.set_ylim(max(0.0, lowest - 0.15 * (100 - lowest) - 0.5), 100)
    axes.set_xlabel("days")
    axes.set_ylabel("goodput so far [%]")
    axes.set_title("Over time: mean of the lives")
    axes.grid(axis="y")
    axes.legend(fontsize=SMALL_PT)


def _losses_of_policies(axes: "Axes", trajectories: Mapping[str, Sequence[Trajectory]]) -> None:
    names = list(trajectories)
    lost = {name: _lost_hours(lives) for name, lives in trajectories.items()}
    base = np.zeros(len(names))
    rows = np.arange(len(names))
    for cause, style in PARTS.items():
        values = np.asarray([lost[name][cause].mean() for name in names])
        if not values.any():
            continue
        axes.barh(
            rows, values, left=base, color=style.fill, hatch=style.hatch, edgecolor=INK, linewidth=0.4, height=0.6,
            label=style.label,
        )  # fmt: skip
        base = base + values
    totals = {name: np.sum(list(each.values()), axis=0) for name, each in lost.items()}
    for row, name in enumerate(names):
        text = f"{totals[name].mean():,.1f} h"
        if row and len(totals[name]) > 1:
            change = totals[name] - totals[names[0]]
            text += f" ({change.mean():+,.1f}, lives {change.min():+,.1f} to {change.max():+,.1f})".replace("-", "−")
        axes.annotate(text, (base[row], row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=SMALL_PT)
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.set_xlim(0, max(float(base.max()), 1e-9) * 1.45)
    axes.set_xlabel("hours of the whole fleet")
    axes.set_title(f"Lost by cause, and the difference to {names[0]}")


def _lost_hours(lives: Sequence[Trajectory]) -> dict[TimeUse, FloatArray]:
    """Hours lost to each cause, life by life: shape (lives,) each."""
    return {cause: np.asarray([life.spent_ns[cause] for life in lives]) / NS_PER_S / _HOUR_S for cause in PARTS}


def _title(figure: "Figure", summary: GoodputSummary) -> None:
    copies = f" in {summary.replicas} copies" if summary.replicas > 1 else ""
    lives = "1 life" if summary.seeds == 1 else f"mean of {summary.seeds} lives"
    figure.text(0.01, 0.94, f"Goodput {100 * summary.goodput:.1f} %", fontsize=TITLE_PT, fontweight="bold")
    line = (
        f"{summary.devices:,} devices{copies}, recovery by {summary.policy}, {summary.days:g} days, {lives}; "
        f"{summary.faults.interruptions:,.0f} interruptions"
    )
    figure.text(0.01, 0.895, line, fontsize=TEXT_PT, color=QUIET)


def _over_time(axes: "Axes", trajectories: Sequence[Trajectory]) -> None:
    horizon = trajectories[0].horizon_ns
    times = np.linspace(horizon / 400, horizon, 400)
    lines = np.stack([_so_far(trajectory, times, TimeUse.PRODUCTIVE) for trajectory in trajectories]) * 100
    for line in lines if len(trajectories) > 1 else ():
        axes.plot(times / _DAY_NS, line, color=BUSY.fill, linewidth=0.6, alpha=0.45)
    mean = lines.mean(axis=0)
    axes.plot(times / _DAY_NS, mean, color=INK, linewidth=1.6)
    low = float(lines[:, len(times) // 6 :].min())  # early on everything is still possible
    axes.set_ylim(max(0.0, low - 0.15 * (100 - low) - 0.5), 100)
    axes.set_xlim(0, horizon / _DAY_NS)
    axes.set_xlabel("days")
    axes.set_ylabel("goodput so far [%]")
    axes.set_title("Over time" + (": each life, and their mean" if len(trajectories) > 1 else ""))
    axes.grid(axis="y")


def _so_far(trajectory: Trajectory, times: FloatArray, cause: TimeUse) -> FloatArray:
    """Share of the time up to each moment."""
    moments = np.asarray([moment for moment, _ in trajectory.history], dtype=np.float64)
    spent = np.asarray([ledger[cause] for _, ledger in trajectory.history], dtype=np.float64)
    return np.asarray(np.interp(times, moments, spent) / times)


def _by_cause(axes: "Axes", trajectories: Sequence[Trajectory]) -> None:
    hours = {
        cause: np.asarray([trajectory.spent_ns[cause] for trajectory in trajectories]) / NS_PER_S / _HOUR_S
        for cause in PARTS
        if any(trajectory.spent_ns[cause] for trajectory in trajectories)
    }
    ordered = sorted(hours, key=lambda cause: float(hours[cause].mean()))
    for row, cause in enumerate(ordered):
        style, values = PARTS[cause], hours[cause]
        axes.barh(row, values.mean(), color=style.fill, hatch=style.hatch, edgecolor=INK, linewidth=0.4, height=0.66)
        if len(values) > 1:
            axes.plot((values.min(), values.max()), (row, row), color=INK, linewidth=1.0, marker="|", markersize=5)
        end = max(float(values.mean()), float(values.max()))
        axes.annotate(
            f"{values.mean():,.1f} h",
            (end, row),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_PT,
        )
    axes.set_yticks(range(len(ordered)), [PARTS[cause].label for cause in ordered])
    longest = max((float(values.max()) for values in hours.values()), default=1.0)
    axes.set_xlim(0, longest * 1.25)
    axes.set_xlabel("hours of the whole fleet")
    axes.set_title("Lost by cause" + (": mean, and range of the lives" if len(trajectories) > 1 else ""))


def draw_sweep(sweep: IntervalSweep, path: Path) -> None:
    """Goodput by checkpoint interval, with the best marked and theory's beside it."""
    with picture(path, width_in=7.5, height_in=4.2) as figure:
        axes = figure.subplots()
        figure.subplots_adjust(left=0.10, right=0.97, top=0.80, bottom=0.13)
        figure.text(
            0.02, 0.935, f"Best checkpoint interval: {format_time(sweep.best_s)}", fontsize=TITLE_PT, fontweight="bold"
        )
        line = f"a stop every {format_time(sweep.mtbf_s)}, training stands still for {format_time(sweep.pause_s)}"
        figure.text(0.02, 0.88, line, fontsize=TEXT_PT, color=QUIET)
        minutes = np.asarray([point.interval_s for point in sweep.points]) / 60
        goodput = 100 * np.asarray([point.goodput for point in sweep.points])
        errors = [100 * point.error for point in sweep.points if point.error is not None]
        axes.errorbar(
            minutes,
            goodput,
            yerr=errors or None,
            color=BUSY.fill,
            marker="o",
            markersize=4,
            linewidth=1.0,
            capsize=2,
            label="simulated, mean and standard error" if errors else "simulated",
        )
        marks = (
            (sweep.young_s, "Young", QUIET, "--"),
            (sweep.daly_s, "Daly", QUIET, ":"),
            (sweep.best_s, "best of the simulated", ALERT, "-"),
        )
        for seconds, name, color, style in marks:
            label = f"{name}: {format_time(seconds)}"
            axes.axvline(seconds / 60, color=color, linestyle=style, linewidth=1.1, label=label)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
        axes.set_xlabel("training between checkpoints [min]")
        axes.set_ylabel("goodput [%]")
        axes.grid(color=RULE)
        figure.legend(loc="upper right", bbox_to_anchor=(0.98, 0.99), ncols=2, fontsize=SMALL_PT)
