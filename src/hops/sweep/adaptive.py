"""Points chosen by the outcomes of those before: Optuna asks, in batches of one size, so that jobs change nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hops.errors import UsageError
from hops.sweep.outcome import Outcome
from hops.sweep.plan import SweepPlan

BATCH = 16  # points that are chosen before any of them is known


def run_adaptive(
    plan: SweepPlan,
    run: Callable[[Iterator[tuple[int, Mapping[str, Any]]]], None],
    outcome: Callable[[int], Outcome | None],
) -> None:
    """Choose, run and judge `plan.samples` points, batch after batch.

    Args:
        plan: with goals. A point counts by the mean over its seeds; one without figures counts as failed.
        run: runs numbered points.
        outcome: of a number.

    The same plan chooses the same points, so a run that was interrupted goes on. Raises UsageError without optuna.
    """
    optuna = _optuna()
    names = [optuna_goal(goal) for goal in plan.goals.values()]
    sampler = (
        optuna.samplers.TPESampler(seed=plan.seed, constant_liar=True)
        if plan.sampler == "tpe"
        else optuna.samplers.NSGAIISampler(seed=plan.seed, population_size=BATCH)
    )
    study = optuna.create_study(directions=names, sampler=sampler)
    for begin in range(0, plan.samples, BATCH):
        trials = [study.ask() for _ in range(min(BATCH, plan.samples - begin))]
        points = [list(plan.with_seeds(_changes(plan, trial))) for trial in trials]
        first = begin * plan.seeds
        run(enumerate((changes for each in points for changes in each), start=first))
        for number, trial in enumerate(trials):
            numbers = range(first + number * plan.seeds, first + (number + 1) * plan.seeds)
            values = _values(plan, [outcome(each) for each in numbers])
            state = None if values is not None else optuna.trial.TrialState.FAIL
            study.tell(trial, values, state=state)


def optuna_goal(goal: str) -> str:
    """Optuna's word for a goal."""
    return {"min": "minimize", "max": "maximize"}[goal]


def _changes(plan: SweepPlan, trial: Any) -> dict[str, Any]:
    """A trial's place on every axis."""
    changes: dict[str, Any] = {}
    for axis in plan.axes:
        changes |= axis.asked(trial)
    return changes


def _values(plan: SweepPlan, outcomes: list[Outcome | None]) -> list[float] | None:
    """The goals' figures, means over seeds; None if any seed has none."""
    places = [plan.figures.index(name) for name in plan.goals]
    rows = [[each.figures[place] for place in places] for each in outcomes if each is not None and each.figures]
    if len(rows) < len(outcomes) or any(not isinstance(value, int | float) for row in rows for value in row):
        return None
    return [sum(float(value) for value in column) / len(rows) for column in zip(*rows, strict=True)]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "the samplers tpe and nsga2 need optuna, which is not installed: pip install 'hops-sim[optuna]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
