"""The flow on one page: load a spec, build what it describes, simulate it, summarize the trace."""

from hops.api.build import Setup, build
from hops.api.run import SimulatedRun, simulate, simulate_setup, summarize
from hops.config.load import load, loads

__all__ = ["Setup", "SimulatedRun", "build", "load", "loads", "simulate", "simulate_setup", "summarize"]
