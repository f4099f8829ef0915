"""Messages on a timeline: an arrow each while there are few, a strip under the sender's boxes when there are many."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hops.trace.trace import Stream, Trace
from hops.viz.lanes import Lanes, corners
from hops.viz.style import ALERT, FAULT_FILL, LOST_FILL, MESSAGE
from hops.viz.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ARROWS = 1500
IMAGE_FROM = 20_000  # messages, which are drawn one by one before
MOST_ARROW_LANES = 16
_STRIP_ALPHA = 0.6


def messages_in(trace: Trace, window: Window) -> Trace:
    """The messages under way inside the window."""
    return trace.where((trace.stream == Stream.MESSAGE) & window.overlaps(trace))


def arrows_readable(messages: Trace) -> bool:
    return len(messages) <= MOST_ARROWS and messages.meta.num_ranks <= MOST_ARROW_LANES


def draw_arrows(axes: "Axes", messages: Trace, lanes: Lanes) -> None:
    """From the sender's box at the start to the receiver's at delivery; lines `gid` `messages`."""
    from matplotlib.collections import LineCollection

    top, bottom = lanes.boxes
    down = messages.peer > messages.rank
    start = np.stack([lanes.x(messages.start_ns), lanes.y(messages.rank, 0) + np.where(down, bottom, top)], axis=1)
    end = np.stack([lanes.x(messages.end_ns), lanes.y(messages.peer, 0) + np.where(down, top, bottom)], axis=1)
    lines = LineCollection(list(np.stack([start, end], axis=1)), colors=MESSAGE, linewidths=0.7, zorder=1.6)
    lines.set_gid("messages")
    axes.add_collection(lines, autolim=False)
    for heads, marker in ((down, "v"), (~down, "^")):
        shift = 1.2 / lanes.pt_per_y * (-1 if marker == "v" else 1)  # so that the tip touches the box
        axes.scatter(end[heads, 0], end[heads, 1] + shift, s=7, marker=marker, color=MESSAGE, linewidths=0, zorder=1.7)


def draw_strip(axes: "Axes", messages: Trace, lanes: Lanes, part: tuple[float, float], window: Window) -> None:
    """A thin bar per message (`gid` `messages`) on the sender's lane; darker where several are under way."""
    from matplotlib.collections import PolyCollection

    if len(messages) >= IMAGE_FROM:
        _draw_traffic(axes, messages, lanes, part, window)
        return
    bars = PolyCollection(
        corners(
            lanes.x(np.maximum(messages.start_ns, window.start_ns)),
            lanes.x(np.minimum(messages.end_ns, window.end_ns)),
            lanes.y(messages.rank, part[0]),
            lanes.y(messages.rank, part[1]),
        ),
        facecolors=MESSAGE,
        alpha=_STRIP_ALPHA,
        linewidths=0,
        snap=False,
        zorder=1.6,
    )
    bars.set_gid("messages")
    axes.add_collection(bars, autolim=False)


def _draw_traffic(axes: "Axes", messages: Trace, lanes: Lanes, part: tuple[float, float], window: Window) -> None:
    """The strip as images, `gid` `messages`: as dark as so many bars on each other as a pixel has on average."""
    from matplotlib.colors import to_rgb

    under_way = lanes.covered(messages, window)
    colours = np.empty((len(under_way), 1, under_way.shape[1], 4))
    colours[..., :3] = to_rgb(MESSAGE)
    colours[:, 0, :, 3] = 1 - (1 - _STRIP_ALPHA) ** under_way
    lanes.draw_images(axes, colours, part, window, zorder=1.6, gid="messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Rows inside a window: faults of devices, faults of links, lost work, lost messages."""

    devices: Trace
    links: Trace
    work: Trace
    messages: Trace


def broken_in(trace: Trace, window: Window) -> Broken:
    """Everything that faults did inside the window."""
    shown = trace.where(np.isin(trace.stream, (Stream.FAULT, Stream.LOST)) & window.overlaps(trace))
    fault, of_link = shown.stream == Stream.FAULT, shown.peer >= 0
    return Broken(
        devices=shown.where(fault & ~of_link),
        links=shown.where(fault & of_link),
        work=shown.where(~fault & ~of_link),
        messages=shown.where(~fault & of_link),
    )


def draw_broken(axes: "Axes", broken: Broken, lanes: Lanes, window: Window) -> None:
    """Hatched windows over lanes, a line along the lanes at both ends of a link, crossed boxes, arrows cut short."""
    _draw_lost_work(axes, broken.work, lanes, window)
    _draw_devices(axes, broken.devices, lanes, window)
    _draw_links(axes, broken.links, lanes, window)
    _draw_lost_messages(axes, broken.messages, lanes)


def broken_handles(broken: Broken) -> list[Any]:
    """Legend entries of what there is to see."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    if len(broken.devices):
        handles.append(Patch(facecolor=FAULT_FILL, edgecolor=ALERT, hatch="///", label="fault"))
    if len(broken.links):
        handles.append(Line2D([], [], color=ALERT, linewidth=2.2, label="link fault"))
    if len(broken.work):
        handles.append(Patch(facecolor=LOST_FILL, edgecolor=ALERT, hatch="xxx", linewidth=0.6, label="lost work"))
    if len(broken.messages):
        handles.append(Line2D([], [], color=ALERT, linewidth=0.9, marker="x", markersize=4.5, label="lost message"))
    return handles


def _draw_devices(axes: "Axes", faults: Trace, lanes: Lanes, window: Window) -> None:
    if len(faults):
        _hatch(axes, faults, lanes, window, parts=(0.0, 1.0), fill=FAULT_FILL, hatch="///", gid="faults", zorder=2.7)


def _draw_lost_work(axes: "Axes", work: Trace, lanes: Lanes, window: Window) -> None:
    if not len(work):
        return
    _hatch(axes, work, lanes, window, parts=lanes.boxes, fill=LOST_FILL, hatch="xxx", gid="lost", zorder=2.05)


def _hatch(
    axes: "Axes",
    rows: Trace,
    lanes: Lanes,
    window: Window,
    *,
    parts: tuple[float, float],
    fill: str,
    hatch: str,
    gid: str,
    zorder: float,
) -> None:
    from matplotlib.collections import PolyCollection

    left, right = _cut(rows, lanes, window)
    top, bottom = (lanes.y(rows.rank, part) for part in parts)
    boxes = PolyCollection(
        corners(left, right, top, bottom),
        facecolors=fill,
        edgecolors=ALERT,
        linewidths=1.0 if gid == "faults" else 0.6,
        hatch=hatch,
        zorder=zorder,
    )
    boxes.set_gid(gid)
    axes.add_collection(boxes, autolim=False)


def _draw_links(axes: "Axes", faults: Trace, lanes: Lanes, window: Window) -> None:
    """Along the foot of the boxes of both ranks that the link lies between."""
    from matplotlib.collections import LineCollection

    if not len(faults):
        return
    left, right = _cut(faults, lanes, window)
    lines = []
    for rank in (faults.rank, faults.peer):
        y = lanes.y(rank, lanes.boxes[1] + 0.045)
        lines += list(np.stack([np.stack([left, y], axis=1), np.stack([right, y], axis=1)], axis=1))
    collection = LineCollection(lines, colors=ALERT, linewidths=2.2, zorder=2.75)
    collection.set_capstyle("butt")
    collection.set_gid("link-faults")
    axes.add_collection(collection, autolim=False)


def _draw_lost_messages(axes: "Axes", messages: Trace, lanes: Lanes) -> None:
    """From the sender's box at the start half of the way to the receiver's, at the moment of the loss."""
    from matplotlib.collections import LineCollection

    if not len(messages):
        return
    top, bottom = lanes.boxes
    down = messages.peer > messages.rank
    start_y = lanes.y(messages.rank, 0) + np.where(down, bottom, top)
    goal_y = lanes.y(messages.peer, 0) + np.where(down, top, bottom)
    start = np.stack([lanes.x(messages.start_ns), start_y], axis=1)
    end = np.stack([lanes.x(messages.end_ns), (start_y + goal_y) / 2], axis=1)
    lines = LineCollection(list(np.stack([start, end], axis=1)), colors=ALERT, linewidths=0.9, zorder=2.9)
    lines.set_gid("lost-messages")
    axes.add_collection(lines, autolim=False)
    axes.scatter(end[:, 0], end[:, 1], s=16, marker="x", color=ALERT, linewidths=1.0, zorder=2.9)


def _cut(rows: Trace, lanes: Lanes, window: Window) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return (
        lanes.x(np.maximum(rows.start_ns, window.start_ns)),
        lanes.x(np.minimum(rows.end_ns, window.end_ns)),
    )
