"""What every built-in schedule makes of stage costs: the incumbents that a search has to beat."""

from hops.errors import UsageError
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS, StaticScheduler, variants
from hops.search.search import Result, search
from hops.timing.stage_costs import StageCosts

CHOOSERS = ("hops_hetero", "hops_hetero_adaptive")  # they choose among the others
KEPT_TO_COMPARE = ("zb_or_1f1b", "zero_bubble_paper")  # others do the same better


def builtin_programs(costs: StageCosts) -> dict[str, Program | None]:
    """The program of every built-in for one placement; None if not even one microbatch as it would run them fits.

    Built-ins that need another placement, or other numbers of ranks and microbatches, are left out.
    """
    programs: dict[str, Program | None] = {}
    for name in SCHEDULERS.names():
        if name in (*CHOOSERS, *KEPT_TO_COMPARE):
            continue
        for called, scheduler in variants(name, costs.shape):
            if isinstance(scheduler, StaticScheduler):
                programs[called] = _built(scheduler, costs)
    return programs


def search_from_builtins(costs: StageCosts, *, iterations: int, seed: int = 0) -> Result:
    """The search with the built-ins of the placement as incumbents; see `hops.search.search`."""
    return search(costs, builtin_programs(costs), iterations=iterations, seed=seed)


def _built(scheduler: StaticScheduler, costs: StageCosts) -> Program | None:
    try:
        scheduler.configure(costs)
    except UsageError:
        return None
    return scheduler.program
