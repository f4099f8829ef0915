"""When a candidate is as good as the golden baseline: suite figures hold, and no single run gets much worse."""

from dataclasses import dataclass

from hops.research.scores import FIGURES, GATED, Figure, RunScore, Scores

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
        found += _run(golden.runs[name], candidate.runs[name], tolerances)
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


def _run(before: RunScore, after: RunScore, tolerances: Tolerances) -> list[str]:
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
