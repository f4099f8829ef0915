"""Ticks of logarithmic axes as people write numbers."""

from typing import TYPE_CHECKING

from hops.viz.style import INK, SMALL_PT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 200  # of high over low, beyond which only powers of ten are written


def plain_ticks(axes: "Axes", low: float, high: float) -> None:
    """100, 200, 500 ... instead of powers of ten."""
    from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

    steps = (1, 2, 5) if high / low < MANY else (1,)
    ticks = [step * 10**power for power in range(-3, 7) for step in steps if low <= step * 10**power <= high]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
        axis.set_tick_params(labelsize=SMALL_PT, colors=INK)
