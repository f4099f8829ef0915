"""A run on one screen: headline numbers, the bubble and its causes, the ranks, and what to be warned of."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.files import atomic_write
from hops.metrics.iterations import Iterations
from hops.metrics.memory import in_flight, memory_over_time
from hops.metrics.summary import BubbleCauses, BubbleSummary, MemorySummary, RankSummary, RunFacts, Summary
from hops.report.tables import bar, count, gibibytes, milliseconds, number, percent, plain_table
from hops.report.warnings import warnings
from hops.trace.chrome import Counter, write_chrome_trace
from hops.trace.trace import Trace

MAX_ROWS = 16
_BAR_WIDTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Neighbouring ranks that share a row."""

    ranks: Sequence[RankSummary]

    @property
    def name(self) -> str:
        first, last = self.ranks[0].rank, self.ranks[-1].rank
        return str(first) if first == last else f"{first}-{last}"

    @property
    def device(self) -> str:
        kinds = list(dict.fromkeys(rank.device for rank in self.ranks))
        return kinds[0] if len(kinds) == 1 else f"{kinds[0]} +{len(kinds) - 1}"

    def mean(self, values: Sequence[float]) -> float:
        return sum(values) / len(values)

    @property
    def tightest(self) -> MemorySummary | None:
        """Memory of the rank with the least room left."""
        known = [rank.memory for rank in self.ranks if rank.memory is not None]
        return max(known, key=_fullness) if known else None


def ranks_table(summary: Summary) -> Table:
    """Utilisation, waiting, span, microbatches in flight and memory, rank by rank or block by block."""
    per_row = ceil(len(summary.ranks) / MAX_ROWS)
    blocks = [_Block(ranks=summary.ranks[low : low + per_row]) for low in range(0, len(summary.ranks), per_row)]
    folded = per_row > 1
    table = plain_table("ranks" if folded else "rank")
    table.add_column("device", no_wrap=True)
    table.add_column("mean use %" if folded else "use %", no_wrap=True)
    for title in ("exposed\nms", "span\nms", "in\nflight", "peak GiB"):
        table.add_column(title, justify="right", no_wrap=True)
    for block in blocks:
        table.add_row(*_row(block))
    for name, rank in _extremes(summary).items() if folded else ():
        cells = _row(_Block(ranks=[rank]))
        table.add_row(f"{rank.rank} {name}", *cells[1:])
    return table


def _extremes(summary: Summary) -> dict[str, RankSummary]:
    """Where ranks share rows: those that a mean would hide."""
    ranks = summary.ranks
    found = {"busiest": max(ranks, key=lambda rank: rank.busy_ms), "idlest": min(ranks, key=lambda rank: rank.busy_ms)}
    known = [rank for rank in ranks if rank.memory is not None]
    if known:
        found["fullest"] = max(known, key=lambda rank: _fullness(rank.memory) if rank.memory else 0.0)
    return found


def _row(block: _Block) -> tuple[Text | str, ...]:
    use = block.mean([rank.utilization for rank in block.ranks])
    return (
        block.name,
        block.device,
        Text.assemble((bar(use, _BAR_WIDTH), "cyan on grey23"), f" {100 * use:>5.1f}"),
        number(block.mean([rank.exposed_ms for rank in block.ranks])),
        number(block.mean([rank.stage_span_ms for rank in block.ranks])),
        str(max(rank.in_flight_peak for rank in block.ranks)),
        _memory(block.tightest),
    )


def _memory(memory: MemorySummary | None) -> Text:
    if memory is None:
        return Text("-")
    if memory.capacity_bytes is None:
        return Text(gibibytes(memory.peak_bytes))
    style = "bold red" if memory.peak_bytes > memory.capacity_bytes else ""
    return Text(f"{gibibytes(memory.peak_bytes)} of {gibibytes(memory.capacity_bytes)}", style=style)


def _fullness(memory: MemorySummary) -> float:
    return memory.peak_bytes / (memory.capacity_bytes or 1)


CAUSES = {
    "warm_up_cool_down": "warm-up/cool-down",
    "imbalance": "imbalance",
    "messages": "messages",
    "fault": "fault",
    "step": "after",
}
PHASES = {
    "warm_up_ms": "warm-up",
    "steady_ms": "steady",
    "cool_down_ms": "cool-down",
    "reductions_ms": "reductions",
    "optimizer_ms": "optimizer",
    "host_ms": "host",
    "other_ms": "other",
}


def render_summary(summary: Summary) -> RenderableType:
    """What `hops run` prints. Depends on the summary only; fits 80 columns, and a screen at any number of ranks."""
    parts: list[RenderableType] = [_title(summary), _headline(summary), _bubbles(summary), _phases(summary)]
    said = [Text(f"! {sentence}", style="yellow") for sentence in warnings(summary)]
    spaced = [piece for part in [*parts, ranks_table(summary)] for piece in (part, Text())]
    return Group(*spaced[:-1], *([Text(), *said] if said else []))


def _title(summary: Summary) -> Text:
    sizes = (
        count(summary.num_ranks, "rank"),
        count(summary.num_stages, "stage"),
        count(summary.num_microbatches, "microbatch", "microbatches"),
    )
    return Text.assemble((summary.schedule or "run", "bold"), f" ({summary.source}): {', '.join(sizes)}")


def _headline(summary: Summary) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    time, latency = summary.iteration_time, summary.microbatch_latency
    grid.add_row(
        "iteration",
        Text.assemble(
            (milliseconds(time.mean_ms), "bold"),
            f" (p50 {number(time.p50_ms)}, p99 {number(time.p99_ms)}; {_counted(summary)})",
        ),
    )
    grid.add_row("throughput", _throughput(summary))
    if latency is not None:
        grid.add_row(
            "latency",
            f"{milliseconds(latency.mean_ms)} (p50 {number(latency.p50_ms)}, p99 {number(latency.p99_ms)})"
            " per microbatch",
        )
    if summary.mfu is not None:
        run = "" if summary.hfu in (None, summary.mfu) else f" (full attention; HFU {percent(summary.hfu)} as launched)"
        grid.add_row("MFU", f"{percent(summary.mfu)}{run}")
    grid.add_row("exposed", _exposed(summary))
    busiest = _busiest_link(summary)
    if busiest:
        grid.add_row("busiest link", busiest)
    return grid


def _counted(summary: Summary) -> str:
    counted = count(summary.iterations, "iteration")
    return counted + (f", {summary.warmup_iterations} left out" if summary.warmup_iterations else "")


def _throughput(summary: Summary) -> str:
    rates = summary.throughput
    named = {
        "microbatches/s": rates.microbatches_per_s,
        "samples/s": rates.samples_per_s,
        "tokens/s": rates.tokens_per_s,
    }
    return ", ".join(f"{number(rate)} {name}" for name, rate in named.items() if rate is not None)


def _exposed(summary: Summary) -> str:
    lost = summary.exposed_communication
    named = {"messages": lost.messages_ms, "reductions": lost.reductions_ms, "others": lost.synchronization_ms}
    parts = ", ".join(f"{name} {number(value)}" for name, value in named.items() if value)
    return f"{milliseconds(lost.total_ms)} per rank" + (f" ({parts})" if parts else "")


def _busiest_link(summary: Summary) -> str:
    used = [link for link in summary.links if link.busy_share]
    if not used:
        return ""
    link = max(used, key=lambda link: link.busy_share)
    full = f"{percent(link.utilization)} of its bandwidth, " if link.utilization is not None else ""
    shared = f", shared {milliseconds(link.contention_ms)}" if link.contention_ms else ""
    return f"{link.name}: {full}in use {percent(link.busy_share)}{shared}"


def _bubbles(summary: Summary) -> Table:
    table = plain_table("bubble of", "%", *CAUSES.values())
    for window, bubble in (("pipeline", summary.bubble.pipeline), ("iteration", summary.bubble.iteration)):
        table.add_row(window, *_shares(bubble))
    return table


def _shares(bubble: BubbleSummary) -> list[Text]:
    total = Text(f"{100 * bubble.fraction:.1f}", style="bold")
    return [total, *(Text(f"{100 * share:.1f}" if share else "-") for share in _by_cause(bubble.by_cause))]


def _by_cause(causes: BubbleCauses) -> list[float]:
    return [getattr(causes, key) for key in CAUSES]


def _phases(summary: Summary) -> Table:
    table = plain_table("phases", *PHASES.values())
    times = [getattr(summary.phases, key) for key in PHASES]
    table.add_row("ms", *(number(time) if time else "-" for time in times))
    return table


def write_summary(summary: Summary, path: Path | str) -> None:
    """Write the summary JSON (keys in docs/reference/metrics.md). Raises UsageError if it cannot be written."""
    with atomic_write(Path(path)) as out:
        out.write(summary.to_json())


def write_chrome(trace: Trace, path: Path | str, facts: RunFacts) -> None:
    """Write the whole trace for Perfetto, warm-up included, with what each rank holds over time.

    Counters are bytes where the facts say what stages hold, and microbatches in flight otherwise.
    """
    run = Iterations.recorded(trace, RunFacts(stage_memory=facts.stage_memory))
    curves, name = (memory_over_time(run), "memory") if facts.knows_memory else (in_flight(run), "in flight")
    counters = [
        Counter(rank=rank, name=name, at_ns=curve.at_ns, values=curve.value) for rank, curve in enumerate(curves)
    ]
    write_chrome_trace(trace, path, counters)
