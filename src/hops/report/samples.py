"""What `hops run --samples` and `hops compare --samples` print: spreads with their confidence, and probabilities."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from hops.report.tables import number, percent, plain_table
from hops.sweep.samples import Estimate, Samples, Spread

_NAMES = {
    "throughput.samples_per_s": "samples per s",
    "throughput.tokens_per_s": "tokens per s",
    "peak_memory.share": "fullest device, share",
}


def render_samples(found: Samples) -> RenderableType:
    """The distributions of one spec. Fits 80 columns."""
    parts: list[RenderableType] = [Text(_head(found), style="bold")]
    if found.iteration_time is not None:
        table = plain_table("", "mean", "+-", "p5", "p50", "p95")
        table.add_row("iteration ms", *_cells(found.iteration_time))
        for name, spread in found.figures.items():
            table.add_row(_NAMES[name], *_cells(spread))
        table.caption, table.caption_justify = "+- is half of the 95 % confidence interval of the mean", "left"
        parts.append(table)
    if found.missed is not None:
        parts.append(Text(f"longer than {number(found.deadline_ms or 0)} ms: {_probable(found.missed)}"))
    parts.append(Text(f"out of memory: {_probable(found.out_of_memory)}"))
    if found.failed.value:
        parts.append(Text(f"failed otherwise: {_probable(found.failed)}"))
    parts += [Text(f"  {count} x {why}") for why, count in found.reasons.items()]
    return Group(*parts)


def render_sampled_comparison(
    found: Mapping[str, Samples], differences: Mapping[str, Estimate | None]
) -> RenderableType:
    """Schedules or specs side by side; differences are to the first, over the same seeds."""
    table = plain_table("", "mean ms", "+-", "p5", "p50", "p95", "to the first", "+-")
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    for name, samples in found.items():
        cells = _cells(samples.iteration_time) if samples.iteration_time is not None else ["-"] * 5
        change = differences.get(name)
        table.add_row(Text(name, style="bold"), *cells, *_change(change))
    count = max(samples.count for samples in found.values())
    table.caption_justify = "left"
    table.caption = f"{count} samples each, of the same seeds; +- is half of a 95 % confidence interval"
    return table


def _head(found: Samples) -> str:
    if found.steady:
        return "1 sample: nothing in the spec is drawn, so that all are alike"
    early = f" of {found.asked}: the precision is reached" if found.count < found.asked else ""
    return f"{found.count} samples{early}"


def _cells(spread: Spread) -> list[str]:
    mean = spread.mean
    ends = (number(each.value) for each in (spread.p5, spread.p50, spread.p95))
    return [number(mean.value), number((mean.high - mean.low) / 2), *ends]


def _change(change: Estimate | None) -> tuple[str, str]:
    if change is None:
        return "-", "-"
    return f"{change.value:+.3g}", number((change.high - change.low) / 2)


def _probable(share: Estimate) -> str:
    return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"
