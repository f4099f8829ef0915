"""HOPS predicts, plans and explains pipeline-parallel LLM training on mixed GPUs.

In three lines::

    spec = hops.load("spec.yaml")
    run = hops.simulate(spec)
    summary = hops.summarize(run)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hops.api import SimulatedRun, load, loads, simulate, summarize

__version__ = "0.1.0"
__all__ = ["SimulatedRun", "__version__", "load", "loads", "simulate", "summarize"]


def __getattr__(name: str) -> Any:
    """Load the API when it is first used, so that `import hops` and the command line's help stay quick."""
    if name in __all__:
        import hops.api

        return getattr(hops.api, name)
    raise AttributeError(f"module 'hops' has no attribute {name!r}")
