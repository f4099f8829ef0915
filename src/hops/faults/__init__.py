"""Faults: what breaks when, drawn beforehand and independent of any schedule."""

from hops.faults import fixed, renewal, share  # noqa: F401 (they register themselves)
from hops.faults.availability import load_availability
from hops.faults.base import FAULT_MODELS, FaultModel
from hops.faults.draw import FaultSource, draw_plan
from hops.faults.files import load_plan, plan_to_json, save_plan
from hops.faults.fixed import Fixed
from hops.faults.inventory import Family, Inventory, Site, targets
from hops.faults.plan import FOREVER, NO_FAULTS, Fault, FaultKind, FaultPlan
from hops.faults.presets import PRESETS, Preset
from hops.faults.renewal import Renewal
from hops.faults.share import Share

__all__ = [
    "FAULT_MODELS",
    "FOREVER",
    "NO_FAULTS",
    "PRESETS",
    "Family",
    "Fault",
    "FaultKind",
    "FaultModel",
    "FaultPlan",
    "FaultSource",
    "Fixed",
    "Inventory",
    "Preset",
    "Renewal",
    "Share",
    "Site",
    "draw_plan",
    "load_availability",
    "load_plan",
    "plan_to_json",
    "save_plan",
    "targets",
]
