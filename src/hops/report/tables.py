"""The one look of our terminal tables: a rule under the head, two spaces between columns, numbers to the right."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

_GUTTER = 2  # characters that a column takes beside its text, at most


class FittedTable(Table):
    """A table that never cuts a name or a number.

    Where the terminal is too narrow, the columns that found no room follow in a second table below, beside the first
    column again. A pipe or a file has no width, so that nothing is moved there.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [self._least_width(column, console, options) for column in self.columns]
        if sum(widths) <= options.max_width:
            yield from super().__rich_console__(console, options)
        elif not console.is_terminal and "COLUMNS" not in os.environ:
            yield from super().__rich_console__(console, options.update(max_width=sum(widths)))
        else:
            parts = list(_fitting(widths, options.max_width))
            for part in parts:
                table = self._part(part)
                wide_enough = options.update(max_width=max(options.max_width, sum(widths[place] for place in part)))
                yield from Table.__rich_console__(table, console, wide_enough)
                if part is not parts[-1]:
                    yield ""
            if self.caption is not None:
                yield console.render_str(self.caption) if isinstance(self.caption, str) else self.caption

    def _least_width(self, column: Column, console: Console, options: ConsoleOptions) -> int:
        """Characters without which something would be cut; text that may be wrapped needs its longest word."""
        unlimited = options.update(max_width=10_000)
        found = [Measurement.get(console, unlimited, cell) for cell in (column.header, *column.cells)]
        return max(each.maximum if column.no_wrap else each.minimum for each in found) + _GUTTER

    def _part(self, places: Sequence[int]) -> "FittedTable":
        """The same rows with some of the columns."""
        part = FittedTable(box=self.box, padding=self.padding, pad_edge=self.pad_edge, show_edge=self.show_edge)
        part.columns = [replace(self.columns[place], _index=number) for number, place in enumerate(places)]
        part.rows = self.rows
        if places[1:2] == [1]:
            part.title, part.title_justify = self.title, self.title_justify
        return part


def _fitting(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Places of the columns of each part: the first of all, and as many others as there is room for, at least one."""
    part, used = [0], widths[0]
    for place, width in enumerate(widths[1:], start=1):
        if len(part) > 1 and used + width > room:
            yield part
            part, used = [0], widths[0]
        part.append(place)
        used += width
    yield part


def plain_table(first: str, *others: str) -> FittedTable:
    """A table whose first column holds names and all others numbers."""
    table = FittedTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
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
