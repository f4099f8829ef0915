"""The flow on one page: load a spec, build what it describes, simulate it, summarize the trace."""

from hops.build.run import SimulatedRun, simulate, simulate_setup, summarize
from hops.build.setup import Setup, build

__all__ = ["Setup", "SimulatedRun", "build", "simulate", "simulate_setup", "summarize"]
