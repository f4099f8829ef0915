"""Faults: what breaks when, drawn beforehand and independent of any schedule."""

from hops.faults.plan import FOREVER, NO_FAULTS, Fault, FaultKind, FaultPlan

__all__ = ["FOREVER", "NO_FAULTS", "Fault", "FaultKind", "FaultPlan"]
