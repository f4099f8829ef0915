"""The dashboard: eight panels that say where an iteration's time and memory go."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hops.distributions import FloatArray
from hops.metrics.bubble import bubbles
from hops.metrics.exposed import Exposed, exposed
from hops.metrics.iterations import Iterations, is_action
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.summary import RunFacts, Summary
from hops.metrics.throughput import microbatch_latencies_ns
from hops.program.action import ACTION_OPS
from hops.trace.trace import Trace
from hops.units import format_bandwidth
from hops.viz.canvas import fit_text, picture, shorten
from hops.viz.headline import device_table, key_table, ms, percent, summary_figures, what_ran
from hops.viz.panel import (
    LEFT_IN,
    PANEL_IN,
    PLOT_IN,
    Board,
    LineKey,
    draw_scales,
    name_panel,
    panel_legend,
    place_panel,
    say_instead,
    show_ranks,
    stack,
)
from hops.viz.style import (
    ALERT,
    BUSY,
    CAUSES,
    EXPOSED,
    EXPOSED_KINDS,
    IDLE_PART,
    INK,
    MEMORY_PARTS,
    OPS,
    QUIET,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    PartStyle,
)
from hops.viz.window import TimeUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINKS = 12
MOST_DEVICE_LINES = 6
GIB = 2.0**30
_LINK_BAR = 0.34
_LINK_TEXT: dict[str, Any] = {"fontsize": SMALL_PT - 1, "va": "bottom", "ha": "left"}
_VALUES_FROM = 0.48  # key figures: where values begin, as a fraction of the panel
_LINE = 0.066  # of the key figures, as a fraction of the panel


def stage_use(axes: "Axes", board: Board) -> None:
    """Part of the iteration in which each stage computes, by op."""
    run = board.run
    rows = run.trace.where(is_action(run.trace))
    stages = run.trace.meta.num_stages
    cells = rows.stage.astype(np.int64) * len(ACTION_OPS) + rows.op
    busy = np.bincount(cells, weights=rows.duration_ns, minlength=stages * len(ACTION_OPS)).reshape(stages, -1)
    share = 100 * busy / run.window_ns
    ops = [op for op in ACTION_OPS if share[:, op].any()]
    styles = {op: PartStyle(fill=OPS[op].fill, label=OPS[op].label) for op in ops}
    stack(axes, [(styles[op], share[:, op]) for op in ops])
    show_ranks(axes, stages)
    axes.set_ylim(0, 100)
    draw_scales(axes, PLOT_IN, x="stage", y="part of iteration [%]")
    name_panel(axes, "Stage use", f"{ms(board.summary.iteration_time.mean_ms)} per iteration")
    panel_legend(axes, list(styles.values()))


def device_use(axes: "Axes", board: Board) -> None:
    """Part of the iteration in which each rank's device computes, waits for communication, or idles otherwise."""
    ranks = board.summary.ranks
    window = board.summary.bubble.iteration.window_ms
    busy = np.array([100 * rank.utilization for rank in ranks])
    waiting = np.array([100 * rank.exposed_ms / window for rank in ranks])
    stack(axes, [(BUSY, busy), (EXPOSED, waiting), (IDLE_PART, np.maximum(100 - busy - waiting, 0))])
    show_ranks(axes, len(ranks))
    axes.set_ylim(0, 100)
    draw_scales(axes, PLOT_IN, x="rank", y="part of iteration [%]")
    name_panel(axes, "Device use", f"computing: mean {busy.mean():.1f} %, least {busy.min():.1f} %")
    panel_legend(axes, [BUSY, EXPOSED, IDLE_PART])


def latency(axes: "Axes", board: Board) -> None:
    """Distribution of the microbatches' latency."""
    times_ns = microbatch_latencies_ns(board.run)
    spread = board.summary.microbatch_latency
    if spread is None:
        name_panel(axes, "Microbatch latency")
        say_instead(axes, "no microbatch came back to stage 0")
        return
    unit = TimeUnit.fit(int(times_ns.max()))
    low, high = times_ns.min() / unit.ns, times_ns.max() / unit.ns
    room = max(high - low, 0.02 * high, 1e-9)
    bins = int(np.clip(np.sqrt(len(times_ns)), 8, 50))
    axes.hist(times_ns / unit.ns, bins=bins, range=(low - room * 0.02, high + room * 0.02), color=BUSY.fill)
    marks: dict[str, tuple[float, Any]] = {
        "mean": (spread.mean_ms, "-"),
        "p50": (spread.p50_ms, "--"),
        "p99": (spread.p99_ms, ":"),
    }
    for value, line in marks.values():
        axes.axvline(value * 1e6 / unit.ns, color=INK, linestyle=line, linewidth=1.2)
    draw_scales(
        axes, PLOT_IN, x=f"first forward to last backward on stage 0 [{unit.name}]", y="microbatches", whole="y"
    )
    name_panel(axes, "Microbatch latency", f"{len(times_ns):,} microbatches")
    panel_legend(axes, [LineKey(label=f"{mark} {ms(value)}", line=line) for mark, (value, line) in marks.items()])


def bubble(axes: "Axes", board: Board) -> None:
    """Why each rank idles."""
    summary = board.summary
    total = summary.bubble.iteration
    parts: list[tuple[PartStyle, FloatArray]] = []
    for cause, style in CAUSES.items():
        share = getattr(total.by_cause, cause)
        values = np.array([100 * getattr(rank.idle_ms, cause) / total.window_ms for rank in summary.ranks])
        if values.any():
            named = PartStyle(fill=style.fill, hatch=style.hatch, label=f"{style.label} {percent(share)}")
            parts.append((named, values))
    name_panel(axes, "Bubble by cause", f"of the iteration: {percent(total.fraction)} on average")
    if not parts:
        say_instead(axes, "no rank ever idles")
        return
    stack(axes, parts)
    show_ranks(axes, len(summary.ranks))
    axes.set_ylim(0, None)
    draw_scales(axes, PLOT_IN, x="rank", y="idle, part of iteration [%]")
    panel_legend(axes, [style for style, _ in parts])


def compute_and_communication(axes: "Axes", board: Board) -> None:
    """Per iteration and rank: time that computes, upwards, against communication that keeps it from it, downwards."""
    run, lost = board.run, exposed(board.run, bubbles(board.run))
    busy_ns = np.array([rank.busy_ms * 1e6 for rank in board.summary.ranks])
    unit = TimeUnit.fit(int(max(busy_ns.max(), 1)))
    down = _exposed_parts(lost, run.num_iterations * unit.ns)
    stack(axes, [(BUSY, busy_ns / unit.ns)])
    if down:
        stack(axes, down, down=True)
    axes.axhline(0, color=INK, linewidth=0.8)
    show_ranks(axes, run.num_ranks)
    draw_scales(axes, PLOT_IN, x="rank", y=f"exposed  ←  [{unit.name} per iteration]  →  computing")
    mean = board.summary.exposed_communication.total_ms
    name_panel(axes, "Compute against exposed communication", f"exposed: mean {ms(mean)}")
    panel_legend(axes, [BUSY, *(style for style, _ in down)])


def _exposed_parts(lost: Exposed, scale: float) -> list[tuple[PartStyle, FloatArray]]:
    parts = [(style, np.asarray(getattr(lost, kind) / scale)) for kind, style in EXPOSED_KINDS.items()]
    return [(style, values) for style, values in parts if values.any()]


def link_use(axes: "Axes", board: Board) -> None:
    """The busiest links: time with a message, time with several, and bytes over capacity."""
    uses = sorted(link_uses(board.run), key=lambda use: -use.busy_ns)
    used = [use for use in uses if use.busy_ns]
    name_panel(axes, "Link use and contention", _link_remark(len(used), len(uses)) if uses else "")
    if not used:
        say_instead(axes, "no message crossed a link" if uses else "the trace names no links")
        return
    shown = used[:MOST_LINKS]
    places = np.arange(len(shown)) + 0.22
    busy = np.array([100 * use.busy_ns / use.window_ns for use in shown])
    several = np.array([100 * use.contended_ns / use.window_ns for use in shown])
    one, many = PartStyle(fill=BUSY.fill, label="one message"), PartStyle(fill=ALERT, label="several", hatch="////")
    axes.barh(places, busy - several, height=_LINK_BAR, color=one.fill)
    axes.barh(places, several, left=busy - several, height=_LINK_BAR, color=many.fill, hatch=many.hatch, linewidth=0)
    rated = [(at, 100 * use.utilization) for at, use in zip(places, shown, strict=True) if use.utilization is not None]
    axes.scatter([share for _, share in rated], [at for at, _ in rated], marker="D", s=12, color=INK, zorder=3)
    for number, use in enumerate(shown):
        axes.annotate(_link_name(use), (0, number - 0.02), xytext=(2, 0), textcoords="offset points", **_LINK_TEXT)
    axes.set_ylim(max(len(shown), 4) - 0.4, -0.7)
    axes.set_xlim(0, max(1.0, 1.08 * float(busy.max())))
    draw_scales(axes, PLOT_IN, x="part of iteration [%]", y="", grid="x", whole="")
    panel_legend(axes, [one, many, LineKey(label="bytes / capacity", line="", marker="D")])


def _link_name(use: LinkUse) -> str:
    bandwidth = use.link.bandwidth
    rate = f", {format_bandwidth(bandwidth)}" if np.isfinite(bandwidth) else ""
    return f"{shorten(use.link.name, 34)}{rate}"


def _link_remark(used: int, links: int) -> str:
    return f"{MOST_LINKS} busiest of {links}" if used > MOST_LINKS else f"{used} of {links} used"


def memory(axes: "Axes", board: Board) -> None:
    """Peak of each device's memory by part, and its capacity."""
    from matplotlib.collections import LineCollection

    ranks = board.summary.ranks
    known = [rank.memory for rank in ranks if rank.memory is not None]
    if not known:
        name_panel(axes, "Peak memory against capacity")
        say_instead(axes, "the run does not say what its stages hold")
        return
    parts = [(style, np.array([getattr(held, part) / GIB for held in known])) for part, style in MEMORY_PARTS.items()]
    stack(axes, parts)
    limits = [(at, held.capacity_bytes / GIB) for at, held in enumerate(known) if held.capacity_bytes is not None]
    marks = LineCollection(
        [[(at - 0.48, limit), (at + 0.48, limit)] for at, limit in limits], colors=ALERT, linewidths=1.6
    )
    marks.set_capstyle("butt")
    marks.set_gid("capacity")
    axes.add_collection(marks)
    axes.autoscale_view()
    show_ranks(axes, len(ranks))
    axes.set_ylim(0, None)
    draw_scales(axes, PLOT_IN, x="rank", y="memory [GiB]")
    fullest = max((held.peak_bytes / held.capacity_bytes for held in known if held.capacity_bytes), default=None)
    name_panel(axes, "Peak memory against capacity", "" if fullest is None else f"fullest device: {percent(fullest)}")
    capacity = [LineKey(label="device memory", colour=ALERT)] if limits else []
    panel_legend(axes, [*(style for style, _ in parts), *capacity])


def key_figures(axes: "Axes", board: Board) -> None:
    """The numbers, and which rank has which device."""
    axes.set_axis_off()
    name_panel(axes, "Key figures")
    devices = device_table(board.summary)
    rows = [*key_table(board.summary), ("", ""), *devices[:MOST_DEVICE_LINES]]
    if len(devices) > MOST_DEVICE_LINES:
        rows.append(("", f"and {len(devices) - MOST_DEVICE_LINES} more kinds of devices"))
    for line, (name, value) in enumerate(rows):
        y = 1.22 - _LINE * line
        left, right = _VALUES_FROM * PLOT_IN[0] - 0.1, (1 - _VALUES_FROM) * PLOT_IN[0]
        here: dict[str, Any] = {"transform": axes.transAxes, "fontsize": TEXT_PT, "va": "center"}
        axes.text(0.0, y, fit_text(name, left, TEXT_PT), color=QUIET, **here)
        axes.text(_VALUES_FROM, y, fit_text(value, right, TEXT_PT), **here)


PANELS = (stage_use, device_use, latency, bubble, compute_and_communication, link_use, memory, key_figures)


if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
HEAD_IN = 0.7
SHEET_IN = (COLUMNS * PANEL_IN[0], HEAD_IN + -(-len(PANELS) // COLUMNS) * PANEL_IN[1])


def draw_dashboard(trace: Trace, summary: Summary, facts: RunFacts, path: Path) -> None:
    """Write the dashboard of a run as PNG, SVG or PDF. `summary` is `summarize(trace, facts)`.

    Raises UsageError for any other suffix, or if warm-up leaves no iteration.
    """
    board = Board(run=Iterations.of(trace, facts), summary=summary)
    with picture(path, width_in=SHEET_IN[0], height_in=SHEET_IN[1]) as figure:
        paint_dashboard(figure, board)


def paint_dashboard(figure: "Figure", board: Board) -> None:
    """Draw on an empty figure of the size SHEET_IN."""
    width, height = SHEET_IN
    figure.text(
        LEFT_IN / width, 1 - 0.32 / height, what_ran(board.run.trace.meta), fontsize=TITLE_PT, fontweight="bold"
    )
    figure.text(LEFT_IN / width, 1 - 0.54 / height, summary_figures(board.summary), fontsize=TEXT_PT, color=QUIET)
    for number, draw in enumerate(PANELS):
        row, column = divmod(number, COLUMNS)
        draw(place_panel(figure, column, row, SHEET_IN, HEAD_IN), board)
