"""The comparison: timelines of several runs on one time axis, each with its figures."""

from collections.abc import Sequence
from pathlib import Path

from hops.errors import UsageError
from hops.metrics import RunFacts, Summary
from hops.trace import Trace
from hops.viz.blocks import Block, draw_blocks
from hops.viz.canvas import picture_format
from hops.viz.headline import count, percent, summary_figures
from hops.viz.window import choose_window, readable_iterations


def draw_comparison(runs: Sequence[tuple[str, Trace, Summary, RunFacts]], path: Path) -> None:
    """Write a PNG or SVG of runs, given as (name, trace, its summary, facts), under each other.

    As many iterations after warm-up are shown as stay readable in every run. Each run but the first says how much
    faster or slower than the first one it is.

    Raises UsageError for any other suffix, no runs, or a run without an iteration after warm-up.
    """
    picture_format(path)
    blocks = comparison_blocks(runs)
    draw_blocks(blocks, path, title=f"Comparison of {len(runs)} runs", subtitle=_what_all_share(runs))


def comparison_blocks(runs: Sequence[tuple[str, Trace, Summary, RunFacts]]) -> list[Block]:
    """One block per run, each with as many iterations as the others."""
    if not runs:
        raise UsageError("nothing to compare: got no runs, expected at least one")
    shown = [readable_iterations(trace, facts) for _, trace, _, facts in runs]
    fit = min(map(len, shown))
    first, _, baseline, _ = runs[0]
    return [
        Block(
            name=name,
            figures=summary_figures(summary) + (_gain(summary, baseline, first) if position else ""),
            trace=trace,
            window=choose_window(trace, facts, iterations=shown[position][:fit]),
        )
        for position, (name, trace, summary, facts) in enumerate(runs)
    ]


def _gain(summary: Summary, baseline: Summary, name: str) -> str:
    """`, 12.0 % more throughput than 1f1b`."""
    gain = summary.throughput.microbatches_per_s / baseline.throughput.microbatches_per_s - 1
    size = percent(abs(gain))
    if size == percent(0):
        return f", throughput as {name}"
    return f", {size} {'more' if gain > 0 else 'less'} throughput than {name}"


def _what_all_share(runs: Sequence[tuple[str, Trace, Summary, RunFacts]]) -> str:
    """Ranks and microbatches, if they are the same in all runs."""
    sizes = {(summary.num_ranks, summary.num_microbatches) for _, _, summary, _ in runs}
    if len(sizes) > 1:
        return "on one time axis"
    ((ranks, microbatches),) = sizes
    return f"{count(ranks, 'rank')}, {count(microbatches, 'microbatch', 'es')}, on one time axis"
