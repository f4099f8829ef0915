"""Several runs side by side: one row each, everything relative to the first, the best of each column marked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from hops.metrics import Summary
from hops.report.tables import plain_table
from hops.report.wording import change, gibibytes, number


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
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
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
