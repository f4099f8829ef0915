"""The sheet around lanes: margins, rank names, headings and legend, measured so that nothing overlaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hops.errors import UsageError
from hops.program.action import Op
from hops.trace.trace import Trace, TraceMeta
from hops.viz.canvas import shorten, text_width_in
from hops.viz.lanes import Lanes, chunk_of_stage
from hops.viz.style import ALERT, INK, NARROWEST_IN, QUIET, SMALL_PT, TEXT_PT, TITLE_PT, WIDEST_IN
from hops.viz.window import Window, width_for_numbers_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXIS_IN = 0.55  # time axis with its label
LEGEND_ROW_IN = 0.175
_HANDLE_IN = 0.55  # a legend entry without its text
TWO_LINES_FROM_IN = 0.42
_LONGEST_NAME = 26
_SMALLEST_PT = 4.5
_LEAST_LANES_IN = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Sizes in inches: the drawing area is `lanes_in` wide and `body_in` high, below `head_in` of headings."""

    head_in: float
    left_in: float
    lanes_in: float
    right_in: float
    body_in: float
    legend_columns: int
    legend_rows: int
    below_in: float

    @classmethod
    def around(
        cls,
        *,
        lanes_in: float,
        body_in: float,
        head_in: float,
        left: Sequence[str],
        right: Sequence[str],
        legend: Sequence[str],
        below_in: float = 0.0,
        width_in: float | None = None,
    ) -> "Sheet":
        """The sheet with room for the texts left and right of the lanes, these legend entries, and what lies below.

        `width_in`: as wide as this, the lanes as wide as the texts leave them. Raises UsageError if that is nothing.
        """
        left_in = 0.2 + max((text_width_in(line, TEXT_PT) for text in left for line in text.splitlines()), default=0)
        right_in = 0.25 + max(
            (text_width_in(line, SMALL_PT) for text in right for line in text.splitlines()), default=0
        )
        if width_in is not None:
            lanes_in = width_in - left_in - right_in
            if lanes_in < _LEAST_LANES_IN:
                raise UsageError(
                    f"a width of {width_in:.2g} in leaves {max(lanes_in, 0):.2g} in beside names and sizes, expected "
                    f"at least {_LEAST_LANES_IN:g}; widen the figure or make its letters smaller"
                )
        entry_in = _HANDLE_IN + max((text_width_in(text, TEXT_PT) for text in legend), default=0)
        columns = max(1, min(len(legend), int((lanes_in + right_in + (left_in if width_in else 0)) / entry_in)))
        return cls(
            head_in=head_in,
            left_in=left_in,
            lanes_in=lanes_in,
            right_in=right_in,
            body_in=body_in,
            legend_columns=columns,
            legend_rows=-(-len(legend) // columns),
            below_in=below_in,
        )

    @property
    def width_in(self) -> float:
        return self.left_in + self.lanes_in + self.right_in

    @property
    def foot_in(self) -> float:
        return self.below_in + AXIS_IN + LEGEND_ROW_IN * self.legend_rows

    @property
    def height_in(self) -> float:
        return self.head_in + self.body_in + self.foot_in

    def add_axes(self, figure: "Figure") -> "Axes":
        """The drawing area."""
        width, height = self.width_in, self.height_in
        return figure.add_axes(
            (self.left_in / width, self.foot_in / height, self.lanes_in / width, self.body_in / height)
        )

    def write_headings(self, figure: "Figure", title: str, subtitle: str) -> None:
        """Title and key figures, at the upper left; nothing for what is empty."""
        x = self.left_in / self.width_in
        if title:
            figure.text(x, 1 - 0.28 / self.height_in, title, fontsize=TITLE_PT, fontweight="bold")
        figure.text(x, 1 - 0.48 / self.height_in, subtitle, fontsize=TEXT_PT, color=QUIET)

    def add_legend(self, figure: "Figure", handles: list[Any], *, at_edge: bool = False) -> None:
        """All entries below the time axis, from the lanes on, or from the figure's edge."""
        left_in = 0.08 if at_edge else self.left_in
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(left_in / self.width_in, (self.foot_in - AXIS_IN + 0.02) / self.height_in),
            ncols=self.legend_columns,
            borderpad=0,
            borderaxespad=0,
            columnspacing=1.2,
            handlelength=1.8,
        )


def lanes_width_in(rows: Trace, window: Window) -> float:
    """Width of lanes on which all but the narrowest boxes of actions hold their numbers, within reason."""
    width_in = width_for_numbers_in(rows.duration_ns[rows.op <= Op.W], window.end_ns - window.start_ns)
    return min(max(width_in, NARROWEST_IN), WIDEST_IN)


def lane_in(num_lanes: int) -> float:
    """Height of a lane in inches: comfortable for a few, thin for many."""
    return min(max(9.0 / num_lanes, 0.2), 0.9) if num_lanes <= 64 else max(12.8 / num_lanes, 0.06)


def lane_names(trace: Trace, height_in: float, *, short: bool = False) -> tuple[str, ...]:
    """What is written left of each lane: rank, stages where a rank has several, device; two lines where they fit.

    `short`: the rank alone.
    """
    if short:
        return tuple(f"rank {rank}" for rank in range(trace.meta.num_ranks))
    meta = trace.meta
    between = "\n" if height_in >= TWO_LINES_FROM_IN else "  "
    return tuple(
        f"{_rank_name(meta, rank)}{between}{shorten(device, _LONGEST_NAME)}".rstrip()
        for rank, device in enumerate(meta.devices)
    )


def _rank_name(meta: TraceMeta, rank: int) -> str:
    if meta.num_stages == meta.num_ranks:
        return f"rank {rank}"
    stages = [str(stage) for stage, owner in enumerate(meta.rank_of_stage) if owner == rank]
    return f"rank {rank}, stages {', '.join(stages)}"


def write_lane_texts(
    axes: "Axes",
    texts: Sequence[str],
    lanes: Lanes,
    *,
    side: Literal["left", "right"],
    at: float,
    alert: Sequence[int] = (),
) -> None:
    """One text beside each lane, red on those in `alert`; every second, third ... where lanes are too thin for all.

    `at` is where on the lane, as a fraction of it from its top.
    """
    size_pt = max(min(TEXT_PT if side == "left" else SMALL_PT, 0.85 * lanes.pt_per_y), _SMALLEST_PT)
    every = max(1, -int(-_SMALLEST_PT // (0.85 * lanes.pt_per_y)))
    x, shift, align = (0.0, -6, "right") if side == "left" else (1.0, 6, "left")
    for rank in range(0, len(texts), every):
        axes.annotate(
            texts[rank],
            (x, lanes.first + rank + at),
            xycoords=axes.get_yaxis_transform(),
            xytext=(shift, 0),
            textcoords="offset points",
            ha=align,
            va="center",
            fontsize=size_pt,
            color=ALERT if rank in alert else INK,
            annotation_clip=False,
        )


def chunks_of(meta: TraceMeta) -> int:
    """Stages on the rank that has most."""
    return int(chunk_of_stage(meta.rank_of_stage).max()) + 1
