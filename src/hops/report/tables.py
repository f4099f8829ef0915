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
