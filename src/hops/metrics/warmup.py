"""Warm-up: leading iterations whose pipeline runs slower than it does later.

Rule: from the first iteration on, while its window `pipeline` is longer than the median of all by more than 5 robust
spreads and 1 %; at most half of the iterations. The end of an iteration (reductions, optimizer) is left out of the
rule, because a reduction that stalls in the first iteration is a stall and no warm-up.
"""

from hops.metrics.facts import RunFacts
from hops.metrics.robust import Robust
from hops.metrics.run import Run
from hops.trace import Trace

_FLOOR = 0.01


def find_warmup(trace: Trace) -> int:
    """How many leading iterations are warm-up. Raises UsageError for a trace without actions."""
    run = Run.of(trace, RunFacts())
    windows = (run.pipeline_end_ns - run.pipeline_start_ns).tolist()
    usual = Robust.of(windows)
    limit = usual.outlying(floor=_FLOOR * usual.median)
    leading = next((place for place, window in enumerate(windows) if window <= limit), len(windows))
    return min(leading, len(windows) // 2)
