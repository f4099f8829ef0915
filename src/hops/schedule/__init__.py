"""Schedules: which action a rank runs next, fixed before the run (programs) or decided during it (policies)."""

from hops.schedule.base import SCHEDULERS, Scheduler, StaticScheduler, View
from hops.schedule.evaluate import Evaluation, evaluate
from hops.schedule.gpipe import GPipe
from hops.schedule.grid import order_grid
from hops.schedule.one_f_one_b import OneFOneB
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape

__all__ = [
    "SCHEDULERS",
    "Evaluation",
    "GPipe",
    "OneFOneB",
    "Profile",
    "Program",
    "Scheduler",
    "Shape",
    "StaticScheduler",
    "View",
    "evaluate",
    "order_grid",
]
