"""PyTorch profiler (Kineto) profiles, reduced to the pipeline's actions."""

from hops.importers.kineto.importer import Kineto

__all__ = ["Kineto"]
