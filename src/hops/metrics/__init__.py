"""Metrics: what a trace, simulated or measured, says about a run."""

from hops.metrics.bubble import Bubbles, Cause, Idle, bubbles
from hops.metrics.exposed import Exposed, exposed
from hops.metrics.facts import RunFacts
from hops.metrics.latency import microbatch_latencies_ns
from hops.metrics.links import LinkUse, link_uses
from hops.metrics.memory import StepFunction, in_flight, memory_over_time, memory_peaks
from hops.metrics.phases import Phases, phases
from hops.metrics.rates import iteration_times_ns
from hops.metrics.run import Run
from hops.metrics.spans import stage_spans_ns
from hops.metrics.summarize import summarize
from hops.metrics.summary import Summary

__all__ = [
    "Bubbles",
    "Cause",
    "Exposed",
    "Idle",
    "LinkUse",
    "Phases",
    "Run",
    "RunFacts",
    "StepFunction",
    "Summary",
    "bubbles",
    "exposed",
    "in_flight",
    "iteration_times_ns",
    "link_uses",
    "memory_over_time",
    "memory_peaks",
    "microbatch_latencies_ns",
    "phases",
    "stage_spans_ns",
    "summarize",
]
