"""Faults: what breaks when, drawn beforehand and independent of any schedule."""

from hops.faults.plan import Fault, FaultKind, FaultPlan

__all__ = ["Fault", "FaultKind", "FaultPlan"]
