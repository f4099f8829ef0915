"""What a reader of a summary should be told without looking for it."""

from hops.metrics import Summary
from hops.report.wording import milliseconds, percent, size

_NEARLY_FULL = 0.95
_MUCH_CONTENTION = 0.05
_UNEVEN = 0.10


def warnings(summary: Summary) -> tuple[str, ...]:
    """Sentences, the most serious first; () if there is nothing to say."""
    return (*_memory(summary), *_mfu(summary), *_imbalance(summary), *_contention(summary))


def _memory(summary: Summary) -> list[str]:
    said = []
    for rank in summary.ranks:
        if rank.memory is None or rank.memory.capacity_bytes is None:
            continue
        peak, capacity = rank.memory.peak_bytes, rank.memory.capacity_bytes
        if peak > capacity:
            said.append(f"rank {rank.rank} ({rank.device}) needs {size(peak)} and has {size(capacity)}")
        elif peak > _NEARLY_FULL * capacity:
            said.append(f"rank {rank.rank} ({rank.device}) is nearly full: {size(peak)} of {size(capacity)}")
    return said


def _mfu(summary: Summary) -> list[str]:
    if summary.mfu is None or summary.mfu <= 1:
        return []
    return [f"MFU of {percent(summary.mfu)} cannot be: stage times or peak rates are wrong"]


def _imbalance(summary: Summary) -> list[str]:
    lost = summary.bubble.pipeline.by_cause.imbalance
    if lost < _UNEVEN:
        return []
    busiest = max(summary.ranks, key=lambda rank: rank.busy_ms)
    sentence = (
        f"work is uneven: ranks idle {percent(lost)} of the pipeline's time because rank {busiest.rank} "
        f"({busiest.device}) has the most to do; another partition would help"
    )
    return [sentence]


def _contention(summary: Summary) -> list[str]:
    whole = summary.iteration_time.mean_ms
    crowded = [link for link in summary.links if link.contention_ms > _MUCH_CONTENTION * whole]
    if not crowded:
        return []
    worst = max(crowded, key=lambda link: link.contention_ms)
    return [f"messages share link {worst.name} for {milliseconds(worst.contention_ms)} of an iteration"]
