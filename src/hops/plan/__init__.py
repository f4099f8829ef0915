"""Plans: which devices hold which layers under which schedule, ranked by simulation, against a bound."""

from hops.plan.budget import Budget
from hops.plan.driver import plan
from hops.plan.objective import Objective
from hops.plan.result import Effort, Plan, PlanReport

__all__ = ["Budget", "Effort", "Objective", "Plan", "PlanReport", "plan"]
