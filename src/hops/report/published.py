"""Published rows predicted, as a table in a terminal: per source how many, how far off, and why rows were refused."""

from rich.console import Group, RenderableType

from hops.published.score import PublishedValidation, RowFigures, figures
from hops.report.tables import count, plain_table

_HEADS = ("rows", "re-\nfused", "time\nMAPE", "median", "signed", "worst", "memory\nmedian", "max")
_REASONS = 12  # that are shown
_WIDTH = 70  # of a reason
PICTURE = "published.png"
DEFINITIONS = """\
Errors in percent: predicted over measured seconds of an iteration - 1; of memory, the device that holds most (or the
one that the source logs). Median and max of memory are of absolute errors. A pair is two rows of one job that differ
in one choice, or trade one axis for another, by more than 3 % of measured time."""


def render_published(found: PublishedValidation) -> RenderableType:
    """What `hops validate published` prints."""
    table = plain_table("source", *_HEADS)
    for source in found.sources:
        table.add_row(source, *_cells(figures(found.of_source(source))))
    table.add_section()
    table.add_row("all", *_cells(figures(found.results)))
    right = sum(each.right for each in found.pairs)
    pairs = f"{right} of {count(len(found.pairs), 'pair')} have the sign of the effect right"
    each_ms = 1e3 * found.seconds / max(1, len(found.results))
    head = f"{count(len(found.results), 'row')} in {found.seconds:.1f} s ({each_ms:.0f} ms each), {found.how}"
    return Group(head, "", table, "", pairs, *_reasons(found), "", DEFINITIONS)


def _reasons(found: PublishedValidation) -> list[str]:
    """Why rows were refused, the most frequent reasons first."""
    said = [f"  {times:>4}  {_short(reason)}" for reason, times in found.reasons.items()]
    if not said:
        return []
    more = [f"  and {count(len(said) - _REASONS, 'reason')} more (--json has all)"] if len(said) > _REASONS else []
    return ["", "refused:", *said[:_REASONS], *more]


def _short(reason: str) -> str:
    """The beginning of a reason, in one line."""
    line = " ".join(reason.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1].rstrip()}…"


def _cells(of: RowFigures) -> list[str]:
    return [
        str(of.rows),
        str(of.refused),
        _number(of.time_mape_pct),
        _number(of.time_median_pct),
        _number(of.time_signed_pct, "+.1f"),
        _number(of.time_worst_pct, "+.0f"),
        _number(of.memory_median_pct),
        _number(of.memory_max_pct, ".0f"),
    ]


def _number(value: float | None, form: str = ".1f") -> str:
    return "-" if value is None else format(value, form)
