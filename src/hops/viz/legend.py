"""Legend entries that pictures share, each looking like what it stands for."""

from collections.abc import Sequence
from typing import Any

from hops.actions import Op
from hops.viz.style import ALERT, INK, MESSAGE, OPS, QUIET


def op_handles(ops: Sequence[int]) -> list[Any]:
    """These ops, in the order of `Op`."""
    from matplotlib.patches import Patch

    styles = [OPS[Op(op)] for op in sorted(ops)]
    return [
        Patch(facecolor=style.fill, edgecolor=QUIET, linewidth=0.4, hatch=style.hatch or None, label=style.label)
        for style in styles
    ]


def area_handle(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, label=label)


def arrow_handle() -> Any:
    """A message drawn as an arrow."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=MESSAGE, linewidth=0.7, marker=">", markersize=3.5, markevery=[1], label="message")


def chunk_handle(chunks: int) -> Any:
    """The mark of second and later chunks."""
    from matplotlib.lines import Line2D

    more = "" if chunks == 2 else ", two: third, ..."
    return Line2D([], [], color=INK, linewidth=1.0, label=f"line at the foot: rank's second chunk{more}")


def capacity_handle() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=ALERT, linewidth=0.8, label="device memory")
