"""Metrics: what a trace, simulated or measured, says about a run."""

from hops.metrics.facts import RunFacts

__all__ = ["RunFacts"]
