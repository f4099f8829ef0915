"""What an evaluation says about a model: suite figures, and the errors of each run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, make_dataclass
from pathlib import Path
from typing import Literal

from hops.decode.decode import LARGEST_DATA, Where, decode, read
from hops.decode.quantities import Number
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


SuiteFigures = make_dataclass("SuiteFigures", [(each.key, float | None) for each in FIGURES], frozen=True, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenErrors:
    """What a report says of one run under one variant; more keys are let be."""

    throughput_error_pct: float
    bubble_error_pp: float
    terms: Mapping[str, ScoreTerm]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRun:
    """What a report says of one run."""

    run: str
    iteration_ms: float
    groups: Mapping[str, str | int | float]
    variants: Mapping[str, WrittenErrors]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """A validation report, as far as research looks at it."""

    variants: Mapping[str, SuiteFigures]  # type: ignore[valid-type]  # made from FIGURES
    runs: tuple[WrittenRun, ...]


def scores_of(report: object, variant: str, where: str = "report") -> Scores:
    """Read one variant of a validation report (the JSON of `hops validate`).

    Raises ResearchError naming every key that is missing or of the wrong kind.
    """
    return _scores(decode(WrittenReport, report, Where(name=where, error=ResearchError, strict=False)), variant, where)


def read_scores(path: Path, variant: str) -> Scores:
    """Read one variant of a report file."""
    expected = "a validation report, the JSON of `hops validate`"
    report = read(WrittenReport, path, error=ResearchError, expected=expected, largest=LARGEST_DATA, strict=False)
    return _scores(report, variant, str(path))


def _scores(report: WrittenReport, variant: str, where: str) -> Scores:
    for place, variants in {"": report.variants, **{f"runs.{run.run}.": run.variants for run in report.runs}}.items():
        if variant not in variants:
            raise ResearchError(f"{where}: there is no {place}variants.{variant}, got {', '.join(variants) or 'none'}")
    runs = (
        RunErrors(
            name=row.run,
            throughput_error_pct=row.variants[variant].throughput_error_pct,
            bubble_error_pp=row.variants[variant].bubble_error_pp,
            iteration_ms=row.iteration_ms,
            groups={key: str(value) for key, value in row.groups.items()},
            terms=row.variants[variant].terms,
        )
        for row in report.runs
    )
    return Scores(figures=asdict(report.variants[variant]), runs={run.name: run for run in runs})


def figures_text(figures: Mapping[str, float | None]) -> str:
    """The figures on one line, those that are there."""
    shown = [f"{each.heading} {value:.{each.digits}f}" for each in FIGURES if (value := figures[each.key]) is not None]
    return ", ".join(shown)


ROUNDING = 1e-9  # figures are sums of floats; less than this is no difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """By how much each figure may get worse; percent for throughput, percentage points for bubbles."""

    throughput_mape_pct: Number = 0.0
    bubble_mae_pp: Number = 0.0
    utilization_spearman: Number = 0.0
    run_throughput_pct: Number = 2.0
    run_bubble_pp: Number = 2.0


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
