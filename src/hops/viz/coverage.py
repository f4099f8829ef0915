"""Very narrow boxes as an image: each pixel shows what share of its time each op took, as bands from the foot up.

Drawn one by one, 131,072 boxes take seconds; and where several share a pixel, the background shows through although
the rank was busy all the time, and the last box weighs more than those before it. A mean colour would show F and B as
something that is neither.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hops.arrays import FloatArray
from hops.viz.style import DPI

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGE_FROM: Final = 1000  # boxes
_NARROW_PX: Final = 2.0


def too_narrow(widths_pt: FloatArray) -> bool:
    """Whether boxes of these widths are so many and so narrow that their share of each pixel is all there is to see."""
    return len(widths_pt) >= IMAGE_FROM and float(np.median(widths_pt)) * DPI / 72 < _NARROW_PX


def coverage(lane: NDArray[np.integer], left: FloatArray, right: FloatArray, *, lanes: int, pixels: int) -> FloatArray:
    """How much of each pixel boxes cover; shape (lanes, pixels). Where boxes overlap, both count.

    `lane`, `left` and `right`, from 0 to `pixels`, have shape (boxes,). An edge at `i + f` lies `1 - f` of pixel `i`
    before its end, and the whole of each later one: with edges counted by pixel, a running sum covers all boxes.
    """

    def behind(edge: FloatArray) -> FloatArray:
        pixel = edge.astype(np.int64)
        cell = lane * (pixels + 1) + pixel
        size = lanes * (pixels + 1)
        edges = np.bincount(cell, minlength=size).reshape(lanes, pixels + 1)
        fractions = np.bincount(cell, weights=edge - pixel, minlength=size).reshape(lanes, pixels + 1)
        return np.asarray(np.cumsum(edges, axis=1) - fractions)

    covered = (behind(left) - behind(right))[:, :pixels]
    return np.asarray(np.clip(covered, 0.0, None))


def bands(parts: Sequence[tuple[FloatArray, tuple[float, float, float]]], *, height: int) -> FloatArray:
    """Shares of pixels, each (shape (lanes, pixels), RGB), as RGBA from 0 to 1: shape (lanes, height, pixels, 4).

    The first part lies at the foot. What no part covers stays transparent. Where parts overlap, the first are seen.
    """
    lanes, pixels = parts[0][0].shape
    image = np.zeros((lanes, height, pixels, 4))
    level = (height - np.arange(height) - 0.5)[None, :, None] / height  # of each row's middle, from the foot
    below = np.zeros((lanes, 1, pixels))
    for share, colour in parts:
        above = below + share[:, None, :]
        mine = (level >= below) & (level < above)
        image[mine] = (*colour, 1.0)
        below = above
    return image


def draw_images(
    axes: "Axes",
    colours: FloatArray,
    *,
    across: tuple[float, float],
    first: float,
    part: tuple[float, float],
    zorder: float,
    gid: str,
) -> None:
    """An image on each lane, from one x to another; `colours` is RGBA from 0 to 1, shape (lanes, rows, pixels, 4).

    Lane n lies at y = first + n + part[0] to first + n + part[1]. An image each: what lies between costs time as well.
    """
    from matplotlib.image import AxesImage

    for lane, pixels in enumerate(np.round(255 * colours).astype(np.uint8)):
        top, bottom = (first + lane + fraction for fraction in part)
        image = AxesImage(axes, interpolation="nearest", origin="upper", extent=(*across, bottom, top))
        image.set_data(pixels)
        image.set_zorder(zorder)
        image.set_clip_path(axes.patch)
        image.set_gid(gid)
        axes.add_image(image)
