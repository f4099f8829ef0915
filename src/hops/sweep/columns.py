"""A column of a sweep's table as numbers on an axis or as names in order, and which of its ends is better."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from hops.errors import UsageError
from hops.sweep.table import SweepTable, label

_QUANTITY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(\D+?)\s*")
_LARGE_IS_GOOD = ("throughput.", "mfu")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepColumn:
    """Values of one column.

    Attributes:
        name: as in the table.
        title: the name with the unit.
        values: a number per row; None where there is none.
        names: of the numbers 0, 1, ... if the values are words; () if they are numbers.
    """

    name: str
    title: str
    values: tuple[float | None, ...]
    names: tuple[str, ...]

    @property
    def is_words(self) -> bool:
        return bool(self.names)


def column(table: SweepTable, name: str) -> SweepColumn:
    """A column of the rows that have figures. Raises UsageError, with the nearest name, if there is none."""
    check_column(name, (*table.keys, *table.figures))
    records = [record for record in table.records() if record["status"] == "ok"]
    return _column(name, [record[name] for record in records])


def check_column(name: str, known: Sequence[str]) -> None:
    """Raise UsageError, with the nearest name, for a column that there is not."""
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"got the column {name!r}, expected one of {', '.join(known)}{hint}")


def large_is_good(figure: str) -> bool:
    """Whether more of a figure is better: throughput and MFU; of times, bubbles and bytes less is."""
    return figure.startswith(_LARGE_IS_GOOD)


def short(name: str, others: Sequence[str] = ()) -> str:
    """The last part of a name that tells it from the others; a figure's ms, bytes or fraction keep their subject."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        tail = ".".join(parts[-length:])
        bare = tail in ("mean_ms", "fraction", "bytes", "share", "p50_ms", "p99_ms", "window_ms", "name")
        if not bare and sum(other == tail or other.endswith(f".{tail}") for other in others) <= 1:
            return tail
    return name


def _column(name: str, raw: Sequence[Any]) -> SweepColumn:
    known = [value for value in raw if value is not None]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        numbers = tuple(None if value is None else float(value) for value in raw)
        return SweepColumn(name=name, title=name, values=numbers, names=())
    found = [_QUANTITY.fullmatch(value) if isinstance(value, str) else None for value in raw]
    units = {match[2] for match in found if match is not None}
    if len(units) == 1 and all(found):
        numbers = tuple(None if match is None else float(match[1]) for match in found)
        return SweepColumn(name=name, title=f"{name} ({units.pop()})", values=numbers, names=())
    words = tuple(dict.fromkeys(label(value) for value in known))
    place: Mapping[str, int] = {word: number for number, word in enumerate(words)}
    values = tuple(None if value is None else float(place[label(value)]) for value in raw)
    return SweepColumn(name=name, title=name, values=values, names=words)
