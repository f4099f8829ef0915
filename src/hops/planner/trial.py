"""A candidate under one schedule: rehearsed by the evaluator, then simulated by the engine.

What each costs at fixed rates turns a time budget into numbers of trials, so that a budget gives the same plans on any
machine. No clock is read. The rates were measured on two cores of a cloud CPU; a slower machine takes longer.
"""

from dataclasses import dataclass

from hops.build.prepared import check_fit
from hops.build.run import SimulatedRun, simulate
from hops.build.setup import build
from hops.errors import DoesNotFitError, ProgramError, StalledError, UsageError
from hops.planner.layout import Candidate
from hops.planner.problem import SHORT_SEARCH_MS, Pool, search_s, shortened
from hops.schedules.base import StaticScheduler
from hops.spec.open import OpenSpec
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import Spec
from hops.timing.longest_path import evaluate
from hops.units import NS_PER_S

BUILD_S = 3e-3  # building a closed spec, plus the following per pair of ranks
BUILD_PAIR_S = 35e-6
REHEARSED_ACTION_S = 4e-6
SIMULATED_ACTION_S = 15e-6
SEARCH_ACTION_S = 16e-6  # of what schedules that search try before they do
REFUSALS = (DoesNotFitError, ProgramError, StalledError, UsageError)  # of a schedule that cannot run this layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate with a schedule, and the seconds of an iteration that are expected of it."""

    candidate: Candidate
    schedule: ScheduleChoice
    expected_s: float

    @property
    def ranks(self) -> int:
        return len(self.candidate.layout.devices)

    @property
    def actions(self) -> int:
        """Of an iteration: F and B."""
        return 2 * len(self.candidate.layout.layers) * self.candidate.group.size

    @property
    def rehearsal_s(self) -> float:
        """What one rehearsal costs."""
        return self._prepared_s + REHEARSED_ACTION_S * self.actions

    @property
    def search_rehearsal_s(self) -> float:
        """What rehearsing a schedule that searches costs, cut short."""
        short_s = min(SHORT_SEARCH_MS / 1e3, search_s(self.schedule))
        return BUILD_S + BUILD_PAIR_S * self.ranks**2 + short_s + SEARCH_ACTION_S * self.actions

    def simulation_s(self, iterations: int) -> float:
        """What one simulation costs."""
        return self._prepared_s + SIMULATED_ACTION_S * self.actions * iterations

    @property
    def _prepared_s(self) -> float:
        """Building the spec, and the schedule's own search."""
        return BUILD_S + BUILD_PAIR_S * self.ranks**2 + search_s(self.schedule)


def trial_of(candidate: Candidate, schedule: ScheduleChoice) -> Trial:
    """A candidate that is expected to take what its layout does."""
    return Trial(candidate=candidate, schedule=schedule, expected_s=candidate.expected_s)


def closed(opened: OpenSpec, candidate: Candidate, schedule: ScheduleChoice, pool: Pool) -> Spec:
    """The spec of a candidate under a schedule."""
    group, layout = candidate.group, candidate.layout
    return opened.close(
        schedule=schedule,
        recompute=group.recompute,
        batch=group.batch,
        placement=[pool.ids[device] for device in layout.devices],
        partition=layout.layers,
    )


def rehearse(opened: OpenSpec, candidate: Candidate, schedule: ScheduleChoice, pool: Pool) -> Trial | None:
    """What the schedule's program comes to without shared links and jitter; None if it cannot run or does not fit.

    A policy has no program: it is expected to reach the candidate's floor. A schedule that searches is cut short.
    """
    scheduler = shortened(schedule).make()
    seconds = candidate.floor_s
    try:
        setup = build(closed(opened, candidate, schedule, pool))
        if isinstance(scheduler, StaticScheduler):
            scheduler.configure(setup.expected)
            check_fit(setup, scheduler.program)
            makespan_s = evaluate(scheduler.program, setup.expected).makespan_ns / NS_PER_S
            seconds += max(0.0, makespan_s - candidate.pipeline_s)
    except REFUSALS:
        return None
    return Trial(candidate=candidate, schedule=schedule, expected_s=seconds)


def run(opened: OpenSpec, trial: Trial, pool: Pool) -> SimulatedRun | None:
    """The simulated run of a trial; None if it does not fit after all."""
    try:
        return simulate(closed(opened, trial.candidate, trial.schedule, pool))
    except REFUSALS:
        return None
