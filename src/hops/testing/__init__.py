"""Conformance suites: what every member of a family has to do, for ours and for outsiders' own tests (needs pytest)."""

from hops.testing.recovery import FaultModelConformance, RecoveryConformance
from hops.testing.schedules import SchedulerConformance

__all__ = ["FaultModelConformance", "RecoveryConformance", "SchedulerConformance"]
