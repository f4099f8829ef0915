"""Two runs of the same pipeline against each other: both timelines, and where each rank's time differs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hops.actions import Op
from hops.draws import FloatArray
from hops.errors import UsageError
from hops.metrics import Run, RunFacts, bubbles, iteration_times_ns
from hops.trace import Stream, Trace
from hops.units import format_time
from hops.viz.blocks import Block, blocks_sheet, paint_blocks
from hops.viz.board import show_ranks, stack
from hops.viz.canvas import picture, picture_format
from hops.viz.headline import percent
from hops.viz.scale import draw_legend, draw_scales
from hops.viz.sheet import Sheet
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
    """Write a PNG or SVG of two runs, each (name, trace, facts): the iteration nearest to the median of each, on one
    time axis, and below, rank by rank, what the mean iteration of the second takes longer than that of the first.

    Raises UsageError for any other suffix, for runs of different numbers of ranks, or if warm-up leaves no iteration.
    """
    picture_format(path)
    blocks, difference, title, subtitle = compare(first, second)
    sheet = blocks_sheet(blocks, below_in=BELOW_IN)
    with picture(path, width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_blocks(figure, blocks, sheet, title=title, subtitle=subtitle)
        paint_difference(figure, difference, sheet, (first[0], second[0]))


def compare(first: NamedRun, second: NamedRun) -> tuple[list[Block], Difference, str, str]:
    """Blocks, difference, title and subtitle of the picture."""
    runs = [Run.of(trace, facts) for _, trace, facts in (first, second)]
    if runs[0].num_ranks != runs[1].num_ranks:
        raise UsageError(
            f"cannot compare rank by rank: {first[0]} has {runs[0].num_ranks} ranks, {second[0]} has "
            f"{runs[1].num_ranks}; expected the same number: give two runs of the same pipeline"
        )
    blocks = [_block(named, run) for named, run in zip((first, second), runs, strict=True)]
    means = [float(iteration_times_ns(run).mean()) for run in runs]
    subtitle = f"mean iteration of {second[0]}: {_longer(means[1] / means[0] - 1)} that of {first[0]}"
    return blocks, difference_of(*runs), f"{first[0]} against {second[0]}", subtitle


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


def paint_difference(figure: "Figure", difference: Difference, sheet: Sheet, names: tuple[str, str]) -> None:
    """Bars below the blocks: upwards what takes longer in the second run, downwards what takes less."""
    largest_ns = max(float(np.abs(values).max()) for values in difference.parts.values())
    unit = TimeUnit.fit(max(int(largest_ns), 1))
    width, height = sheet.width_in, sheet.height_in
    axes = figure.add_axes((sheet.left_in / width, PLOT_FOOT_IN / height, sheet.lanes_in / width, PLOT_IN / height))
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
