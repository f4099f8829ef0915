"""The engine turns a program (or a policy) and its costs into a trace."""

from hops.engine.settings import P2P, Settings
from hops.engine.simulate import run_policy, run_program

__all__ = ["P2P", "Settings", "run_policy", "run_program"]
