"""The flow on one page: load a spec, build what it describes, simulate it, summarize the trace."""

from hops.api.build import Setup, build
from hops.api.simulate import SimulatedRun, simulate, summarize
from hops.config.load import load, loads

__all__ = ["Setup", "SimulatedRun", "build", "load", "loads", "simulate", "summarize"]
