"""What a change costs, one row per schedule."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from hops.goodput.whatif import Changes, WhatIf
from hops.report.tables import plain_table
from hops.report.wording import change, number
from hops.units import format_time


def render_what_if(changes: Changes, found: Mapping[str, WhatIf]) -> RenderableType:
    """What `hops whatif` prints. The schedule that is fastest with the change is marked."""
    table = plain_table("", "iteration\nms", "with it\nms", "longer", "extra time of\nthe run, ms")
    best = min(each.changed_run_ms for each in found.values())
    for name, each in found.items():
        mark = "*" if each.changed_run_ms == best and len(found) > 1 else " "
        table.add_row(
            Text(name, style="bold"),
            number(each.iteration_ms),
            number(each.changed_iteration_ms) + mark,
            change(each.changed_run_ms, each.run_ms),
            number(each.changed_run_ms - each.run_ms),
        )
    return Group(Text("; ".join(_said(changes)), style="bold"), Text(), table)


def _said(changes: Changes) -> Iterator[str]:
    yield from (f"{name} slower by {factor:g}" for name, factor in changes.slow.items())
    yield from (f"{name} with {100 * part:g} % of its bandwidth" for name, part in changes.slow_links.items())
    yield from (f"{name} down for {format_time(seconds)}" for name, seconds in changes.down_s.items())
