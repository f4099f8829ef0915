"""Schedules: which action a rank runs next, fixed before the run (programs) or decided during it (policies)."""

from hops.schedule.base import SCHEDULERS, Scheduler, StaticScheduler, View
from hops.schedule.profile import Profile
from hops.schedule.program import Program, Shape

__all__ = ["SCHEDULERS", "Profile", "Program", "Scheduler", "Shape", "StaticScheduler", "View"]
