"""What a newcomer asks first about runs, answered in a sentence each from their figures."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hops.distributions import FloatArray
from hops.metrics.critical_path import Piece
from hops.metrics.summary import MemorySummary, Summary
from hops.units import format_bytes, format_time
from hops.viz.headline import percent
from hops.viz.html.parts import Answer, Show
from hops.viz.html.run import ShownRun
from hops.viz.style import CAUSES


def answers(runs: Sequence[ShownRun]) -> list[Answer]:
    """Of the first run; and what the others change."""
    first = runs[0]
    found = [_where_is_the_bubble(first), _bottleneck(first), _memory(first)]
    found += [_change(first, other, number) for number, other in enumerate(runs) if number]
    if len(runs) == 1:
        found.append(
            Answer(
                question="What would another schedule change?",
                answer="Put them side by side: hops report SPEC --schedules zb_h1,zb_v",
            )
        )
    return found


def _where_is_the_bubble(shown: ShownRun) -> Answer:
    bubble = shown.summary.bubble.iteration
    causes = sorted(((getattr(bubble.by_cause, key), key) for key in CAUSES), reverse=True)
    parts = [f"{CAUSES[key].label} {percent(share)}" for share, key in causes if share >= 0.0005]
    idlest = min(shown.summary.ranks, key=lambda rank: rank.utilization)
    text = (
        f"{percent(bubble.fraction)} of the ranks' time is idle: {', '.join(parts) or 'nothing to speak of'}. "
        f"Rank {idlest.rank} idles most, {percent(1 - idlest.utilization)}."
    )
    return Answer(question="Where is the bubble?", answer=text, show=Show(cause=causes[0][1]))


def waited_for_ms(shown: ShownRun) -> FloatArray:
    """How long, per iteration, ranks idle while this one, at the end of their wait, computes; shape (ranks,)."""
    run = shown.measured
    gaps = shown.gaps
    held = gaps.holder >= 0
    total = np.bincount(gaps.holder[held], weights=gaps.held_ns[held], minlength=run.num_ranks)
    return np.asarray(total / run.num_iterations / 1e6, dtype=np.float64)


def _bottleneck(shown: ShownRun) -> Answer:
    busiest = max(shown.summary.ranks, key=lambda rank: rank.busy_ms)
    on_path = _on_path_ms(shown)
    longest = max(on_path, key=lambda rank: on_path[rank])
    text = (
        f"Rank {busiest.rank} ({busiest.device}) computes longest: {_ms(busiest.busy_ms)} of an iteration of "
        f"{_ms(shown.summary.iteration_time.mean_ms)}. "
    )
    who = "It also has the most" if longest == busiest.rank else f"Rank {longest} has the most"
    text += f"{who} work on the critical path, {_ms(on_path[longest])}: what a faster device there could save."
    return Answer(question="Which rank is the bottleneck?", answer=text, show=Show(rank=longest, terms=("*",)))


def _on_path_ms(shown: ShownRun) -> dict[int, float]:
    """What each rank computes on the critical path, per iteration."""
    total = dict.fromkeys(range(shown.measured.num_ranks), 0.0)
    for term, spent in zip(shown.audit.paths.terms, shown.audit.paths.spent_ns.mean(axis=0).tolist(), strict=True):
        if term.piece is Piece.COMPUTE:
            total[term.rank] += spent / 1e6
    return total


def _memory(shown: ShownRun) -> Answer:
    question = "How much memory does each rank hold?"
    known = [(rank.rank, rank.memory) for rank in shown.summary.ranks if rank.memory is not None]
    if not known:
        return Answer(question=question, answer="Not known from this run.")
    fullest, memory = max(known, key=lambda each: each[1].peak_bytes / (each[1].capacity_bytes or 1))
    if len(known) <= 8:
        all_ranks = "; ".join(f"rank {rank}: {format_bytes(each.peak_bytes)}" for rank, each in known)
    else:
        all_ranks = _spans([each.peak_bytes for _, each in known])
    text = f"Peaks: {all_ranks}. Fullest is rank {fullest}: {held_of(memory)}."
    return Answer(question=question, answer=text, show=Show(rank=fullest))


def _spans(peaks: list[int]) -> str:
    """`ranks 0 to 7: 31 GiB to 34 GiB; ...` in four groups of ranks."""
    edges = [round(part * len(peaks) / 4) for part in range(5)]
    return "; ".join(
        f"ranks {low} to {high - 1}: {format_bytes(min(peaks[low:high]))} to {format_bytes(max(peaks[low:high]))}"
        for low, high in pairwise(edges)
    )


def held_of(memory: MemorySummary) -> str:
    """`15.5 GiB of 22.5 GiB`."""
    peak = format_bytes(memory.peak_bytes)
    return peak if memory.capacity_bytes is None else f"{peak} of {format_bytes(memory.capacity_bytes)}"


def _change(first: ShownRun, other: ShownRun, number: int) -> Answer:
    old, new = first.summary, other.summary
    was, is_now = old.iteration_time.mean_ms, new.iteration_time.mean_ms
    peaks = [_peak(summary) for summary in (old, new)]
    text = (
        f"An iteration takes {_ms(is_now)} instead of {_ms(was)} ({_signed(is_now / was - 1)}), the pipeline's bubble "
        f"is {percent(new.bubble.pipeline.fraction)} instead of {percent(old.bubble.pipeline.fraction)}"
    )
    if all(peaks):
        text += f", the highest peak of memory {format_bytes(peaks[1])} instead of {format_bytes(peaks[0])}"
    return Answer(question=f"What does {other.name} change?", answer=f"{text}.", show=Show(run=number))


def _peak(summary: Summary) -> int:
    return max((rank.memory.peak_bytes for rank in summary.ranks if rank.memory is not None), default=0)


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else '−'}{100 * abs(change):.1f} %"


def _ms(value: float) -> str:
    return format_time(value / 1e3)
