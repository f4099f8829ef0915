"""Messages on a timeline: an arrow each while there are few, a strip under the sender's boxes when there are many."""

from typing import TYPE_CHECKING

import numpy as np

from hops.trace import Stream, Trace
from hops.viz.lanes import Lanes, corners
from hops.viz.style import MESSAGE
from hops.viz.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ARROWS = 1500
MOST_ARROW_LANES = 16


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

    bars = PolyCollection(
        corners(
            lanes.x(np.maximum(messages.start_ns, window.start_ns)),
            lanes.x(np.minimum(messages.end_ns, window.end_ns)),
            lanes.y(messages.rank, part[0]),
            lanes.y(messages.rank, part[1]),
        ),
        facecolors=MESSAGE,
        alpha=0.6,
        linewidths=0,
        snap=False,
        zorder=1.6,
    )
    bars.set_gid("messages")
    axes.add_collection(bars, autolim=False)
