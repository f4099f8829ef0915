"""Metrics: what a trace, simulated or measured, says about a run."""

from hops.metrics.audit import Audit, audit
from hops.metrics.bubble import Bubbles, Cause, Idle, bubbles
from hops.metrics.diff import Breakdown, Change, Difference, break_down, difference
from hops.metrics.exposed import Exposed, exposed
from hops.metrics.facts import RunFacts
from hops.metrics.latency import microbatch_latencies_ns
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.losses import Losses, losses
from hops.metrics.memory import StepFunction, in_flight, memory_over_time, memory_peaks
from hops.metrics.path import Paths, Piece, Term, critical_paths
from hops.metrics.phases import Phases, phases
from hops.metrics.rates import iteration_times_ns
from hops.metrics.robust import Robust
from hops.metrics.run import Run
from hops.metrics.spans import stage_spans_ns
from hops.metrics.stalls import Stall, find_stalls
from hops.metrics.summarize import summarize
from hops.metrics.summary import Summary
from hops.metrics.warmup import find_warmup

__all__ = [
    "Audit",
    "Breakdown",
    "Bubbles",
    "Cause",
    "Change",
    "Difference",
    "Exposed",
    "Idle",
    "LinkUse",
    "Losses",
    "Paths",
    "Phases",
    "Piece",
    "Robust",
    "Run",
    "RunFacts",
    "Stall",
    "StepFunction",
    "Summary",
    "Term",
    "audit",
    "break_down",
    "bubbles",
    "critical_paths",
    "difference",
    "exposed",
    "find_stalls",
    "find_warmup",
    "in_flight",
    "iteration_times_ns",
    "link_uses",
    "losses",
    "memory_over_time",
    "memory_peaks",
    "microbatch_latencies_ns",
    "phases",
    "stage_spans_ns",
    "summarize",
]
