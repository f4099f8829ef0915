"""The engine turns a program (or a policy) and its costs into a trace."""

from hops.engine.outcome import Interruption, Outcome
from hops.engine.settings import P2P, Faults, Settings
from hops.engine.simulate import run_policy, run_policy_until_stop, run_program, run_program_until_stop

__all__ = [
    "P2P",
    "Faults",
    "Interruption",
    "Outcome",
    "Settings",
    "run_policy",
    "run_policy_until_stop",
    "run_program",
    "run_program_until_stop",
]
