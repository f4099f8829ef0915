"""The journal for readers: what was tried in order, with its figures, as Markdown."""

from collections.abc import Mapping, Sequence

from hops.research.journal import Accepted, Baseline, Entry, Experiment, Rejected, Tested, TestOpened
from hops.research.scores import FIGURES, GATED, Figure

INTRODUCTION = """\
# Research log

What was tried on the model, with the figures it was judged by, in the order of the journal. This page is written by
`hops research log --markdown`; change the journal, not the page. A figure that was not measured is shown as -.
"""


def render_log(entries: Sequence[Entry]) -> str:
    """The whole journal: a table of everything with figures, then each entry with its reasons."""
    columns = [each for each in FIGURES if any(each.key in _figures(entry) for entry in entries)]
    lines = [INTRODUCTION]
    if not entries:
        return INTRODUCTION + "\nNothing yet.\n"
    lines += _measurements(entries)
    heading = "| # | what | verdict | " + " | ".join(each.heading for each in columns) + " |"
    lines += ["## Figures", "", heading, "|--:|---|---|" + "--:|" * len(columns)]
    for number, entry in enumerate(entries, start=1):
        cells = [_cell(each, _figures(entry)) for each in columns]
        lines.append(f"| {number} | {_escaped(_title(entry))} | {_verdict(entry)} | {' | '.join(cells)} |")
    lines += ["", "## Entries", ""]
    for number, entry in enumerate(entries, start=1):
        lines += [f"{number}. **{_title(entry)}** ({entry.date}; {_verdict(entry)})", *_details(entry), ""]
    return "\n".join(lines).rstrip() + "\n"


def render_lines(entries: Sequence[Entry]) -> str:
    """The journal for the terminal: one line per entry, with the figures that gates look at."""
    gated = [each for each in FIGURES if each.key in GATED]
    lines = []
    for number, entry in enumerate(entries, start=1):
        figures = _figures(entry)
        shown = ", ".join(f"{each.heading} {_cell(each, figures)}" for each in gated if each.key in figures)
        lines.append(
            f"{number:3d}  {entry.date}  {_verdict(entry):8s}  {_title(entry)}" + (f"  [{shown}]" if shown else "")
        )
    return "\n".join(lines) + "\n" if lines else "nothing yet\n"


def _measurements(entries: Sequence[Entry]) -> list[str]:
    ways = list(dict.fromkeys(each.measured for each in entries if isinstance(each, Baseline | Experiment)))
    return ["How the figures were measured:", "", *(f"- {_marks(entries, way)}: {way}" for way in ways), ""]


def _marks(entries: Sequence[Entry], way: str) -> str:
    """Numbers of the entries measured this way, as ranges."""
    numbers = [
        number
        for number, each in enumerate(entries, start=1)
        if isinstance(each, Baseline | Experiment) and each.measured == way
    ]
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges)


def _title(entry: Entry) -> str:
    match entry:
        case Baseline():
            return entry.what
        case Experiment() | Accepted() | Rejected():
            return entry.hypothesis
        case TestOpened():
            return f"test split opened, no. {entry.count}"
        case Tested():
            return f"test split, no. {entry.count}: {entry.runs} runs"


def _verdict(entry: Entry) -> str:
    match entry:
        case Experiment():
            return entry.verdict
        case Baseline():
            return "baseline"
        case Accepted():
            return "accepted"
        case Rejected():
            return "rejected"
        case TestOpened() | Tested():
            return "test"


def _figures(entry: Entry) -> Mapping[str, float | None]:
    match entry:
        case Baseline() | Experiment() | Tested():
            return entry.figures
        case Accepted() | Rejected():
            return entry.after
        case TestOpened():
            return {}


def _details(entry: Entry) -> list[str]:
    match entry:
        case Experiment():
            return [f"   {entry.why}"] if entry.why else []
        case Baseline():
            return [f"   Commit `{entry.commit[:12]}`."] if entry.commit else []
        case Accepted():
            return [f"   Attempt {entry.attempt}, commit `{entry.commit[:12]}`. {_change(entry.before, entry.after)}"]
        case Rejected():
            kept = f", kept as `{entry.snapshot[:12]}`" if entry.snapshot else ""
            reasons = [f"   - {' '.join(reason.split())}" for reason in entry.reasons]
            return [f"   Attempt {entry.attempt}{kept}. {_change(entry.before, entry.after)}".rstrip(), *reasons]
        case TestOpened() | Tested():
            return [f"   Commit `{entry.commit[:12]}`."]


def _change(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> str:
    """Each figure from before to after, as far as both are known."""
    known = [each for each in FIGURES if each.key in before and each.key in after]
    parts = [f"{each.heading} {_cell(each, before)} to {_cell(each, after)}" for each in known]
    return ", ".join(parts) + "." if parts else ""


def _cell(figure: Figure, figures: Mapping[str, float | None]) -> str:
    value = figures.get(figure.key)
    return "-" if value is None else f"{value:.{figure.digits}f}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
