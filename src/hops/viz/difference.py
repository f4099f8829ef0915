"""Two runs against each other: both timelines, where each rank's time differs, and what the difference consists of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hops.actions import Op
from hops.draws import FloatArray
from hops.metrics import Difference as PathDifference
from hops.metrics import Run, RunFacts, audit, break_down, bubbles, iteration_times_ns
from hops.metrics import difference as path_difference
from hops.trace import Stream, Trace
from hops.units import format_time
from hops.viz.blocks import Block, blocks_sheet, paint_blocks
from hops.viz.board import show_ranks, stack
from hops.viz.canvas import picture, picture_format
from hops.viz.headline import percent
from hops.viz.scale import draw_legend, draw_scales
from hops.viz.sheet import Sheet
from hops.viz.steps import paint_steps, steps_in
from hops.viz.style import IDLE_PART, INK, OPS, TEXT_PT, PartStyle
from hops.viz.window import TimeUnit, choose_window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BELOW_IN = 3.4
PLOT_FOOT_IN, PLOT_IN = 0.6, 1.9
NamedRun = tuple[str, Trace, RunFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one iteration of the second run takes longer than of the first, in ns: mean, rank by rank and by part.

    The parts of every rank sum to `iteration_ns`: its ops, and `None` for the rest, in which it idles.
    """

    iteration_ns: float
    parts: dict[Op | None, FloatArray]


def draw_diff(first: NamedRun, second: NamedRun, path: Path) -> None:
    """Write a PNG or SVG of two runs, each (name, trace, facts).

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
    by_rank: Difference | None
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
    runs = [Run.of(trace, facts) for _, trace, facts in (first, second)]
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


def _block(named: NamedRun, run: Run) -> Block:
    name, trace, facts = named
    times = iteration_times_ns(run)
    typical = int(run.iterations[np.abs(times - np.median(times)).argmin()])
    bubble = percent(bubbles(run).pipeline.fraction())
    return Block(
        name=name,
        figures=f"iteration {format_time(float(times.mean()) / 1e9)} on average, pipeline bubble {bubble}; "
        f"shown is iteration {typical}, nearest to the median",
        trace=trace,
        window=choose_window(trace, facts, iterations=[typical]),
    )


def difference_of(first: Run, second: Run) -> Difference:
    """Second minus first."""
    spent = [_spent(run) for run in (first, second)]
    means = [float(iteration_times_ns(run).mean()) for run in (first, second)]
    change = spent[1] - spent[0]
    parts: dict[Op | None, FloatArray] = {op: change[:, op] for op in Op if change[:, op].any()}
    parts[None] = means[1] - means[0] - change.sum(axis=1)
    return Difference(iteration_ns=means[1] - means[0], parts=parts)


def _spent(run: Run) -> FloatArray:
    """Nanoseconds per iteration that each rank spends on each op: shape (ranks, ops)."""
    rows = run.trace.where(~np.isin(run.trace.stream, (Stream.MESSAGE, Stream.FAULT)))
    cells = rows.rank.astype(np.int64) * len(Op) + rows.op
    sums = np.bincount(cells, weights=rows.duration_ns, minlength=run.num_ranks * len(Op))
    return np.asarray(sums.reshape(run.num_ranks, len(Op)) / run.num_iterations, dtype=np.float64)


def paint_difference(
    figure: "Figure", difference: Difference, sheet: Sheet, names: tuple[str, str], *, foot_in: float
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
    draw_scales(axes, size_in, x="rank", y=f"change [{unit.name}]")
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
