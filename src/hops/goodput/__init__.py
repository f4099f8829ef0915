"""Goodput: what weeks of training on hardware that breaks really deliver."""

from hops.goodput.fleet import Fleet, FleetFault, FleetPlan
from hops.goodput.ledger import Cause
from hops.goodput.outcome import LifeStory
from hops.goodput.recovery import RECOVERIES, RecoveryPolicy
from hops.goodput.result import GoodputSummary, summarize_lives
from hops.goodput.study import Study, fleet_of, prepare
from hops.goodput.sweep import IntervalSweep, sweep_intervals

__all__ = [
    "RECOVERIES",
    "Cause",
    "Fleet",
    "FleetFault",
    "FleetPlan",
    "GoodputSummary",
    "IntervalSweep",
    "LifeStory",
    "RecoveryPolicy",
    "Study",
    "fleet_of",
    "prepare",
    "summarize_lives",
    "sweep_intervals",
]
