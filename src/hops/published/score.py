"""Predictions of published rows held against what was measured: per row, per source, over all, and pairs of rows."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from hops.published.row import PublishedRow

Status = Literal["predicted", "refused"]
LEAST_DIFFERENCE = 0.03  # of two measured times, that a sign is asked of


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """One row. A row that is predicted may still have no measured time, or no measured memory.

    Attributes:
        reason: why it was refused; empty else.
        notes: what was assumed.
        profiled: whether a profile knows its device.
    """

    id: str
    source: str
    status: Status
    reason: str = ""
    predicted_s: float | None = None
    measured_s: float | None = None
    predicted_gib: float | None = None
    measured_gib: float | None = None
    notes: tuple[str, ...] = ()
    profiled: bool = False

    @property
    def error_pct(self) -> float | None:
        """Of the step time: positive is too slow."""
        return _error_pct(self.predicted_s, self.measured_s)

    @property
    def memory_error_pct(self) -> float | None:
        return _error_pct(self.predicted_gib, self.measured_gib)

    def to_dict(self) -> dict[str, Any]:
        own = asdict(self)
        return {
            **{key: own[key] for key in ("id", "source", "status", "reason", "predicted_s", "measured_s")},
            "error_pct": self.error_pct,
            "predicted_gib": self.predicted_gib,
            "measured_gib": self.measured_gib,
            "memory_error_pct": self.memory_error_pct,
            "notes": list(self.notes),
        }


def _error_pct(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or measured is None else 100 * (predicted / measured - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFigures:
    """Of several rows; None where none of them was measured so."""

    rows: int
    refused: int
    expressible_pct: float
    timed: int
    time_mape_pct: float | None
    time_median_pct: float | None
    time_signed_pct: float | None
    time_worst_pct: float | None
    weighed: int
    memory_median_pct: float | None
    memory_max_pct: float | None


def figures(results: Sequence[RowResult]) -> RowFigures:
    """MAPE, median, mean and worst of errors of time; median and largest of absolute errors of memory."""
    times = np.array([each.error_pct for each in results if each.error_pct is not None])
    sizes = np.abs([each.memory_error_pct for each in results if each.memory_error_pct is not None])
    refused = sum(each.status == "refused" for each in results)
    timed, weighed = len(times) > 0, len(sizes) > 0
    return RowFigures(
        rows=len(results),
        refused=refused,
        expressible_pct=100 * (1 - refused / len(results)) if results else 100.0,
        timed=len(times),
        time_mape_pct=float(np.mean(np.abs(times))) if timed else None,
        time_median_pct=float(np.median(np.abs(times))) if timed else None,
        time_signed_pct=float(np.mean(times)) if timed else None,
        time_worst_pct=float(times[np.argmax(np.abs(times))]) if timed else None,
        weighed=len(sizes),
        memory_median_pct=float(np.median(sizes)) if weighed else None,
        memory_max_pct=float(np.max(sizes)) if weighed else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """Two rows that differ in one choice: by how many percent the second takes longer."""

    first: str
    second: str
    choice: str
    measured_pct: float
    predicted_pct: float

    @property
    def right(self) -> bool:
        """Whether the sign of the effect is right."""
        return (self.measured_pct > 0) == (self.predicted_pct > 0)


CHOICES = ("tp", "pp", "vp", "dp", "cp", "ep", "etp", "sp", "fsdp", "zero", "mbs", "recompute", "precision", "schedule")
_SAME = ("source", "model", "gpu", "n_gpus", "gbs", "seq", "kind")
_TOGETHER = {"tp", "pp", "vp", "dp", "cp", "ep", "etp", "sp", "fsdp"}  # one moves with another: devices stay the same


def pairs(rows: Sequence[PublishedRow], results: Sequence[RowResult]) -> Iterator[PairResult]:
    """Pairs of one source and job that differ in one choice (or trade one axis for another) by more than 3 %."""
    groups: dict[tuple[object, ...], list[tuple[PublishedRow, RowResult]]] = {}
    for row, result in zip(rows, results, strict=True):
        if result.error_pct is not None:
            key = (*(getattr(row, name) for name in _SAME), row.shape, _release(row))
            groups.setdefault(key, []).append((row, result))
    for members in groups.values():
        for (one, its), (other, others) in combinations(members, 2):
            choice = _difference(one, other)
            pair = None if choice is None else _pair(choice, its, others)
            if pair is not None:
                yield pair


def _release(row: PublishedRow) -> str:
    """Of the software, where the note tells it: two releases differ in more than one choice."""
    stated = re.search(r"release (\S+)", row.note)
    return "" if stated is None else stated[1]


def _difference(one: PublishedRow, other: PublishedRow) -> str | None:
    """What two rows differ in: one choice, two axes traded for each other, or one option; None: in more, or nothing."""
    changed = [name for name in CHOICES if _chosen(one, name) != _chosen(other, name)]
    options = [
        key
        for key in sorted({*one.options, *other.options} - {"flags", "mfu_percent", "steps"})
        if one.options.get(key) != other.options.get(key) and not _measured(key)
    ]
    if not changed:
        return options[0] if len(options) == 1 and one.flags == other.flags else None
    if options or one.flags != other.flags:
        return None
    traded = set(changed) <= _TOGETHER and len(changed) <= 2
    return " and ".join(changed) if len(changed) == 1 or traded else None


def _chosen(row: PublishedRow, name: str) -> object:
    """A choice; sizes that are not stated are 1."""
    value = getattr(row, name)
    return value or 1 if name in _TOGETHER else value


def _measured(key: str) -> bool:
    """Whether an option is a figure of the run and no choice."""
    return key.startswith(("mem", "peak", "real", "simumax")) or key == "steps"


def _pair(choice: str, one: RowResult, other: RowResult) -> PairResult | None:
    assert one.measured_s is not None
    assert other.measured_s is not None
    assert one.predicted_s is not None
    assert other.predicted_s is not None
    measured = other.measured_s / one.measured_s - 1
    if abs(measured) <= LEAST_DIFFERENCE:
        return None
    return PairResult(
        first=one.id,
        second=other.id,
        choice=choice,
        measured_pct=100 * measured,
        predicted_pct=100 * (other.predicted_s / one.predicted_s - 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedValidation:
    """All rows of a file, predicted.

    Attributes:
        results: in the order of the file.
        pairs: rows that differ in one choice.
        how: what was learned from, for readers.
        seconds: that it took.
    """

    results: tuple[RowResult, ...]
    pairs: tuple[PairResult, ...]
    how: str
    seconds: float

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.source for each in self.results))

    def of_source(self, source: str) -> tuple[RowResult, ...]:
        return tuple(each for each in self.results if each.source == source)

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason of a refusal was given."""
        said: dict[str, int] = {}
        for each in self.results:
            if each.status == "refused":
                said[each.reason] = said.get(each.reason, 0) + 1
        return dict(sorted(said.items(), key=lambda pair: (-pair[1], pair[0])))

    def to_dict(self) -> dict[str, Any]:
        """Rows, sources, all, and pairs."""
        right = sum(each.right for each in self.pairs)
        return {
            "how": self.how,
            "rows": [each.to_dict() for each in self.results],
            "sources": {source: asdict(figures(self.of_source(source))) for source in self.sources},
            "all": asdict(figures(self.results)),
            "pairs": {
                "number": len(self.pairs),
                "right": right,
                "right_pct": 100 * right / len(self.pairs) if self.pairs else None,
                "wrong": [asdict(each) for each in self.pairs if not each.right],
            },
        }
