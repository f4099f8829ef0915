"""The difference of two runs as a table whose lines sum to it."""

from rich.console import Group, RenderableType
from rich.text import Text

from hops.metrics import Difference
from hops.metrics.diff import Breakdown
from hops.report.tables import plain_table
from hops.report.wording import count, milliseconds

_MOST_TERMS = 14
_NAMES = {
    "compute": "computing",
    "message": "messages",
    "between": "between actions of a rank",
    "reduce": "pipeline's end to optimizer",
    "optimizer": "optimizer",
    "host": "until the next iteration",
    "stalls": "stalls",
}


def render_difference(found: Difference, first: str, second: str) -> RenderableType:
    """What `hops trace diff` prints: by cause, then by rank, op and link; both sum to the total. Fits 80 columns."""
    total = found.total_ms
    share = 100 * total / found.first.iteration_ms
    head = Text.assemble(
        "mean iteration: ",
        (milliseconds(found.first.iteration_ms), "bold"),
        " to ",
        (milliseconds(found.second.iteration_ms), "bold"),
        f", {total:+.2f} ms ({share:+.1f} %)",
    )
    sides = [Text(f"{letter}  {name}: {_counted(side)}", style="dim") for letter, name, side in (
        ("A", first, found.first), ("B", second, found.second))]  # fmt: skip
    causes = plain_table("by cause, on the critical path", "A ms", "B ms", "B - A")
    for name, before, after in found.by_piece():
        causes.add_row(_NAMES[name], _ms(before), _ms(after), _signed(after - before))
    causes.add_section()
    causes.add_row("iteration", _ms(found.first.iteration_ms), _ms(found.second.iteration_ms), _signed(total))
    return Group(head, *sides, Text(), causes, Text(), _terms(found))


def _terms(found: Difference) -> RenderableType:
    table = plain_table("by rank, op and link", "A ms", "B ms", "B - A")
    shown, rest = found.changes[:_MOST_TERMS], found.changes[_MOST_TERMS:]
    for change in shown:
        table.add_row(str(change), _ms(change.first_ms), _ms(change.second_ms), _signed(change.change_ms))
    if rest:
        sums = [sum(getattr(each, side) for each in rest) for side in ("first_ms", "second_ms", "change_ms")]
        table.add_row(f"{len(rest)} others", _ms(sums[0]), _ms(sums[1]), _signed(sums[2]))
    table.add_section()
    ends = (found.first.iteration_ms, found.second.iteration_ms)
    table.add_row("iteration", *map(_ms, ends), _signed(found.total_ms))
    return table


def _counted(side: Breakdown) -> str:
    stalled = f", {side.stalled} of them stalled" if side.stalled else ""
    return f"{count(side.iterations, 'iteration')}{stalled}"


def _ms(value: float) -> str:
    return f"{value:,.2f}"


def _signed(value: float) -> Text:
    text = f"{value:+,.2f}"
    if text in ("+0.00", "-0.00"):
        return Text("0.00", style="dim")
    return Text(text, style="red" if value > 0 else "green")
