"""Memory over time: a thin area under each lane, all lanes on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.metrics import RunFacts
from hops.trace import Stream, Trace
from hops.units import format_bytes
from hops.viz.lanes import FloatArray, Lanes
from hops.viz.style import ALERT, MEMORY_ACTIVATION, MEMORY_STATIC
from hops.viz.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """What one rank holds over time: `total_bytes[i]` from `time_ns[i]` until `time_ns[i + 1]`; equal lengths."""

    time_ns: NDArray[np.int64]
    total_bytes: NDArray[np.int64]
    static_bytes: int
    capacity_bytes: int | None

    @property
    def peak_bytes(self) -> int:
        return int(self.total_bytes.max())

    @property
    def label(self) -> str:
        peak = f"peak {format_bytes(self.peak_bytes)}"
        return peak if self.capacity_bytes is None else f"{peak} of {format_bytes(self.capacity_bytes)}"


def memory_curves(trace: Trace, facts: RunFacts) -> tuple[MemoryCurve, ...]:
    """One curve per rank; none if the facts do not say what the stages hold."""
    if not facts.stage_memory:
        return ()
    memory = facts.stage_memory
    gain = np.zeros((len(memory), 4, 2), dtype=np.int64)  # stage, op, (start, end)
    for stage, held in enumerate(memory):
        gain[stage, Op.F, 0] = held.activation_bytes
        gain[stage, Op.B, 1] = -held.activation_bytes
        gain[stage, Op.I, 1] = held.kept_for_weight_bytes - held.activation_bytes
        gain[stage, Op.W, 1] = -held.kept_for_weight_bytes
    rows = trace.where((trace.stream == Stream.COMPUTE) & (trace.op <= Op.W))
    curves = []
    for rank in range(trace.meta.num_ranks):
        mine = rows.where(rows.rank == rank)
        times = np.concatenate([mine.end_ns, mine.start_ns])
        change = np.concatenate([gain[mine.stage, mine.op, 1], gain[mine.stage, mine.op, 0]])
        order = np.argsort(times, kind="stable")
        static = sum(held.static_bytes for stage, held in enumerate(memory) if trace.meta.rank_of_stage[stage] == rank)
        curves.append(
            MemoryCurve(
                time_ns=np.concatenate([[0], times[order]]),
                total_bytes=static + np.concatenate([[0], np.cumsum(change[order])]),
                static_bytes=static,
                capacity_bytes=facts.memory_bytes[rank] if facts.memory_bytes else None,
            )
        )
    return tuple(curves)


def full_scale(curves: Sequence[MemoryCurve]) -> int:
    """Bytes that the full height of every strip stands for: the largest peak of all ranks."""
    return max(1, *(curve.peak_bytes for curve in curves))


def draw_memory(
    axes: "Axes", curves: Sequence[MemoryCurve], lanes: Lanes, part: tuple[float, float], window: Window
) -> None:
    """Areas `gid` `memory` (everything) and `memory-static`, red lines at the capacity where that is on the scale."""
    from matplotlib.collections import LineCollection, PolyCollection

    full = full_scale(curves)
    height = part[1] - part[0]
    areas, floors, limits = [], [], []
    edges = lanes.x(np.asarray([window.start_ns, window.end_ns]))
    for rank, curve in enumerate(curves):
        foot = lanes.first + rank + part[1]
        areas.append(_area(*_cut(curve, window), foot, height / full, lanes))
        static = foot - height * curve.static_bytes / full
        floors.append([(edges[0], foot), (edges[0], static), (edges[1], static), (edges[1], foot)])
        if curve.capacity_bytes is not None and curve.capacity_bytes <= full:
            y = foot - height * curve.capacity_bytes / full
            limits.append([(edges[0], y), (edges[1], y)])
    for gid, polygons, colour in (("memory", areas, MEMORY_ACTIVATION), ("memory-static", floors, MEMORY_STATIC)):
        area = PolyCollection(polygons, facecolors=colour, linewidths=0, zorder=1.2)
        area.set_gid(gid)
        axes.add_collection(area, autolim=False)
    lines = LineCollection(limits, colors=ALERT, linewidths=0.8, zorder=1.3)
    lines.set_gid("capacity")
    axes.add_collection(lines, autolim=False)


def _cut(curve: MemoryCurve, window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The curve's steps inside the window, beginning with the level at its start."""
    first = max(int(np.searchsorted(curve.time_ns, window.start_ns, side="right")) - 1, 0)
    last = int(np.searchsorted(curve.time_ns, window.end_ns, side="left"))
    times = np.clip(curve.time_ns[first:last], window.start_ns, window.end_ns)
    return np.append(times, window.end_ns), curve.total_bytes[first:last]


def _area(
    edges_ns: NDArray[np.int64], levels: NDArray[np.int64], foot: float, per_byte: float, lanes: Lanes
) -> FloatArray:
    """The polygon under a step function: shape (points, 2)."""
    x = np.repeat(lanes.x(edges_ns), 2)[1:-1]
    y = np.repeat(foot - levels * per_byte, 2)
    corners = np.stack([x, y], axis=1)
    return np.concatenate([[(x[0], foot)], corners, [(x[-1], foot)]])
