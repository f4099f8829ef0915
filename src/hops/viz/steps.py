"""Steps from one run's mean iteration time to another's, one bar for each part that differs, the greatest first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hops.actions import Op
from hops.metrics import Difference
from hops.viz.canvas import text_width_in
from hops.viz.sheet import Sheet
from hops.viz.style import ALERT, INK, OPS, QUIET, RULE, TEXT_PT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_STEPS = 12
_STEP_IN, _HEAD_IN, _FOOT_IN = 0.2, 0.45, 0.6
_MORE, _LESS = ALERT, OPS[Op.OPTIMIZER].fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: from `start_ms` on, `change_ms` more."""

    name: str
    start_ms: float
    change_ms: float

    @property
    def end_ms(self) -> float:
        return self.start_ms + self.change_ms


def steps_of(found: Difference) -> list[Step]:
    """The greatest changes, one after the other, then all others as one; they lead from one time to the other."""
    changes = [(str(change), change.change_ms) for change in found.changes if change.change_ms]
    shown, rest = changes[:_MOST_STEPS], changes[_MOST_STEPS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(change for _, change in rest)))
    steps: list[Step] = []
    for name, change in shown:
        start = steps[-1].end_ms if steps else found.first.iteration_ms
        steps.append(Step(name=name, start_ms=start, change_ms=change))
    return steps


def steps_in(found: Difference) -> float:
    """Height of the panel in inches."""
    return _HEAD_IN + _STEP_IN * (len(steps_of(found)) + 2) + _FOOT_IN


def paint_steps(figure: "Figure", found: Difference, sheet: Sheet, names: tuple[str, str]) -> None:
    """The panel at the foot of the sheet, as wide as its lanes where the names of the steps leave that room."""
    steps = steps_of(found)
    lines = [names[0], *(step.name for step in steps), names[1]]
    width, height = sheet.width_in, sheet.height_in
    left_in = max(sheet.left_in, 0.3 + max(text_width_in(line, TEXT_PT) for line in lines))
    plot_in = (sheet.left_in + sheet.lanes_in - left_in, _STEP_IN * len(lines))
    axes = figure.add_axes((left_in / width, _FOOT_IN / height, plot_in[0] / width, plot_in[1] / height))
    ends = [found.first.iteration_ms, *(step.end_ms for step in steps), found.second.iteration_ms]
    margin = max(0.12 * (max(ends) - min(ends)), 0.01 * max(ends))
    axes.set_xlim(min(ends) - margin, max(ends) + margin)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    _paint_end(axes, 0, found.first.iteration_ms)
    for line, step in enumerate(steps, start=1):
        _paint_step(axes, line, step)
    _paint_end(axes, len(lines) - 1, found.second.iteration_ms)
    axes.set_yticks(range(len(lines)), lines, fontsize=TEXT_PT)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=RULE)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("mean iteration [ms], on a cut axis")
    figure.text(
        sheet.left_in / width,
        (_FOOT_IN + plot_in[1] + 0.14) / height,
        "What the difference consists of, along the critical paths of both",
        fontsize=TEXT_PT + 1,
        fontweight="bold",
    )


def _paint_end(axes: "Axes", line: int, value_ms: float) -> None:
    axes.plot([value_ms, value_ms], [line - 0.4, line + 0.4], color=INK, linewidth=2.0)
    place: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(f"{value_ms:.1f} ms", (value_ms, line), fontweight="bold", fontsize=TEXT_PT, **place)


def _paint_step(axes: "Axes", line: int, step: Step) -> None:
    more = step.change_ms > 0
    axes.plot([step.start_ms] * 2, [line - 1, line], color=QUIET, linewidth=0.6)
    bar = axes.barh(line, step.change_ms, left=step.start_ms, height=0.62, color=_MORE if more else _LESS)
    bar[0].set_gid(f"step-{line}")
    axes.annotate(
        f"{step.change_ms:+.2f}",
        (step.end_ms, line),
        xytext=(4 if more else -4, 0),
        textcoords="offset points",
        ha="left" if more else "right",
        va="center",
        fontsize=TEXT_PT,
    )
