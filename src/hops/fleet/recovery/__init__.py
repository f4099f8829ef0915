"""Recovery policies: what happens after devices stopped, one file per policy."""

from hops.fleet.recovery.base import RECOVERIES, FleetLayout, Phase, Reaction, RecoveryPolicy, Situation, Unit, Variant
from hops.fleet.recovery.replan import Replan
from hops.fleet.recovery.reroute import Reroute
from hops.fleet.recovery.restart import CheckpointRestart, Spare, WaitForRepair

__all__ = [
    "RECOVERIES",
    "CheckpointRestart",
    "FleetLayout",
    "Phase",
    "Reaction",
    "RecoveryPolicy",
    "Replan",
    "Reroute",
    "Situation",
    "Spare",
    "Unit",
    "Variant",
    "WaitForRepair",
]
