"""Traces: what happened in a run, simulated or measured, as columns."""

from hops.trace.inputs import producer_rows
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace, TraceMeta

__all__ = ["COLUMNS", "LinkMeta", "Stream", "Trace", "TraceMeta", "producer_rows"]
