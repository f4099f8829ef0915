"""Parts of a page beside its timelines: answers, tables, stacked bars, waterfalls. Plain data for its script."""

from dataclasses import asdict, dataclass
from typing import Any

Cell = str | float | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """What of a run's timeline a click shows. None: nothing of the kind.

    Attributes:
        run: number of the run on the page.
        cause: its gaps.
        rank: that lane only.
        terms: these parts of the critical path (all of it: "*").
    """

    run: int = 0
    cause: str | None = None
    rank: int | None = None
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A question that a newcomer has, and what this run says."""

    question: str
    answer: str
    show: Show | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. `digits` after the point, for numbers; None: text or whole numbers as they are."""

    name: str
    unit: str = ""
    digits: int | None = None
    bar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells (None: unknown). `shows` is empty or as long as the rows."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    shows: tuple[Show | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPart:
    """One colour of stacked bars."""

    key: str
    name: str
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Horizontal bars of parts. `values` has a row for each name and a column for each part.

    `show`: a click on a part shows the gaps with its key as cause, in the lane of its row.
    """

    title: str
    unit: str
    parts: tuple[StackPart, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    note: str = ""
    show: Show | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FallStep:
    """One bar of a waterfall; `terms`: parts of the critical path that it stands for."""

    name: str
    start: float
    change: float
    whole: bool = False
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """Bars that begin where the one before ends."""

    title: str
    unit: str
    steps: tuple[FallStep, ...]
    note: str = ""
    show: Show | None = None


Part = Table | Stack | Waterfall


def part_data(part: Part) -> dict[str, Any]:
    """The part as the script reads it."""
    kind = {Table: "table", Stack: "stack", Waterfall: "waterfall"}[type(part)]
    return {"kind": kind, **asdict(part)}
