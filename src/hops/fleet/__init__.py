"""Goodput: what weeks of training on hardware that breaks really deliver."""

from hops.fleet.checkpoint_sweep import IntervalSweep, sweep_intervals
from hops.fleet.fleet import Fleet, FleetFault, FleetPlan
from hops.fleet.result import GoodputSummary, summarize_study
from hops.fleet.study import Study, fleet_of, prepare
from hops.fleet.time_use import TimeUse
from hops.fleet.trajectory import Trajectory

__all__ = [
    "Fleet",
    "FleetFault",
    "FleetPlan",
    "GoodputSummary",
    "IntervalSweep",
    "Study",
    "TimeUse",
    "Trajectory",
    "fleet_of",
    "prepare",
    "summarize_study",
    "sweep_intervals",
]
