"""A time budget becomes numbers of evaluations at fixed rates, so that a budget gives the same plans on any machine.

No clock is read. The rates were measured on two cores of a cloud CPU; a slower machine takes longer than the budget.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hops.planner.problem import SHORT_SEARCH_MS, search_s

if TYPE_CHECKING:
    from hops.planner.trial import Trial

LAYOUT_S = 60e-6  # one floor of a layout, plus the following per stage
LAYOUT_STAGE_S = 0.6e-6
COMPILED_STAGE_S = 30e-9  # one step of the compiled search, plus the following per microbatch
COMPILED_ACTION_S = 0.75e-9
BUILD_S = 3e-3  # building a closed spec, plus the following per pair of ranks
BUILD_PAIR_S = 35e-6
REHEARSED_ACTION_S = 4e-6
SIMULATED_ACTION_S = 15e-6
LAYOUT_SHARE = 0.4
REHEARSAL_SHARE = 0.2
SEARCH_SHARE = 0.15  # for rehearsals of schedules that search
SEARCH_ACTION_S = 16e-6  # of what they try before they search


def compiled_steps(layouts: int, *, ranks: int, size: int) -> int:
    """Steps of the compiled search with `size` microbatches that cost as much as so many layouts."""
    each = COMPILED_STAGE_S * ranks + COMPILED_ACTION_S * ranks * size
    return int(layouts * (LAYOUT_S + LAYOUT_STAGE_S * ranks) / each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the planner may spend, in seconds at the rates above."""

    seconds: float

    def layouts(self, *, ranks: int, groups: int) -> int:
        """Layouts to value in each of so many groups."""
        each = LAYOUT_S + LAYOUT_STAGE_S * ranks
        return max(100, int(self.seconds * LAYOUT_SHARE / groups / each))

    def rehearsal_s(self, trial: "Trial") -> float:
        """What one rehearsal costs."""
        return _prepared_s(trial) + REHEARSED_ACTION_S * trial.actions

    def search_rehearsal_s(self, trial: "Trial") -> float:
        """What rehearsing a schedule that searches costs, cut short."""
        short_s = min(SHORT_SEARCH_MS / 1e3, search_s(trial.schedule))
        return BUILD_S + BUILD_PAIR_S * trial.ranks**2 + short_s + SEARCH_ACTION_S * trial.actions

    def simulation_s(self, trial: "Trial", iterations: int) -> float:
        """What one simulation costs."""
        return _prepared_s(trial) + SIMULATED_ACTION_S * trial.actions * iterations


def _prepared_s(trial: "Trial") -> float:
    """Building the spec, and the schedule's own search."""
    return BUILD_S + BUILD_PAIR_S * trial.ranks**2 + search_s(trial.schedule)
