"""The two lines above a picture: what ran, and its key figures."""

from hops.metrics import RunFacts
from hops.trace import Trace, TraceMeta


def headline(trace: Trace, facts: RunFacts) -> tuple[str, str]:
    """Title and subtitle."""
    return what_ran(trace.meta), ""


def what_ran(meta: TraceMeta) -> str:
    """`1f1b, 4 ranks, 8 microbatches, simulated`."""
    stages = f", {meta.num_stages} stages" if meta.num_stages != meta.num_ranks else ""
    ranks = _count(meta.num_ranks, "rank")
    microbatches = _count(meta.num_microbatches, "microbatch", "es")
    return f"{meta.schedule or 'unknown schedule'}, {ranks}{stages}, {microbatches}, {meta.source}"


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"
