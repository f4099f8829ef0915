"""What a reader of a summary should be told without looking for it."""

from hops.metrics.summary import RankSummary, Summary
from hops.report.tables import count, milliseconds, percent, size

_NEARLY_FULL = 0.95
_MUCH_CONTENTION = 0.05
_UNEVEN = 0.10
_LONG_AFTER = 0.20


def warnings(summary: Summary) -> tuple[str, ...]:
    """Sentences, the most serious first; () if there is nothing to say."""
    return (*_memory_warning(summary), *_mfu(summary), *_imbalance(summary), *_after(summary), *_contention(summary))


def _memory_warning(summary: Summary) -> list[str]:
    """One sentence about devices that are too small and one about those nearly full, each naming the tightest."""
    tight = sorted(filter(_bounded, summary.ranks), key=_fullness_warning, reverse=True)
    over = [rank for rank in tight if _fullness_warning(rank) > 1]
    nearly = [rank for rank in tight if _NEARLY_FULL < _fullness_warning(rank) <= 1]
    return [*_of_memory(over, "needs", "and has"), *_of_memory(nearly, "is nearly full:", "of")]


def _of_memory(ranks: list[RankSummary], verb: str, against: str) -> list[str]:
    if not ranks:
        return []
    worst, others = ranks[0], len(ranks) - 1
    assert worst.memory is not None, "bounded"
    peak, capacity = size(worst.memory.peak_bytes), size(worst.memory.capacity_bytes or 0)
    likewise = f", as {count(others, 'other rank')}" if others else ""
    return [f"rank {worst.rank} ({worst.device}) {verb} {peak} {against} {capacity}{likewise}"]


def _bounded(rank: RankSummary) -> bool:
    return rank.memory is not None and rank.memory.capacity_bytes is not None


def _fullness_warning(rank: RankSummary) -> float:
    assert rank.memory is not None, "bounded"
    return rank.memory.peak_bytes / (rank.memory.capacity_bytes or 1)


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
        f"({busiest.device}) has the most to do; give it less, or a faster device"
    )
    return [sentence]


def _after(summary: Summary) -> list[str]:
    """What keeps ranks idle between the pipeline's end and the next iteration, if that is much."""
    lost = summary.bubble.iteration.by_cause.step
    if lost < _LONG_AFTER:
        return []
    phases = summary.phases
    parts = {
        "reductions": phases.reductions_ms,
        "the optimizer": phases.optimizer_ms,
        "the host": phases.host_ms,
        "waiting": phases.other_ms,
    }
    name, longest = max(parts.items(), key=lambda part: part[1])
    where = _reducing_link(summary) if name == "reductions" else ""
    sentence = (
        f"ranks idle {percent(lost)} of the iteration after the pipeline, most of it for {name}: "
        f"{milliseconds(longest)} an iteration{where}"
    )
    return [sentence]


def _reducing_link(summary: Summary) -> str:
    """The link that is most in use, where reductions are what uses it."""
    busiest = max(summary.links, key=lambda link: link.busy_share, default=None)
    share = summary.phases.reductions_ms / summary.iteration_time.mean_ms
    if busiest is None or busiest.busy_share < share / 2:
        return ""
    return f", over link {busiest.name}"


def _contention(summary: Summary) -> list[str]:
    whole = summary.iteration_time.mean_ms
    crowded = [link for link in summary.links if link.contention_ms > _MUCH_CONTENTION * whole]
    if not crowded:
        return []
    worst = max(crowded, key=lambda link: link.contention_ms)
    return [f"messages share link {worst.name} for {milliseconds(worst.contention_ms)} of an iteration"]
