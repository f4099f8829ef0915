"""Plans: which devices hold which layers under which schedule, ranked by simulation, against a bound."""

from hops.planner.planner import plan
from hops.planner.problem import Objective
from hops.planner.result import Effort, Plan, PlanReport

__all__ = ["Effort", "Objective", "Plan", "PlanReport", "plan"]
