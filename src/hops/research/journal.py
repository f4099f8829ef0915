"""The journal: one line of JSON per thing that was tried or tested, only ever added to, safe against kill -9."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hops.research.errors import ResearchError
from hops.research.scores import FIGURES

Figures = Mapping[str, float | None]


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
        return tuple(_parse(line, f"{self.path}:{number}") for number, line in enumerate(lines, start=1))

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


def _parse(line: str, where: str) -> Entry:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise ResearchError(f"{where}: not JSON: {error}") from error
    if not isinstance(values, dict) or "kind" not in values or values["kind"] not in KINDS:
        raise ResearchError(f"{where}: expected an object with kind {', '.join(KINDS)}")
    kind: type[Entry] = KINDS[values.pop("kind")]
    expected = {field.name for field in fields(kind)}
    if set(values) != expected:
        wrong = ", ".join(sorted(set(values) ^ expected))
        raise ResearchError(
            f"{where}: {KIND_OF[kind]} has keys {', '.join(sorted(expected))}; missing or unknown: {wrong}"
        )
    for key in ("figures", "before", "after"):
        if key in values:
            _check_figures(values[key], f"{where}: {key}")
    if "reasons" in values:
        values["reasons"] = tuple(values["reasons"])
    return kind(**values)


def _check_figures(figures: Any, where: str) -> None:
    known = {figure.key for figure in FIGURES}
    if not isinstance(figures, dict) or not set(figures) <= known:
        raise ResearchError(f"{where}: expected figures by key, keys among {', '.join(sorted(known))}")
    for key, value in figures.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ResearchError(f"{where}.{key}: got {value!r}, expected a number or null")
