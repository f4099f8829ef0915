"""What `hops sweep` prints: the best points, and why points have no figures."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hops.report.tables import gibibytes, number, plain_table
from hops.sweep.columns import check_column, large_is_good, short
from hops.sweep.table import SweepTable, label

MOST_REASONS = 5
MOST_KEYS, MOST_FIGURES = 4, 2
WIDEST = 18
_TITLES = {
    "iteration_time.mean_ms": "iteration\nms",
    "throughput.samples_per_s": "samples\nper s",
    "throughput.tokens_per_s": "tokens\nper s",
    "throughput.microbatches_per_s": "microb.\nper s",
    "mfu": "MFU",
    "bubble.pipeline.fraction": "bubble\nfraction",
    "bubble.iteration.fraction": "bubble\nfraction",
    "peak_memory.bytes": "peak\nGiB",
    "peak_memory.share": "memory\nshare",
}


def render_sweep_table(table: SweepTable, of: Sequence[str], *, most: int) -> RenderableType:
    """The points that are best by the first figure of `of` (default: the sweep's first), and what went wrong."""
    for name in of:
        check_column(name, (*table.keys, *table.figures))
    good = [record for record in table.records() if record["status"] == "ok"]
    figures = [name for name in of if name in table.figures]
    figures = figures or [table.figures[0], *(name for name in table.figures[:0:-1])]  # the last is of another kind
    parts: list[RenderableType] = [_head(table, len(good))]
    if good:
        parts.append(_best(table, good, figures, most))
    parts += _reasons(table)
    return Group(*parts)


def _head(table: SweepTable, good: int) -> Text:
    failed = len(table) - good
    words = f"{len(table):,} points" if len(table) == table.size else f"{len(table):,} of {table.size:,} points"
    return Text(words + (f", {failed:,} without figures" if failed else ""), style="bold")


def _best(table: SweepTable, good: Sequence[dict[str, Any]], figures: Sequence[str], most: int) -> RenderableType:
    first = figures[0]
    ranked = sorted(
        (record for record in good if record[first] is not None),
        key=lambda record: -record[first] if large_is_good(first) else record[first],
    )
    known = [name for name in figures if any(record[name] is not None for record in good)][:MOST_FIGURES]
    keys = table.keys[:MOST_KEYS]
    everything = (*table.keys, *table.figures)
    shown = plain_table(
        "point",
        *(_folded(short(key, everything)) for key in keys),
        *(_TITLES.get(name, _folded(name)) for name in known),
    )
    shown.caption, shown.caption_justify = f"the best by {first}", "left"
    for record in ranked[:most]:
        shown.add_row(
            str(record["number"]),
            *(_cut(label(record[key])) for key in keys),
            *(_figure(name, record[name]) for name in known),
        )
    return shown


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return gibibytes(value) if name.endswith("bytes") else number(value)


def _folded(name: str) -> str:
    """A name over several lines, so that columns are narrow."""
    return name.replace(".", "\n").replace("_", "\n")


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _reasons(table: SweepTable) -> list[RenderableType]:
    """Reasons by how many points have them, each with its first point."""
    failed = [row for row in table.rows if row.outcome.status != "ok"]
    counts = Counter(row.outcome.reason.partition("\n")[0] for row in failed)
    lines: list[RenderableType] = []
    for why, count in counts.most_common(MOST_REASONS):
        first = next(row.number for row in failed if row.outcome.reason.startswith(why))
        lines.append(Text(f"{count:,} x {why} (first: point {first})"))
    if len(counts) > MOST_REASONS:
        lines.append(Text(f"and {len(counts) - MOST_REASONS} other reasons: see the column reason of the table"))
    return lines
