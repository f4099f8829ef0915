"""Where the error comes from: which terms of an iteration are off, in which groups of runs, in which runs most."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hops.research.scores import FIGURES, RunErrors, Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A term's error in percent of the measured iteration, over the runs that have it: mean size, mean with sign."""

    name: str
    runs: int
    size_pct: float
    bias_pct: float
    worst: str
    worst_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Contributions, the largest first: of terms, of groups (throughput error of their runs), and of single runs."""

    scores: Scores
    terms: tuple[Contribution, ...]
    groups: tuple[Contribution, ...]
    runs: tuple[RunErrors, ...]


def observe(scores: Scores) -> Observation:
    """Sort the errors of a suite by what contributes most."""
    by_term: dict[str, list[tuple[str, float]]] = defaultdict(list)
    by_group: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for run in scores.runs.values():
        for name, term in run.terms.items():
            by_term[name].append((run.name, 100 * (term.predicted_ms - term.measured_ms) / run.iteration_ms))
        for key, value in run.groups.items():
            by_group[f"{key} {value}"].append((run.name, run.throughput_error_pct))
    return Observation(
        scores=scores,
        terms=_sorted(by_term.items()),
        groups=_sorted(by_group.items()),
        runs=tuple(sorted(scores.runs.values(), key=lambda run: (-abs(run.throughput_error_pct), run.name))),
    )


def render(observation: Observation, most: int = 12) -> str:
    """The observation as a Markdown page, for people and agents alike."""
    scores = observation.scores
    lines = ["# Where the error comes from", "", "| figure | now |", "|---|--:|"]
    for figure in FIGURES:
        value = scores.figures[figure.key]
        lines.append(f"| {figure.heading} | {'-' if value is None else f'{value:.{figure.digits}f}'} |")
    lines += ["", "## By term (error in % of the measured iteration)", ""]
    lines += _table("term", observation.terms, most) if observation.terms else ["The report has no terms."]
    lines += ["", "## By group (throughput error in %)", ""]
    lines += _table("group", observation.groups, most) if observation.groups else ["The report has no groups."]
    lines += ["", "## Runs", "", "| run | throughput error % | bubble error pp |", "|---|--:|--:|"]
    lines += [
        f"| {run.name} | {run.throughput_error_pct:+.2f} | {run.bubble_error_pp:+.2f} |"
        for run in observation.runs[:most]
    ]
    return "\n".join(lines) + "\n"


def _sorted(errors: Iterable[tuple[str, list[tuple[str, float]]]]) -> tuple[Contribution, ...]:
    found = [_contribution(name, each) for name, each in errors]
    return tuple(sorted(found, key=lambda each: (-each.size_pct, each.name)))


def _contribution(name: str, errors: list[tuple[str, float]]) -> Contribution:
    worst, worst_pct = max(errors, key=lambda each: (abs(each[1]), each[0]))
    return Contribution(
        name=name,
        runs=len(errors),
        size_pct=sum(abs(error) for _, error in errors) / len(errors),
        bias_pct=sum(error for _, error in errors) / len(errors),
        worst=worst,
        worst_pct=worst_pct,
    )


def _table(what: str, contributions: tuple[Contribution, ...], most: int) -> list[str]:
    head = [f"| {what} | runs | mean size | mean with sign | worst | in run |", "|---|--:|--:|--:|--:|---|"]
    return head + [
        f"| {each.name} | {each.runs} | {each.size_pct:.2f} | {each.bias_pct:+.2f} | {each.worst_pct:+.2f} |"
        f" {each.worst} |"
        for each in contributions[:most]
    ]
