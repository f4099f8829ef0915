"""Traces: what happened in a run, simulated or measured, as columns."""

from hops.trace.chrome import Counter, write_chrome_trace
from hops.trace.files import read_events, write_events
from hops.trace.order import producer_rows, program_from_trace
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace, TraceMeta

__all__ = [
    "COLUMNS",
    "Counter",
    "LinkMeta",
    "Stream",
    "Trace",
    "TraceMeta",
    "producer_rows",
    "program_from_trace",
    "read_events",
    "write_chrome_trace",
    "write_events",
]
