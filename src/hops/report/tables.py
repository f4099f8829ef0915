"""The one look of our terminal tables: a rule under the head, two spaces between columns, numbers to the right."""

from rich.box import SIMPLE_HEAD
from rich.table import Table


def plain_table(first: str, *others: str) -> Table:
    """A table whose first column holds names and all others numbers."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for title in others:
        table.add_column(title, justify="right", no_wrap=True)
    return table


_BLOCKS = " ▏▎▍▌▋▊▉█"
_GIB = 2**30
_MIB = 2**20


def number(value: float) -> str:
    """Three or four digits that matter: `1,234`, `123.4`, `12.34`, `0.1234`."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.1f}"
    if size >= 1 or value == 0:
        return f"{value:.2f}"
    return f"{value:.4g}"


def milliseconds(value: float) -> str:
    """`12.34 ms`."""
    return f"{number(value)} ms"


def percent(fraction: float) -> str:
    """`12.3 %`."""
    return f"{100 * fraction:.1f} %"


def change(value: float, reference: float) -> str:
    """How much more or less than the reference: `+4.2 %`."""
    return f"{100 * (value / reference - 1):+.1f} %"


def size(value: int) -> str:
    """Bytes in binary units: `12.3 GiB`."""
    return f"{value / _GIB:.1f} GiB" if value >= _GIB / 10 else f"{value / _MIB:.1f} MiB"


def gibibytes(value: float) -> str:
    """Bytes as a number of GiB, without the unit: `26.4`, `0.93`."""
    return f"{value / _GIB:.1f}" if value >= 10 * _GIB else f"{value / _GIB:.2f}"


def bar(fraction: float, width: int) -> str:
    """A bar of `width` characters, filled to the eighth of one."""
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_BLOCKS[rest] if rest else "")).ljust(width)


def count(amount: int, noun: str, plural: str = "") -> str:
    """`1 rank`, `2 ranks`; `plural` where an s is not enough."""
    return f"{amount} {noun if amount == 1 else plural or f'{noun}s'}"
