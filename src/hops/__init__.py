"""HOPS predicts, plans and explains pipeline-parallel LLM training on mixed GPUs.

In three lines::

    spec = hops.load("spec.yaml")
    run = hops.simulate(spec)
    summary = hops.summarize(run)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hops.build.run import SimulatedRun, simulate, summarize
    from hops.spec.load import load, loads

__version__ = "0.1.0"
__all__ = ["SimulatedRun", "__version__", "load", "loads", "simulate", "summarize"]

_HOME = {
    "SimulatedRun": "hops.build.run",
    "load": "hops.spec.load",
    "loads": "hops.spec.load",
    "simulate": "hops.build.run",
    "summarize": "hops.build.run",
}


def __getattr__(name: str) -> Any:
    """Load a verb when it is first used, so that `import hops` and the command line's help stay quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'hops' has no attribute {name!r}")
