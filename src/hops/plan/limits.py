"""What keeps a plan from being faster, read off its simulated run."""

from hops.metrics import Summary
from hops.metrics.summary import RankSummary

NEARLY_FULL = 0.97
MATTERS = 0.05
CAUSES = {
    "warm_up_cool_down": "filling and draining the pipeline",
    "imbalance": "uneven work",
    "messages": "messages",
    "fault": "faults",
    "step": "the end of the iteration",
}


def limit_of(summary: Summary) -> str:
    """The busiest rank, why it still idles, and memory that is nearly full; the largest share first."""
    busiest = max(summary.ranks, key=lambda rank: rank.busy_ms)
    whole = summary.iteration_time.mean_ms
    parts = [(busiest.busy_ms / whole, f"rank {busiest.rank} ({_kind(busiest)}) computes")]
    for cause, words in CAUSES.items():
        share = getattr(busiest.idle_ms, cause) / whole
        if share >= MATTERS:
            parts.append((share, _with_link(summary, words) if cause == "messages" else words))
    parts.sort(key=lambda part: -part[0])
    said = [f"{words} {100 * share:.0f} %" for share, words in parts]
    return "; ".join([*said, *_memory(summary)])


def _kind(rank: RankSummary) -> str:
    return rank.device.split(" ", 1)[0]


def _with_link(summary: Summary, words: str) -> str:
    """Messages, with the busiest link."""
    used = [link for link in summary.links if link.messages]
    if not used:
        return words
    return f"{words} (busiest: {max(used, key=lambda link: link.busy_share).name})"


def fullness_of(summary: Summary) -> float | None:
    """Peak memory over capacity of the fullest device."""
    known = [
        rank.memory.peak_bytes / rank.memory.capacity_bytes
        for rank in summary.ranks
        if rank.memory is not None and rank.memory.capacity_bytes
    ]
    return max(known) if known else None


def _memory(summary: Summary) -> list[str]:
    full = [rank for rank in summary.ranks if _share(rank) >= NEARLY_FULL]
    if not full:
        return []
    worst = max(full, key=_share)
    return [f"memory of rank {worst.rank} ({_kind(worst)}) {100 * _share(worst):.0f} % full"]


def _share(rank: RankSummary) -> float:
    if rank.memory is None or not rank.memory.capacity_bytes:
        return 0.0
    return rank.memory.peak_bytes / rank.memory.capacity_bytes
