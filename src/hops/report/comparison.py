"""Several runs side by side: one row each, everything relative to the first, the best of each column marked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from hops.metrics.audit import Audit, Times
from hops.metrics.difference import Breakdown, Difference
from hops.metrics.summary import Summary
from hops.report.audit import PARTS
from hops.report.tables import change, count, gibibytes, milliseconds, number, plain_table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A figure to compare. `value`: None if unknown; `less`: whether less is better."""

    title: str
    value: Callable[[Summary], float | None]
    text: Callable[[float], str]
    less: bool = True


def _peak_bytes(summary: Summary) -> float | None:
    peaks = [rank.memory.peak_bytes for rank in summary.ranks if rank.memory is not None]
    return max(peaks) if peaks else None


_COLUMNS = (
    _Column(title="iteration\nms", value=lambda s: s.iteration_time.mean_ms, text=number),
    _Column(title="microb.\nper s", value=lambda s: s.throughput.microbatches_per_s, text=number, less=False),
    _Column(title="bubble\n%", value=lambda s: 100 * s.bubble.pipeline.fraction, text=lambda n: f"{n:.1f}"),
    _Column(title="exposed\nms", value=lambda s: s.exposed_communication.total_ms, text=number),
    _Column(
        title="in\nflight", value=lambda s: max(rank.in_flight_peak for rank in s.ranks), text=lambda n: f"{n:.0f}"
    ),
    _Column(title="peak\nGiB", value=_peak_bytes, text=gibibytes),
)


def render_comparison(summaries: Mapping[str, Summary]) -> RenderableType:
    """What `hops compare` prints: name -> summary, the first being the reference. Fits 80 columns.

    `bubble` is of the window `pipeline`; `in flight` and `memory` are of the rank that has most.
    """
    columns = [column for column in _COLUMNS if any(column.value(s) is not None for s in summaries.values())]
    table = plain_table("", *(column.title for column in columns), "speed")
    table.caption, table.caption_justify = "* best of its column; speed against the first", "left"
    reference = next(iter(summaries.values())).throughput.microbatches_per_s
    for place, (name, summary) in enumerate(summaries.items()):
        speed = change(summary.throughput.microbatches_per_s, reference) if place else "-"
        cells = [_cell(column, summary, summaries) for column in columns]
        table.add_row(Text(name, style="bold"), *cells, speed)
    return table


def _cell(column: _Column, summary: Summary, summaries: Mapping[str, Summary]) -> Text:
    value = column.value(summary)
    if value is None:
        return Text("- ")
    known = [other for s in summaries.values() if (other := column.value(s)) is not None]
    best = column.text(min(known) if column.less else max(known))  # what prints alike is equally good
    text = column.text(value)
    if text == best and len({column.text(other) for other in known}) > 1:
        return Text(f"{text}*", style="bold green")
    return Text(f"{text} ")


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
    for each in shown:
        table.add_row(str(each), _ms(each.first_ms), _ms(each.second_ms), _signed(each.change_ms))
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


def render_beside(measured: Audit, simulated: Audit) -> RenderableType:
    """Iteration and parts of both, and how far the simulated one is off. Fits 80 columns."""
    table = plain_table("median of an iteration", "measured ms", "simulated ms", "off")
    table.add_row("iteration", *_cells(measured.wall, simulated.wall))
    for key, name in PARTS.items():
        known: list[Times] = [times for run in (measured, simulated) if (times := getattr(run.parts, key)) is not None]
        if len(known) == 2:
            table.add_row(f"  {name}", *_cells(*known))
    return table


def _cells(measured: Times, simulated: Times) -> tuple[str, str, str]:
    off = change(simulated.median_ms, measured.median_ms) if measured.median_ms else "-"
    return f"{measured.median_ms:,.2f}", f"{simulated.median_ms:,.2f}", off
