"""The difference picture: two typical iterations on one time axis; below, what the difference consists of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hops.actions import Op
from hops.metrics import Audit, Difference, RunFacts, Summary
from hops.trace import Trace
from hops.viz.blocks import Block, blocks_sheet, paint_blocks
from hops.viz.canvas import picture, picture_format, text_width_in
from hops.viz.headline import summary_figures
from hops.viz.sheet import Sheet
from hops.viz.style import ALERT, INK, OPS, QUIET, RULE, TEXT_PT, TITLE_PT
from hops.viz.window import choose_window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_STEPS = 12
_STEP_IN = 0.22
_HEAD_IN, _FOOT_IN = 0.5, 0.5
_MORE, _LESS = ALERT, OPS[Op.OPTIMIZER].fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs."""

    name: str
    trace: Trace
    facts: RunFacts
    summary: Summary
    audit: Audit

    def block(self, letter: str) -> Block:
        """Its iteration that is nearest to the median."""
        typical = self.audit.typical_iteration
        return Block(
            name=f"{letter}: {self.name}",
            figures=f"shown is iteration {typical}; mean {summary_figures(self.summary)}",
            trace=self.trace,
            window=choose_window(self.trace, self.facts, iterations=[typical]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the way from the first run's iteration time to the second's."""

    name: str
    start_ms: float
    change_ms: float


def draw_difference(first: Side, second: Side, found: Difference, path: Path) -> None:
    """Write a PNG or SVG. Raises UsageError for any other suffix."""
    picture_format(path)
    blocks = [first.block("A"), second.block("B")]
    sheet = blocks_sheet(blocks)
    steps = steps_of(found)
    lower_in = _HEAD_IN + _STEP_IN * (len(steps) + 2) + _FOOT_IN
    with picture(path, width_in=sheet.width_in, height_in=sheet.height_in + lower_in) as figure:
        halves: Any = figure.subfigures(2, 1, height_ratios=[sheet.height_in, lower_in])
        upper, lower = halves
        share = 100 * found.total_ms / found.first.iteration_ms
        paint_blocks(
            upper,
            blocks,
            sheet,
            title=f"Mean iteration {found.total_ms:+.1f} ms ({share:+.1f} %)",
            subtitle="typical iterations on one time axis",
        )
        _paint_steps(lower, found, steps, sheet, height_in=lower_in)


def steps_of(found: Difference) -> list[Step]:
    """The greatest changes, one after the other, then all others as one; they lead from one time to the other."""
    changes = [(str(change), change.change_ms) for change in found.changes if change.change_ms]
    shown, rest = changes[:_MOST_STEPS], changes[_MOST_STEPS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(change for _, change in rest)))
    steps, at = [], found.first.iteration_ms
    for name, change in shown:
        steps.append(Step(name=name, start_ms=at, change_ms=change))
        at += change
    return steps


def _paint_steps(figure: Any, found: Difference, steps: list[Step], sheet: Sheet, *, height_in: float) -> None:
    """Bars that step from A's mean iteration time to B's, one line each."""
    names = ["A, mean iteration", *(step.name for step in steps), "B, mean iteration"]
    width_in, right_in = sheet.width_in, sheet.right_in
    left_in = max(sheet.left_in, 0.3 + max(text_width_in(name, TEXT_PT) for name in names))
    box = (left_in, _FOOT_IN, width_in - left_in - right_in, height_in - _HEAD_IN - _FOOT_IN)
    axes = figure.add_axes(tuple(size / of for size, of in zip(box, (width_in, height_in) * 2, strict=True)))
    ends = [found.first.iteration_ms, *(step.start_ms + step.change_ms for step in steps), found.second.iteration_ms]
    low, high = min(ends), max(ends)
    margin = max(0.12 * (high - low), 0.01 * high)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(names) - 0.4, -0.6)
    _paint_end(axes, 0, found.first.iteration_ms)
    for line, step in enumerate(steps, start=1):
        _paint_step(axes, line, step)
    _paint_end(axes, len(names) - 1, found.second.iteration_ms)
    axes.set_yticks(range(len(names)), names, fontsize=TEXT_PT)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=RULE)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("mean iteration time [ms]; the axis does not start at zero")
    figure.text(
        left_in / width_in, 1 - 0.28 / height_in, "Where the difference lies, along the critical path",
        fontsize=TITLE_PT, fontweight="bold",
    )  # fmt: skip


def _paint_end(axes: "Axes", line: int, value_ms: float) -> None:
    axes.plot([value_ms, value_ms], [line - 0.4, line + 0.4], color=INK, linewidth=2.0)
    place: dict[str, Any] = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(f"{value_ms:.1f} ms", (value_ms, line), fontweight="bold", **place)


def _paint_step(axes: "Axes", line: int, step: Step) -> None:
    more = step.change_ms > 0
    end = step.start_ms + step.change_ms
    axes.plot([step.start_ms] * 2, [line - 1, line], color=QUIET, linewidth=0.6)
    bar = axes.barh(line, step.change_ms, left=step.start_ms, height=0.62, color=_MORE if more else _LESS)
    bar[0].set_gid(f"step-{line}")
    axes.annotate(
        f"{step.change_ms:+.2f}",
        (end, line),
        xytext=(4 if more else -4, 0),
        textcoords="offset points",
        ha="left" if more else "right",
        va="center",
        fontsize=TEXT_PT,
    )
