"""What an evaluation says about a model: suite figures, and the errors of each run."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hops.research.errors import ResearchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One suite figure: its key in reports, its heading in tables, its digits, and which way is better."""

    key: str
    heading: str
    digits: int
    better: Literal["lower", "higher"]


FIGURES = (
    Figure(key="throughput_mape_pct", heading="throughput MAPE %", digits=2, better="lower"),
    Figure(key="throughput_max_pct", heading="worst run %", digits=1, better="lower"),
    Figure(key="iteration_p50_mape_pct", heading="p50 iteration MAPE %", digits=2, better="lower"),
    Figure(key="bubble_mae_pp", heading="bubble MAE pp", digits=2, better="lower"),
    Figure(key="utilization_spearman", heading="utilisation Spearman", digits=3, better="higher"),
    Figure(key="forward_mape_pct", heading="F MAPE %", digits=1, better="lower"),
    Figure(key="backward_mape_pct", heading="B MAPE %", digits=1, better="lower"),
    Figure(key="latency_mape_pct", heading="latency MAPE %", digits=2, better="lower"),
)
GATED = ("throughput_mape_pct", "bubble_mae_pp", "utilization_spearman")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of an iteration, mean per iteration in ms: as predicted and as measured."""

    predicted_ms: float
    measured_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScore:
    """Errors of one run, signed, predicted minus measured: throughput in percent, bubble in percentage points."""

    name: str
    throughput_error_pct: float
    bubble_error_pp: float
    iteration_ms: float
    groups: Mapping[str, str]
    terms: Mapping[str, Term]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Suite figures by key (None where a suite has none, such as a correlation of two ranks), and runs by name."""

    figures: Mapping[str, float | None]
    runs: Mapping[str, RunScore]


def scores_of(report: Mapping[str, Any], variant: str, where: str = "report") -> Scores:
    """Read one variant of a validation report (the JSON of `hops validate`).

    Raises ResearchError naming the key that is missing or not a finite number.
    """
    reader = _Reader(where)
    figures = reader.mapping(report, "variants", variant)
    runs = [_run(_Reader(f"{where}: runs[{n}]"), row, variant) for n, row in enumerate(reader.rows(report, "runs"))]
    return Scores(
        figures={each.key: reader.number_or_none(figures, each.key) for each in FIGURES},
        runs={run.name: run for run in runs},
    )


def read_scores(path: Path, variant: str) -> Scores:
    """Read one variant of a report file."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResearchError(f"{path} is not a validation report: {error}") from error
    return scores_of(report, variant, str(path))


def figures_text(figures: Mapping[str, float | None]) -> str:
    """The figures on one line, those that are there."""
    shown = [f"{each.heading} {value:.{each.digits}f}" for each in FIGURES if (value := figures[each.key]) is not None]
    return ", ".join(shown)


def _run(reader: "_Reader", row: Mapping[str, Any], variant: str) -> RunScore:
    errors = reader.mapping(row, "variants", variant)
    return RunScore(
        name=reader.text(row, "run"),
        throughput_error_pct=reader.number(errors, "throughput_error_pct"),
        bubble_error_pp=reader.number(errors, "bubble_error_pp"),
        iteration_ms=reader.number(row, "iteration_ms"),
        groups={key: str(value) for key, value in reader.mapping(row, "groups").items()},
        terms={
            name: Term(predicted_ms=reader.number(term, "predicted_ms"), measured_ms=reader.number(term, "measured_ms"))
            for name, term in reader.mapping(errors, "terms").items()
        },
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Takes values out of JSON and says where one is not as it must be."""

    where: str

    def mapping(self, value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
        found: Any = value
        for depth, key in enumerate(path, start=1):
            if not isinstance(found, Mapping) or key not in found:
                have = ", ".join(found) if isinstance(found, Mapping) else type(found).__name__
                raise ResearchError(f"{self.where}: there is no {'.'.join(path[:depth])}, got {have}")
            found = found[key]
        if not isinstance(found, Mapping):
            raise ResearchError(f"{self.where}: {'.'.join(path)} must be an object, got {found!r}")
        return found

    def rows(self, value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        if key not in value or not isinstance(value[key], list):
            raise ResearchError(f"{self.where}: {key} must be a list")
        return list(value[key])

    def text(self, value: Mapping[str, Any], key: str) -> str:
        if key not in value or not isinstance(value[key], str):
            raise ResearchError(f"{self.where}: {key} must be a text")
        return str(value[key])

    def number_or_none(self, value: Mapping[str, Any], key: str) -> float | None:
        if key in value and value[key] is None:
            return None
        return self.number(value, key)

    def number(self, value: Mapping[str, Any], key: str) -> float:
        got = value.get(key)
        if isinstance(got, bool) or not isinstance(got, int | float) or not math.isfinite(got):
            raise ResearchError(f"{self.where}: {key} must be a finite number, got {got!r}")
        return float(got)
