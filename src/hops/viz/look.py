"""How a figure shall look where it is printed: width, size of its letters, title, colours."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from hops.decode.decode import read
from hops.errors import UsageError
from hops.program.action import Op
from hops.viz.style import COLOURS, TEXT_PT

NARROW_IN: Final = 6.0  # below it, names are short and headings are left to the caption
_PER_INCH: Final = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.0}
_LENGTH: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(in|cm|mm|pt)")
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is asked of a figure.

    Attributes:
        width_in: of the page that it is printed on; None: as wide as it is easy to read on a screen.
        font_pt: size of its text; lines and numbers keep their proportion to it.
        title: above it, "" for none; None: what ran, on a figure with room for it.
        colours: of ops, as #rrggbb, instead of HOPS's own.
    """

    width_in: float | None = None
    font_pt: float = TEXT_PT
    title: str | None = None
    colours: Mapping[Op, str] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        """How many times larger than drawn the figure is written."""
        return self.font_pt / TEXT_PT

    @property
    def drawn_in(self) -> float | None:
        """The width at which text of HOPS's own size comes out as asked."""
        return None if self.width_in is None else self.width_in / self.scale

    @property
    def is_narrow(self) -> bool:
        """Whether it is a column of a paper rather than a screen."""
        return self.drawn_in is not None and self.drawn_in < NARROW_IN

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Its colours are in force inside the block."""
        token = COLOURS.set(self.colours)
        try:
            yield
        finally:
            COLOURS.reset(token)


SCREEN: Final = Look()


def parse_length_in(text: str) -> float:
    """Inches of `3.3in`, `84 mm`, `8.4cm` or `240pt`. Raises UsageError for anything else, and for nothing."""
    found = _LENGTH.fullmatch(text.strip())
    inches = float(found[1]) / _PER_INCH[found[2]] if found else 0.0
    if inches <= 0:
        raise UsageError(f"width: got {text!r}, expected a length such as 3.3in, 84mm, 8.4cm or 240pt")
    return inches


def parse_ranks(text: str, *, what: str = "ranks") -> tuple[int, ...]:
    """`0-7`, `0,2,4-6`: numbers of ranks, rising. Raises UsageError for anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if found is None or (found[2] and int(found[2]) < int(found[1])):
            raise UsageError(f"{what}: got {text!r}, expected numbers and stretches of numbers such as 0-7 or 0,2,4-6")
        numbers.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return tuple(sorted(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class _StyleFile:
    """A style file: every key may be left out."""

    width: str | None = None
    font_size: float = TEXT_PT
    title: str | None = None
    colours: dict[str, str] = field(default_factory=dict)


def read_look(path: Path) -> Look:
    """Read a style file (YAML or JSON), such as `{width: 3.3in, font_size: 8, colours: {F: "#a6d4f5"}}`.

    Raises UsageError for a width, op or colour that there is not, and as `decode` does.
    """
    found = read(_StyleFile, path, expected="a style file")
    colours = {}
    for name, colour in found.colours.items():
        if name not in Op.__members__:
            raise UsageError(f"{path}: colours: got the op {name!r}, expected one of {', '.join(Op.__members__)}")
        if not _COLOUR.fullmatch(colour):
            raise UsageError(f"{path}: colours.{name}: got {colour!r}, expected a colour such as #a6d4f5")
        colours[Op[name]] = colour
    width_in = None if found.width is None else parse_length_in(found.width)
    return replace(Look(width_in=width_in, title=found.title, colours=colours), font_pt=sized(found.font_size))


def sized(font_pt: float) -> float:
    """The size, if letters of it can be read. Raises UsageError."""
    if not 4 <= font_pt <= 40:
        raise UsageError(f"font size: got {font_pt:g}, expected 4 to 40 points")
    return font_pt


def look_of(*, width: str | None, font_size: float | None, title: str | None, style: Path | None) -> Look:
    """What options ask for, and for what they leave open, the style file. Raises UsageError."""
    look = SCREEN if style is None else read_look(style)
    if width is not None:
        look = replace(look, width_in=parse_length_in(width))
    if font_size is not None:
        look = replace(look, font_pt=sized(font_size))
    return look if title is None else replace(look, title=title)
