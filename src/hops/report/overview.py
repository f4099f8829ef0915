"""A run on one screen: headline numbers, the bubble and its causes, the ranks, and what to be warned of."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.metrics import Summary
from hops.metrics.summary import BubbleCauses, BubbleSummary
from hops.report.ranks import ranks_table
from hops.report.tables import plain_table
from hops.report.warnings import warnings
from hops.report.wording import count, milliseconds, number, percent

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
        grid.add_row("MFU", percent(summary.mfu))
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
    used = [link for link in summary.links if link.messages]
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
