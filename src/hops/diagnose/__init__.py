"""What a run shows: its schedule, who is slow, what a change would give."""

from hops.diagnose.detect import Detected, detect
from hops.diagnose.peers import Uncompared
from hops.diagnose.stragglers import Findings, Straggler, find_stragglers
from hops.diagnose.versus import HETERO16, Versus, read_hetero16, versus, versus_report

__all__ = [
    "HETERO16",
    "Detected",
    "Findings",
    "Straggler",
    "Uncompared",
    "Versus",
    "detect",
    "find_stragglers",
    "read_hetero16",
    "versus",
    "versus_report",
]
