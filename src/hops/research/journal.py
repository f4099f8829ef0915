"""The journal: one line of JSON per thing that was tried or tested, only ever added to, safe against kill -9."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from hops.decode.decode import Where, decode, from_json, tagged
from hops.decode.quantities import problem
from hops.errors import ResearchError
from hops.research.scores import FIGURES, GATED, Figure


def _known(key: str) -> str:
    known = sorted(figure.key for figure in FIGURES)
    if key not in known:
        raise problem(f"unknown figure, expected one of {', '.join(known)}")
    return key


Figures = Mapping[Annotated[str, AfterValidator(_known)], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Where it started: what the model was, and its figures."""

    date: str
    what: str
    measured: str
    commit: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A hypothesis tried outside the loop; `measured` says how its figures came about."""

    date: str
    hypothesis: str
    verdict: Literal["accepted", "rejected", "noted"]
    why: str
    measured: str
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An attempt that passed and is in the branch."""

    date: str
    attempt: int
    hypothesis: str
    commit: str
    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An attempt that was undone; `snapshot` is the commit that keeps what it was; `after` is empty if not measured."""

    date: str
    attempt: int
    hypothesis: str
    snapshot: str
    reasons: tuple[str, ...]
    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOpened:
    """The sealed test split was opened, for the count-th time; written before anything is read."""

    __test__ = False  # not a test of pytest's

    date: str
    count: int
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """Suite figures of the sealed test split, of the opening with this count."""

    __test__ = False

    date: str
    count: int
    commit: str
    runs: int
    figures: Figures


Entry = Baseline | Experiment | Accepted | Rejected | TestOpened | Tested
KINDS: dict[str, type[Entry]] = {
    "baseline": Baseline,
    "experiment": Experiment,
    "accepted": Accepted,
    "rejected": Rejected,
    "test_opened": TestOpened,
    "tested": Tested,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}


def today() -> str:
    return datetime.now(tz=UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal in one file."""

    path: Path

    def entries(self) -> tuple[Entry, ...]:
        """All entries, oldest first. A last line that a crash cut short is no entry."""
        whole, _, _ = self._text().rpartition("\n")
        lines = whole.splitlines()
        where = Where(name=str(self.path), error=ResearchError)
        return tuple(_parse(line, replace(where, line=number)) for number, line in enumerate(lines, start=1))

    def append(self, entry: Entry) -> None:
        """Add an entry; on return it outlives this process."""
        line = json.dumps({"kind": KIND_OF[type(entry)], **asdict(entry)}, ensure_ascii=False, allow_nan=False)
        whole, newline, _ = self._text().rpartition("\n")
        with self.path.open("ab") as out:
            out.truncate(len((whole + newline).encode()))  # what a crash cut short
            out.write(f"{line}\n".encode())

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""


def decision_of(entries: tuple[Entry, ...], attempt: int) -> Accepted | Rejected | None:
    """What was decided about an attempt, if anything."""
    decided = [each for each in entries if isinstance(each, Accepted | Rejected) and each.attempt == attempt]
    return decided[-1] if decided else None


def next_attempt(entries: tuple[Entry, ...]) -> int:
    """The number of the attempt after all that were decided."""
    return 1 + max((each.attempt for each in entries if isinstance(each, Accepted | Rejected)), default=0)


def _parse(line: str, where: Where) -> Entry:
    kind, rest = tagged(from_json(line, where), "kind", KINDS, where)
    return decode(kind, rest, replace(where, text=line))


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
