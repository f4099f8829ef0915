"""What an evaluation says about a model: suite figures, and the errors of each run."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hops.errors import ResearchError


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
class ScoreTerm:
    """One part of an iteration, mean per iteration in ms: as predicted and as measured."""

    predicted_ms: float
    measured_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunErrors:
    """Errors of one run, signed, predicted minus measured: throughput in percent, bubble in percentage points."""

    name: str
    throughput_error_pct: float
    bubble_error_pp: float
    iteration_ms: float
    groups: Mapping[str, str]
    terms: Mapping[str, ScoreTerm]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Suite figures by key (None where a suite has none, such as a correlation of two ranks), and runs by name."""

    figures: Mapping[str, float | None]
    runs: Mapping[str, RunErrors]


def scores_of(report: Mapping[str, Any], variant: str, where: str = "report") -> Scores:
    """Read one variant of a validation report (the JSON of `hops validate`).

    Raises ResearchError naming the key that is missing or not a finite number.
    """
    reader = ScoreReader(where)
    figures = reader.mapping(report, "variants", variant)
    runs = [_run(ScoreReader(f"{where}: runs[{n}]"), row, variant) for n, row in enumerate(reader.rows(report, "runs"))]
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


def _run(reader: "ScoreReader", row: Mapping[str, Any], variant: str) -> RunErrors:
    errors = reader.mapping(row, "variants", variant)
    return RunErrors(
        name=reader.text(row, "run"),
        throughput_error_pct=reader.number(errors, "throughput_error_pct"),
        bubble_error_pp=reader.number(errors, "bubble_error_pp"),
        iteration_ms=reader.number(row, "iteration_ms"),
        groups={key: str(value) for key, value in reader.mapping(row, "groups").items()},
        terms={
            name: ScoreTerm(
                predicted_ms=reader.number(term, "predicted_ms"), measured_ms=reader.number(term, "measured_ms")
            )
            for name, term in reader.mapping(errors, "terms").items()
        },
    )


@dataclass(frozen=True, slots=True)
class ScoreReader:
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


ROUNDING = 1e-9  # figures are sums of floats; less than this is no difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """By how much each figure may get worse; percent for throughput, percentage points for bubbles."""

    throughput_mape_pct: float = 0.0
    bubble_mae_pp: float = 0.0
    utilization_spearman: float = 0.0
    run_throughput_pct: float = 2.0
    run_bubble_pp: float = 2.0


def problems(golden: Scores, candidate: Scores, tolerances: Tolerances) -> tuple[str, ...]:
    """What gets too much worse, one sentence each; empty if the candidate passes."""
    allowed = {
        "throughput_mape_pct": tolerances.throughput_mape_pct,
        "bubble_mae_pp": tolerances.bubble_mae_pp,
        "utilization_spearman": tolerances.utilization_spearman,
    }
    gated = [figure for figure in FIGURES if figure.key in GATED]
    found = [_figure(figure, golden, candidate, allowed[figure.key]) for figure in gated]
    missing = sorted(set(golden.runs) ^ set(candidate.runs))
    if missing:
        found.append(f"the runs are not those of the golden baseline: {', '.join(missing)}")
    for name in sorted(set(golden.runs) & set(candidate.runs)):
        found += _gate_run(golden.runs[name], candidate.runs[name], tolerances)
    return tuple(each for each in found if each)


def _figure(figure: Figure, golden: Scores, candidate: Scores, allowed: float) -> str:
    before, after = golden.figures[figure.key], candidate.figures[figure.key]
    if before is None:
        return ""
    if after is None:
        return f"{figure.heading} was {before:.{figure.digits + 1}f} and is not known any more"
    worse = after - before if figure.better == "lower" else before - after
    if worse <= allowed + ROUNDING:
        return ""
    digits = figure.digits + 1
    return (
        f"{figure.heading} gets worse: {before:.{digits}f} before, {after:.{digits}f} now"
        f" ({worse:.{digits}f} worse, {allowed:g} allowed)"
    )


def _gate_run(before: RunErrors, after: RunErrors, tolerances: Tolerances) -> list[str]:
    found = []
    worse = abs(after.throughput_error_pct) - abs(before.throughput_error_pct)
    if worse > tolerances.run_throughput_pct + ROUNDING:
        found.append(
            f"run {after.name} regresses: throughput {before.throughput_error_pct:+.2f}% before, "
            f"{after.throughput_error_pct:+.2f}% now ({tolerances.run_throughput_pct:g}% allowed)"
        )
    worse = abs(after.bubble_error_pp) - abs(before.bubble_error_pp)
    if worse > tolerances.run_bubble_pp + ROUNDING:
        found.append(
            f"run {after.name} regresses: bubble {before.bubble_error_pp:+.2f} pp before, "
            f"{after.bubble_error_pp:+.2f} pp now ({tolerances.run_bubble_pp:g} pp allowed)"
        )
    return found
