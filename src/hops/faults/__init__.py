"""Faults: what breaks when, drawn beforehand and independent of any schedule."""

from hops.faults.draw import FaultSource, draw_plan, load_availability
from hops.faults.inventory import Inventory, Site, TargetKind, targets
from hops.faults.models import FAULT_MODELS, FaultModel, Fixed, Generators, Renewal, Share, Window
from hops.faults.plan import FOREVER, NO_FAULTS, Fault, FaultKind, FaultPlan, load_plan, plan_to_json, save_plan
from hops.faults.presets import PRESETS, Preset

__all__ = [
    "FAULT_MODELS",
    "FOREVER",
    "NO_FAULTS",
    "PRESETS",
    "Fault",
    "FaultKind",
    "FaultModel",
    "FaultPlan",
    "FaultSource",
    "Fixed",
    "Generators",
    "Inventory",
    "Preset",
    "Renewal",
    "Share",
    "Site",
    "TargetKind",
    "Window",
    "draw_plan",
    "load_availability",
    "load_plan",
    "plan_to_json",
    "save_plan",
    "targets",
]
