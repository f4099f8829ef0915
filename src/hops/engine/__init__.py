"""The engine turns a program (or a policy) and its costs into a trace."""

from hops.engine.settings import P2P, Faults, RunSettings
from hops.engine.simulate import run_policy, run_policy_until_stop, run_program, run_program_until_stop
from hops.engine.stopped_run import Interruption, StoppedRun

__all__ = [
    "P2P",
    "Faults",
    "Interruption",
    "RunSettings",
    "StoppedRun",
    "run_policy",
    "run_policy_until_stop",
    "run_program",
    "run_program_until_stop",
]
