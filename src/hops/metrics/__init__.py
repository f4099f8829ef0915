"""Metrics: what a trace, simulated or measured, says about a run."""

from hops.metrics.audit import Audit, audit
from hops.metrics.bubble import BubbleCause, Bubbles, Idle, bubbles
from hops.metrics.critical_path import Paths, PathTerm, Piece, critical_paths
from hops.metrics.difference import Breakdown, Difference, TermChange, break_down, difference
from hops.metrics.exposed import Exposed, Phases, exposed, phases
from hops.metrics.iterations import Iterations, stage_spans_ns
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.losses import Losses, losses
from hops.metrics.memory import StepFunction, in_flight, memory_over_time, memory_peaks
from hops.metrics.stalls import Robust, SlowIteration, find_stalls, find_warmup
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts, Summary
from hops.metrics.throughput import iteration_times_ns, microbatch_latencies_ns

__all__ = [
    "Audit",
    "Breakdown",
    "BubbleCause",
    "Bubbles",
    "Difference",
    "Exposed",
    "Idle",
    "Iterations",
    "LinkUse",
    "Losses",
    "PathTerm",
    "Paths",
    "Phases",
    "Piece",
    "Robust",
    "RunFacts",
    "SlowIteration",
    "StepFunction",
    "Summary",
    "TermChange",
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
