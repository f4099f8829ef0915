"""Recovery policies: what happens after devices stopped, one file per policy."""

from hops.goodput.recovery.base import (
    RECOVERIES,
    Layout,
    Phase,
    Recovery,
    RecoveryPolicy,
    Situation,
    Unit,
    Variant,
)
from hops.goodput.recovery.checkpoint_restart import CheckpointRestart
from hops.goodput.recovery.replan import Replan
from hops.goodput.recovery.reroute import Reroute
from hops.goodput.recovery.spare import Spare
from hops.goodput.recovery.stall import Stall

__all__ = [
    "RECOVERIES",
    "CheckpointRestart",
    "Layout",
    "Phase",
    "Recovery",
    "RecoveryPolicy",
    "Replan",
    "Reroute",
    "Situation",
    "Spare",
    "Stall",
    "Unit",
    "Variant",
]
