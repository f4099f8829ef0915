"""How HOPS's pictures look: every colour, font size and measure they share.

Ops differ in lightness as well as in hue, so that they stay apart in grey and for colour-blind readers
(`tests/viz/test_viz_style.py` measures it); what happens once an iteration is hatched as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from hops.program.action import Op

INK = "#1f2328"
QUIET = "#6b7178"
RULE = "#c9cdd2"
IDLE = "#f1f2f4"
ALERT = "#b3261e"
FAULT_FILL = "#b3261e1a"  # what lies below stays visible
LOST_FILL = "#f3d9d7"
MESSAGE = "#44505c"
MEMORY_STATIC = "#8a97a6"
MEMORY_ACTIVATION = "#c3ccd6"

FONT = "DejaVu Sans"  # comes with matplotlib
TITLE_PT = 11.0
TEXT_PT = 8.0
SMALL_PT = 7.0
NUMBER_PT = 7.5  # microbatch numbers, at most
MIN_NUMBER_PT = 4.5
NUMBER_IN = 0.16  # box that holds two digits and a little air
NARROW = 0.1  # all but this part of the boxes shall hold their numbers
NARROWEST_IN, WIDEST_IN = 9.0, 18.0  # lanes of a timeline

DPI = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class OpStyle:
    """How one op is drawn and called."""

    fill: str
    text: str  # colour of text on the fill
    label: str
    hatch: str = ""


# What a figure wants instead (see look).
COLOURS: ContextVar[Mapping[Op, str]] = ContextVar("COLOURS", default=MappingProxyType({}))


class _OpStyles(Mapping[Op, OpStyle]):
    """The styles below, in the colours that the figure wants."""

    def __init__(self, styles: Mapping[Op, OpStyle]) -> None:
        self._styles = styles

    def __getitem__(self, op: Op) -> OpStyle:
        style, wanted = self._styles[op], COLOURS.get()
        return replace(style, fill=wanted[op], text=_text_on(wanted[op])) if op in wanted else style

    def __iter__(self) -> Iterator[Op]:
        return iter(self._styles)

    def __len__(self) -> int:
        return len(self._styles)


def _text_on(fill: str) -> str:
    """Dark text on light colours, white on dark ones, by relative luminance."""
    red, green, blue = (int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.45 else "#ffffff"


_OP_STYLES: Mapping[Op, OpStyle] = {
    Op.F: OpStyle(fill="#a6d4f5", text=INK, label="F forward"),
    Op.I: OpStyle(fill="#dd8f14", text=INK, label="I backward, inputs"),
    Op.B: OpStyle(fill="#c24a2e", text="#ffffff", label="B backward"),
    Op.W: OpStyle(fill="#54306e", text="#ffffff", label="W backward, weights"),
    Op.OPTIMIZER: OpStyle(fill="#2f9e7d", text=INK, label="optimizer", hatch="////"),
    Op.TIED_REDUCE: OpStyle(fill="#d9d2ee", text=INK, label="tied-embedding reduction", hatch="...."),
    Op.GRAD_REDUCE: OpStyle(fill="#f7f3c0", text=INK, label="gradient reduction", hatch="\\\\\\\\"),
    Op.HOST: OpStyle(fill="#9aa0a6", text=INK, label="host", hatch="xxxx"),
}
OPS: Mapping[Op, OpStyle] = _OpStyles(_OP_STYLES)


# What matplotlib must not take from a user's own configuration, and what makes files repeat byte for byte.
SETTINGS: Mapping[str, object] = {
    "font.family": [FONT],
    "font.size": TEXT_PT,
    "text.color": INK,
    "text.hinting": "none",  # looks the same, and takes a sixth off the time of a dashboard
    "text.parse_math": False,  # a dollar sign in a device's name is a dollar sign
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "axes.linewidth": 0.8,
    "axes.titlesize": TEXT_PT + 1,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT_PT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL_PT,
    "ytick.labelsize": SMALL_PT,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "hatch.color": INK,
    "legend.frameon": False,
    "legend.fontsize": TEXT_PT,
    "path.simplify": True,
    "svg.hashsalt": "hops",
    "svg.fonttype": "none",  # text stays text: it can be searched, edited and read aloud
    "pdf.fonttype": 42,  # fonts are embedded as TrueType, as publishers ask
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStyle:
    """How one part of a stacked bar is drawn and called."""

    fill: str
    label: str
    hatch: str = ""


BUSY = PartStyle(fill="#3b76a8", label="computing")
IDLE_PART = PartStyle(fill="#dfe3e8", label="idle")
EXPOSED = PartStyle(fill="#e3a83f", label="exposed communication")

CAUSES: Mapping[str, PartStyle] = {
    "warm_up_cool_down": PartStyle(fill="#c3ccd6", label="warm-up, cool-down"),
    "imbalance": PartStyle(fill="#dd8f14", label="imbalance"),
    "messages": PartStyle(fill=MESSAGE, label="messages"),
    "fault": PartStyle(fill=ALERT, label="faults", hatch="///"),
    "step": PartStyle(fill="#7fb8a4", label="end of iteration", hatch="...."),
}
EXPOSED_KINDS: Mapping[str, PartStyle] = {
    "messages": PartStyle(fill=MESSAGE, label="messages"),
    "reductions": PartStyle(fill="#b9aedd", label="reductions", hatch="...."),
    "synchronization": PartStyle(fill="#e3a83f", label="synchronisation"),
}
MEMORY_PARTS: Mapping[str, PartStyle] = {
    "weights_bytes": PartStyle(fill="#2f4858", label="weights"),
    "gradients_bytes": PartStyle(fill="#5f7a8c", label="gradients"),
    "optimizer_bytes": PartStyle(fill="#93aabb", label="optimizer", hatch="////"),
    "activations_bytes": PartStyle(fill="#dd8f14", label="activations"),
}


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


def pair_handle() -> Any:
    """The mark of two actions that run as one."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=INK, linewidth=2.0, label="bar over two boxes: a pair that runs as one")


def capacity_handle() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=ALERT, linewidth=0.8, label="device memory")
