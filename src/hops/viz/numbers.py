"""Microbatch numbers on boxes, as outlines: thousands of them cost little, where that many texts would take seconds."""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.draws import FloatArray
from hops.trace import Trace
from hops.viz.style import FONT, INK, MIN_NUMBER_PT, NARROW, NUMBER_PT, OPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

_NUMBER_PAD_PT = 1.5


def draw_numbers(axes: "Axes", rows: Trace, middle: FloatArray, box_widths_pt: FloatArray, box_pt: float) -> None:
    """One collection per number and colour (`gid` `number-12`), where they fit into their box."""
    from matplotlib.collections import PathCollection
    from matplotlib.transforms import Affine2D

    actions = np.flatnonzero((rows.microbatch >= 0) & (rows.op <= Op.W))
    if not actions.size:
        return
    widths_pt = box_widths_pt[actions]
    size_pt = _number_size(rows.microbatch[actions], widths_pt, box_pt)
    if size_pt is None:
        return
    inches = Affine2D().scale(1 / 72) + axes.figure.dpi_scale_trans
    colour = np.asarray([OPS[op].text == INK for op in Op])[rows.op[actions]]
    for number in np.unique(rows.microbatch[actions]).tolist():
        glyphs, width_pt = _digits(str(number), size_pt)
        fits = (rows.microbatch[actions] == number) & (widths_pt >= width_pt + _NUMBER_PAD_PT)
        for dark in (True, False):
            places = middle[actions[fits & (colour == dark)]]
            if not len(places):
                continue
            texts = PathCollection(
                [glyphs],
                offsets=places,
                offset_transform=axes.transData,
                facecolors=INK if dark else "white",
                linewidths=0,
                zorder=2.5,
            )
            texts.set_transform(inches)
            texts.set_gid(f"number-{number}")
            axes.add_collection(texts, autolim=False)


def _number_size(microbatches: NDArray[np.int32], widths_pt: FloatArray, box_pt: float) -> float | None:
    """The size at which the longest number fits into all but the narrowest boxes; None if few can be read at all."""
    size_pt = min(NUMBER_PT, 0.8 * box_pt)
    _, longest_pt = _digits("8" * len(str(microbatches.max())), size_pt)
    fit = size_pt * (np.quantile(widths_pt, [NARROW, 0.5]) - _NUMBER_PAD_PT) / longest_pt
    if min(fit[1], size_pt) < MIN_NUMBER_PT:
        return None
    return float(np.clip(fit[0], MIN_NUMBER_PT, size_pt))


@lru_cache(maxsize=4096)
def _digits(text: str, size_pt: float) -> tuple["Path", float]:
    """The outline of a number around (0, 0), and its width, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    path = TextPath((0, 0), text, size=size_pt, prop=FontProperties(family=FONT))
    box = path.get_extents()
    centred = Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2).transform_path(path)
    return centred, float(box.width)
