"""Memory over time: a thin area under each lane, all lanes on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hops.draws import FloatArray
from hops.metrics import RunFacts
from hops.metrics.memory import StepFunction, memory_over_time
from hops.metrics.run import Run
from hops.trace import Trace
from hops.units import format_bytes
from hops.viz.lanes import Lanes
from hops.viz.style import ALERT, MEMORY_ACTIVATION, MEMORY_STATIC
from hops.viz.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """What one rank holds over time, what of it all the time, and its device's capacity (None: unknown). Bytes."""

    held: StepFunction
    static_bytes: int
    capacity_bytes: int | None

    @property
    def fits(self) -> bool:
        return self.capacity_bytes is None or self.held.peak <= self.capacity_bytes

    @property
    def label(self) -> str:
        peak = f"peak {format_bytes(self.held.peak)}"
        return peak if self.capacity_bytes is None else f"{peak} of {format_bytes(self.capacity_bytes)}"


def memory_curves(trace: Trace, facts: RunFacts) -> tuple[MemoryCurve, ...]:
    """One curve per rank, warm-up iterations included; none if the facts do not say what the stages hold."""
    held = memory_over_time(Run.of(trace, replace(facts, warmup_iterations=0)))
    capacities = facts.memory_bytes or (None,) * len(held)
    return tuple(
        MemoryCurve(held=one, static_bytes=one.initial, capacity_bytes=capacity)
        for one, capacity in zip(held, capacities, strict=False)
    )


def full_scale(curves: Sequence[MemoryCurve]) -> int:
    """Bytes that the full height of every strip stands for: the largest peak of all ranks."""
    return max(1, *(curve.held.peak for curve in curves))


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
        areas.append(_area(*_cut(curve.held, window), foot, height / full, lanes))
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


def _cut(held: StepFunction, window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges and levels of the steps inside the window, the first edge its start, the last its end."""
    inside = (held.at_ns > window.start_ns) & (held.at_ns < window.end_ns)
    before = int(np.searchsorted(held.at_ns, window.start_ns, side="right"))
    level = held.initial if before == 0 else int(held.value[before - 1])
    edges = np.concatenate([[window.start_ns], held.at_ns[inside], [window.end_ns]])
    return edges, np.concatenate([[level], held.value[inside]])


def _area(
    edges_ns: NDArray[np.int64], levels: NDArray[np.int64], foot: float, per_byte: float, lanes: Lanes
) -> FloatArray:
    """The polygon under a step function: shape (points, 2)."""
    x = np.repeat(lanes.x(edges_ns), 2)[1:-1]
    y = np.repeat(foot - levels * per_byte, 2)
    corners = np.stack([x, y], axis=1)
    return np.concatenate([[(x[0], foot)], corners, [(x[-1], foot)]])
