"""What a run leaves in files, besides pictures: the summary JSON and the Chrome trace with its memory curves."""

from pathlib import Path

from hops.files import atomic_write
from hops.metrics import Run, RunFacts, Summary, in_flight, memory_over_time
from hops.trace import Counter, Trace, write_chrome_trace


def write_summary(summary: Summary, path: Path | str) -> None:
    """Write the summary JSON (keys in docs/reference/metrics.md). Raises UsageError if it cannot be written."""
    with atomic_write(Path(path)) as out:
        out.write(summary.to_json())


def write_chrome(trace: Trace, path: Path | str, facts: RunFacts) -> None:
    """Write the whole trace for Perfetto, warm-up included, with what each rank holds over time.

    Counters are bytes where the facts say what stages hold, and microbatches in flight otherwise.
    """
    run = Run.of(trace, RunFacts(stage_memory=facts.stage_memory))
    curves, name = (memory_over_time(run), "memory") if facts.knows_memory else (in_flight(run), "in flight")
    counters = [
        Counter(rank=rank, name=name, at_ns=curve.at_ns, values=curve.value) for rank, curve in enumerate(curves)
    ]
    write_chrome_trace(trace, path, counters)
