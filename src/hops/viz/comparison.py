"""The comparison: timelines of several runs on one time axis, each with its figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.errors import UsageError
from hops.metrics.summary import RunFacts, Summary
from hops.trace.trace import Trace
from hops.units import NS_PER_S, format_time
from hops.viz.canvas import picture, picture_format, text_width_in
from hops.viz.headline import count, percent, summary_figures
from hops.viz.lanes import (
    Lanes,
    draw_background,
    draw_boxes,
    draw_iteration_starts,
    drawn_rows,
    frame,
    has_pairs,
    ops_in,
)
from hops.viz.overlays import broken_handles, broken_in, draw_broken
from hops.viz.sheet import Sheet, chunks_of, lane_names, lanes_width_in, write_lane_texts
from hops.viz.style import INK, QUIET, TEXT_PT, TITLE_PT, chunk_handle, op_handles, pair_handle
from hops.viz.window import TimeUnit, Window, choose_window, readable_iterations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOXES = (0.06, 0.94)
HEADING_IN = 0.42


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One run: its name, the figures that stand beside the name, and what to show of it."""

    name: str
    figures: str
    trace: Trace
    window: Window

    @property
    def num_ranks(self) -> int:
        return self.trace.meta.num_ranks

    @property
    def span_ns(self) -> int:
        return self.window.end_ns - self.window.start_ns

    @property
    def end_label(self) -> str:
        return format_time(self.span_ns / NS_PER_S)


def draw_blocks(blocks: Sequence[Block], path: Path, *, title: str, subtitle: str) -> None:
    """Write all blocks as one PNG, SVG or PDF."""
    sheet = blocks_sheet(blocks)
    with picture(path, width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_blocks(figure, blocks, sheet, title=title, subtitle=subtitle)


def blocks_sheet(blocks: Sequence[Block], *, below_in: float = 0.0) -> Sheet:
    """The sheet that holds them, with room for the longest heading and for the end label of the longest run."""
    height_in = _lane_in(blocks)
    longest = max((block.window for block in blocks), key=lambda window: window.end_ns - window.start_ns)
    heading_in = max(_name_in(block) + text_width_in(block.figures, TEXT_PT) for block in blocks)
    return Sheet.around(
        lanes_in=max(heading_in, *(lanes_width_in(drawn_rows(b.trace, b.window), longest) for b in blocks)),
        body_in=sum(HEADING_IN + height_in * block.num_ranks for block in blocks),
        head_in=0.5,
        left=[name for block in blocks for name in lane_names(block.trace, height_in)],
        right=[block.end_label for block in blocks],
        legend=[handle.get_label() for handle in _handles(blocks)],
        below_in=below_in,
    )


def paint_blocks(figure: "Figure", blocks: Sequence[Block], sheet: Sheet, *, title: str, subtitle: str) -> None:
    """Draw on an empty figure of the sheet's size."""
    longest_ns = max(block.span_ns for block in blocks)
    unit = TimeUnit.fit(longest_ns)
    lane_in = _lane_in(blocks)
    axes = sheet.add_axes(figure)
    frame(
        axes,
        height=sheet.body_in / lane_in,
        left=0.0,
        right=longest_ns / unit.ns,
        unit=unit,
        label="time since start of the first iteration shown",
    )
    first = 0.0
    for block in blocks:
        first += HEADING_IN / lane_in
        lanes = Lanes(
            first=first,
            boxes=BOXES,
            origin_ns=block.window.start_ns,
            unit=unit,
            pt_per_x=sheet.lanes_in * 72 * unit.ns / longest_ns,
            pt_per_y=lane_in * 72,
        )
        _paint_block(axes, block, lanes, lane_in)
        first += block.num_ranks
    sheet.write_headings(figure, title, subtitle)
    sheet.add_legend(figure, _handles(blocks))


def _paint_block(axes: "Axes", block: Block, lanes: Lanes, lane_in: float) -> None:
    draw_background(axes, lanes, block.num_ranks, block.window)
    draw_boxes(axes, drawn_rows(block.trace, block.window), lanes, block.window)
    draw_broken(axes, broken_in(block.trace, block.window), lanes, block.window)
    draw_iteration_starts(axes, lanes, block.num_ranks, block.window, named=False)
    write_lane_texts(axes, lane_names(block.trace, lane_in), lanes, side="left", at=sum(BOXES) / 2)
    above: dict[str, Any] = {
        "xycoords": axes.get_yaxis_transform(),
        "textcoords": "offset points",
        "va": "bottom",
        "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0},  # grid lines stop at the text
    }
    axes.annotate(block.name, (0, lanes.first), xytext=(0, 4), fontsize=TITLE_PT - 1, fontweight="bold", **above)
    figures_pt = _name_in(block) * 72
    axes.annotate(block.figures, (0, lanes.first), xytext=(figures_pt, 4), fontsize=TEXT_PT, color=QUIET, **above)
    end = block.span_ns / lanes.unit.ns
    bottom = lanes.first + block.num_ranks
    axes.plot([end, end], [lanes.first, bottom], color=INK, linewidth=1.2, zorder=2.9, clip_on=False)
    axes.annotate(
        block.end_label,
        (end, (lanes.first + bottom) / 2),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=TEXT_PT,
        fontweight="bold",
        annotation_clip=False,
    )


def _lane_in(blocks: Sequence[Block]) -> float:
    """All lanes are equally high, and thin enough for the blocks to be seen at once."""
    return float(np.clip(10.0 / sum(block.num_ranks for block in blocks), 0.09, 0.42))


def _name_in(block: Block) -> float:
    """Width of the name and the space after it; bold letters are wider by up to a fifth."""
    return 1.2 * text_width_in(block.name, TITLE_PT - 1) + 0.15


def _handles(blocks: Sequence[Block]) -> list[Any]:
    ops = {op for block in blocks for op in ops_in(drawn_rows(block.trace, block.window))}
    handles = op_handles(sorted(ops))
    chunks = max(chunks_of(block.trace.meta) for block in blocks)
    if chunks > 1:
        handles.append(chunk_handle(chunks))
    if any(has_pairs(drawn_rows(block.trace, block.window)) for block in blocks):
        handles.append(pair_handle())
    broken = [handle for block in blocks for handle in broken_handles(broken_in(block.trace, block.window))]
    return handles + list({handle.get_label(): handle for handle in broken}.values())


def draw_comparison(runs: Sequence[tuple[str, Trace, Summary, RunFacts]], path: Path) -> None:
    """Write a PNG, SVG or PDF of runs, given as (name, trace, its summary, facts), under each other.

    As many iterations after warm-up are shown as stay readable in every run. Each run but the first says how much
    faster or slower than the first one it is.

    Raises UsageError for any other suffix, no runs, or a run without an iteration after warm-up.
    """
    picture_format(path)
    blocks = comparison_blocks(runs)
    draw_blocks(blocks, path, title=f"Comparison of {len(runs)} runs", subtitle=_what_all_share(runs))


def comparison_blocks(runs: Sequence[tuple[str, Trace, Summary, RunFacts]]) -> list[Block]:
    """One block per run, each with as many iterations as the others."""
    if not runs:
        raise UsageError("nothing to compare: got no runs, expected at least one")
    shown = [readable_iterations(trace, facts) for _, trace, _, facts in runs]
    fit = min(map(len, shown))
    first, _, baseline, _ = runs[0]
    return [
        Block(
            name=name,
            figures=summary_figures(summary) + (_gain(summary, baseline, first) if position else ""),
            trace=trace,
            window=choose_window(trace, facts, iterations=shown[position][:fit]),
        )
        for position, (name, trace, summary, facts) in enumerate(runs)
    ]


def _gain(summary: Summary, baseline: Summary, name: str) -> str:
    """`, 12.0 % more throughput than 1f1b`."""
    gain = summary.throughput.microbatches_per_s / baseline.throughput.microbatches_per_s - 1
    size = percent(abs(gain))
    if size == percent(0):
        return f", throughput as {name}"
    return f", {size} {'more' if gain > 0 else 'less'} throughput than {name}"


def _what_all_share(runs: Sequence[tuple[str, Trace, Summary, RunFacts]]) -> str:
    """Ranks and microbatches, if they are the same in all runs."""
    sizes = {(summary.num_ranks, summary.num_microbatches) for _, _, summary, _ in runs}
    if len(sizes) > 1:
        return "on one time axis"
    ((ranks, microbatches),) = sizes
    return f"{count(ranks, 'rank')}, {count(microbatches, 'microbatch', 'es')}, on one time axis"
