"""Two runs against each other: both timelines, where each rank's time differs, and what the difference consists of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.distributions import FloatArray
from hops.metrics.audit import audit
from hops.metrics.bubble import bubbles
from hops.metrics.difference import Difference, break_down
from hops.metrics.difference import Difference as PathDifference
from hops.metrics.difference import difference as path_difference
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.metrics.throughput import iteration_times_ns
from hops.program.action import Op
from hops.trace.trace import Stream, Trace
from hops.units import NS_PER_S, format_time
from hops.viz.canvas import picture, picture_format, text_width_in
from hops.viz.comparison import Block, blocks_sheet, paint_blocks
from hops.viz.headline import percent
from hops.viz.panel import draw_legend, draw_scales, show_ranks, stack
from hops.viz.sheet import Sheet
from hops.viz.style import ALERT, IDLE_PART, INK, OPS, QUIET, RULE, TEXT_PT, PartStyle
from hops.viz.window import TimeUnit, choose_window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_STEPS = 12
_STEP_IN, _HEAD_IN, _FOOT_IN = 0.2, 0.45, 0.6
_MORE, _LESS = ALERT, OPS[Op.OPTIMIZER].fill


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallBar:
    """One step: from `start_ms` on, `change_ms` more."""

    name: str
    start_ms: float
    change_ms: float

    @property
    def end_ms(self) -> float:
        return self.start_ms + self.change_ms


def steps_of(found: Difference) -> list[WaterfallBar]:
    """The greatest changes, one after the other, then all others as one; they lead from one time to the other."""
    changes = [(str(change), change.change_ms) for change in found.changes if change.change_ms]
    shown, rest = changes[:_MOST_STEPS], changes[_MOST_STEPS:]
    if rest:
        shown.append((f"{len(rest)} others", sum(change for _, change in rest)))
    steps: list[WaterfallBar] = []
    for name, change in shown:
        start = steps[-1].end_ms if steps else found.first.iteration_ms
        steps.append(WaterfallBar(name=name, start_ms=start, change_ms=change))
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


def _paint_step(axes: "Axes", line: int, step: WaterfallBar) -> None:
    more = step.change_ms > 0
    axes.plot([step.start_ms] * 2, [line - 1, line], color=QUIET, linewidth=0.6)
    bar = axes.barh(line, step.change_ms, left=step.start_ms, height=0.62, color=_MORE if more else _LESS)
    bar[0].set_gid(f"step-{line}")
    axes.annotate(
        f"{step.change_ms:+.2f}".replace("-", "−"),
        (step.end_ms, line),
        xytext=(4 if more else -4, 0),
        textcoords="offset points",
        ha="left" if more else "right",
        va="center",
        fontsize=TEXT_PT,
    )


if TYPE_CHECKING:
    from matplotlib.figure import Figure

BELOW_IN = 3.4
PLOT_FOOT_IN, PLOT_IN = 0.6, 1.9
NamedRun = tuple[str, Trace, RunFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDifference:
    """What one iteration of the second run takes longer than of the first, in ns: mean, rank by rank and by part.

    The parts of every rank sum to `iteration_ns`: its ops, and `None` for the rest, in which it idles.
    """

    iteration_ns: float
    parts: dict[Op | None, FloatArray]


def draw_diff(first: NamedRun, second: NamedRun, path: Path) -> None:
    """Write a PNG, SVG or PDF of two runs, each (name, trace, facts).

    Above, the iteration nearest to the median of each, on one time axis. Then, for pipelines of as many ranks, rank by
    rank, what the mean iteration of the second takes longer than that of the first. Below, the same difference along
    the critical paths of both (see `hops.metrics.difference`).

    Raises UsageError for any other suffix, or if warm-up leaves no iteration.
    """
    picture_format(path)
    picture_of = compare(first, second)
    with picture(path, width_in=picture_of.sheet.width_in, height_in=picture_of.sheet.height_in) as figure:
        picture_of.paint(figure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the picture shows, and the sheet that holds it. `by_rank` is None for different numbers of ranks."""

    names: tuple[str, str]
    blocks: list[Block]
    subtitle: str
    by_rank: RankDifference | None
    along_paths: PathDifference

    @property
    def sheet(self) -> Sheet:
        ranks_in = 0.0 if self.by_rank is None else BELOW_IN
        return blocks_sheet(self.blocks, below_in=ranks_in + steps_in(self.along_paths))

    def paint(self, figure: "Figure") -> None:
        """Draw on an empty figure of the sheet's size."""
        sheet, (first, second) = self.sheet, self.names
        paint_blocks(figure, self.blocks, sheet, title=f"{first} against {second}", subtitle=self.subtitle)
        if self.by_rank is not None:
            paint_difference(figure, self.by_rank, sheet, self.names, foot_in=steps_in(self.along_paths))
        paint_steps(figure, self.along_paths, sheet, self.names)


def compare(first: NamedRun, second: NamedRun) -> Comparison:
    """Everything that the picture shows."""
    runs = [Iterations.of(trace, facts) for _, trace, facts in (first, second)]
    means = [float(iteration_times_ns(run).mean()) for run in runs]
    return Comparison(
        names=(first[0], second[0]),
        blocks=[_block(named, run) for named, run in zip((first, second), runs, strict=True)],
        subtitle=f"mean iteration of {second[0]}: {_longer(means[1] / means[0] - 1)} that of {first[0]}",
        by_rank=difference_of(*runs) if runs[0].num_ranks == runs[1].num_ranks else None,
        along_paths=path_difference(*(break_down(audit(run)) for run in runs)),
    )


def _longer(change: float) -> str:
    size = percent(abs(change))
    if size == percent(0):
        return "as"
    return f"{size} {'longer' if change > 0 else 'shorter'} than"


def _block(named: NamedRun, run: Iterations) -> Block:
    name, trace, facts = named
    times = iteration_times_ns(run)
    typical = int(run.iterations[np.abs(times - np.median(times)).argmin()])
    bubble = percent(bubbles(run).pipeline.fraction())
    return Block(
        name=name,
        figures=f"iteration {format_time(float(times.mean()) / NS_PER_S)} on average, pipeline bubble {bubble}; "
        f"shown is iteration {typical}, nearest to the median",
        trace=trace,
        window=choose_window(trace, facts, iterations=[typical]),
    )


def difference_of(first: Iterations, second: Iterations) -> RankDifference:
    """Second minus first."""
    spent = [_spent(run) for run in (first, second)]
    means = [float(iteration_times_ns(run).mean()) for run in (first, second)]
    change = spent[1] - spent[0]
    parts: dict[Op | None, FloatArray] = {op: change[:, op] for op in Op if change[:, op].any()}
    parts[None] = means[1] - means[0] - change.sum(axis=1)
    return RankDifference(iteration_ns=means[1] - means[0], parts=parts)


def _spent(run: Iterations) -> FloatArray:
    """Nanoseconds per iteration that each rank spends on each op: shape (ranks, ops)."""
    rows = run.trace.where(~np.isin(run.trace.stream, (Stream.MESSAGE, Stream.FAULT)))
    cells = rows.rank.astype(np.int64) * len(Op) + rows.op
    sums = np.bincount(cells, weights=rows.duration_ns, minlength=run.num_ranks * len(Op))
    return np.asarray(sums.reshape(run.num_ranks, len(Op)) / run.num_iterations, dtype=np.float64)


def paint_difference(
    figure: "Figure", difference: RankDifference, sheet: Sheet, names: tuple[str, str], *, foot_in: float
) -> None:
    """Bars below the blocks, `foot_in` above the sheet's foot: upwards what takes longer in the second run."""
    largest_ns = max(float(np.abs(values).max()) for values in difference.parts.values())
    unit = TimeUnit.fit(max(int(largest_ns), 1))
    width, height = sheet.width_in, sheet.height_in
    axes = figure.add_axes(
        (sheet.left_in / width, (foot_in + PLOT_FOOT_IN) / height, sheet.lanes_in / width, PLOT_IN / height)
    )
    parts = [(_style(op), values / unit.ns) for op, values in difference.parts.items()]
    stack(axes, [(style, np.maximum(values, 0)) for style, values in parts])
    stack(axes, [(style, np.maximum(-values, 0)) for style, values in parts], down=True)
    axes.axhline(0, color=INK, linewidth=0.8)
    ranks = len(parts[0][1])
    show_ranks(axes, ranks)
    low, high = axes.get_ylim()
    if low == high:  # nothing differs
        low, high = -1.0, 1.0
    axes.set_ylim(low, high)
    size_in = (sheet.lanes_in, PLOT_IN)
    draw_scales(axes, size_in, x="rank", y=f"change [{unit.name}]", signed=True)
    total = difference.iteration_ns / unit.ns
    axes.text(
        0.0,
        1 + 0.32 / PLOT_IN,
        f"Time per iteration, {names[1]} minus {names[0]}: {total:+.3g} {unit.name} on every rank, made of",
        transform=axes.transAxes,
        fontsize=TEXT_PT + 1,
        fontweight="bold",
    )
    draw_legend(axes, [style for style, _ in parts], size_in)


def _style(op: Op | None) -> PartStyle:
    if op is None:
        return IDLE_PART
    return PartStyle(fill=OPS[op].fill, label=OPS[op].label, hatch=OPS[op].hatch)
