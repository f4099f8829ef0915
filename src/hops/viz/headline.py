"""A run's key figures in words, as they stand above its pictures and in the last panel of its dashboard."""

from hops.metrics.bubble import bubbles
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts, Summary
from hops.metrics.throughput import iteration_times_ns, mfu, microbatches_per_s, tokens_per_s
from hops.trace.trace import Trace, TraceMeta
from hops.units import NS_PER_S, format_bytes, format_time


def headline(trace: Trace, facts: RunFacts) -> tuple[str, str]:
    """Title and subtitle of a timeline. Raises UsageError if warm-up leaves no iteration."""
    run = Iterations.of(trace, facts)
    found = bubbles(run)
    return what_ran(trace.meta), key_figures(
        iteration_s=float(iteration_times_ns(run).mean()) / NS_PER_S,
        bubble=found.pipeline.fraction(),
        microbatches_per_s=microbatches_per_s(run),
        tokens_per_s=tokens_per_s(run),
        mfu=mfu(run),
    )


def summary_figures(summary: Summary) -> str:
    """The same figures as `headline`, from a summary."""
    return key_figures(
        iteration_s=summary.iteration_time.mean_ms / 1e3,
        bubble=summary.bubble.pipeline.fraction,
        microbatches_per_s=summary.throughput.microbatches_per_s,
        tokens_per_s=summary.throughput.tokens_per_s,
        mfu=summary.mfu,
    )


def key_figures(
    *, iteration_s: float, bubble: float, microbatches_per_s: float, tokens_per_s: float | None, mfu: float | None
) -> str:
    """`iteration 45 ms, pipeline bubble 27.3 %, 178 microbatches/s`; tokens and MFU where known."""
    rate = (
        f"{number(microbatches_per_s)} microbatches/s" if tokens_per_s is None else f"{number(tokens_per_s)} tokens/s"
    )
    parts = [f"iteration {format_time(iteration_s)}", f"pipeline bubble {percent(bubble)}", rate]
    if mfu is not None:
        parts.append(f"MFU {percent(mfu)}")
    return ", ".join(parts)


def what_ran(meta: TraceMeta) -> str:
    """`1f1b, 4 ranks, 8 microbatches, simulated`."""
    stages = f", {meta.num_stages} stages" if meta.num_stages != meta.num_ranks else ""
    ranks = count(meta.num_ranks, "rank")
    microbatches = count(meta.shape.whole_microbatches, "microbatch", "es")
    microbatches += f" in {meta.num_microbatches} slices" if meta.slices > 1 else ""
    return f"{meta.schedule or 'unknown schedule'}, {ranks}{stages}, {microbatches}, {meta.source}"


def key_table(summary: Summary) -> list[tuple[str, str]]:
    """Name and value of every key figure that is known."""
    time, rate, bubble = summary.iteration_time, summary.throughput, summary.bubble
    table = [
        ("iteration, mean", ms(time.mean_ms)),
        ("iteration, p50 / p99", f"{ms(time.p50_ms)} / {ms(time.p99_ms)}"),
        ("iterations measured", f"{summary.iterations} after {summary.warmup_iterations} of warm-up"),
        ("microbatches per second", number(rate.microbatches_per_s)),
    ]
    if rate.samples_per_s is not None:
        table.append(("samples per second", number(rate.samples_per_s)))
    if rate.tokens_per_s is not None:
        table.append(("tokens per second", number(rate.tokens_per_s)))
    if summary.mfu is not None:
        table.append(("model FLOPs utilisation", percent(summary.mfu)))
    table.append(("bubble, pipeline", percent(bubble.pipeline.fraction)))
    table.append(("bubble, iteration", percent(bubble.iteration.fraction)))
    if summary.microbatch_latency is not None:
        latency = summary.microbatch_latency
        table.append(("latency, p50 / p99", f"{ms(latency.p50_ms)} / {ms(latency.p99_ms)}"))
    table.append(("exposed communication", f"{ms(summary.exposed_communication.total_ms)} per rank"))
    fullest = max((rank.memory.peak_bytes for rank in summary.ranks if rank.memory is not None), default=None)
    if fullest is not None:
        table.append(("peak memory, fullest rank", format_bytes(fullest)))
    if summary.data_parallel > 1:
        table.append(("data-parallel replicas", str(summary.data_parallel)))
    return table


def device_table(summary: Summary) -> list[tuple[str, str]]:
    """Every kind of device, in order of its first rank, and the ranks that run on it: `l4`, `4 ranks: 1, 4-6`.

    The kind is the device's name without its place on the host: `l4` of `l4 node0/1`.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank in summary.ranks:
        kind = rank.device.partition(f" {rank.host}/")[0]
        ranks_of.setdefault(kind or "unknown device", []).append(rank.rank)
    return [(kind, f"{count(len(ranks), 'rank')}: {_ranges(ranks)}") for kind, ranks in ranks_of.items()]


def _ranges(numbers: list[int]) -> str:
    """`0-3, 7` of [0, 1, 2, 3, 7]."""
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def ms(value: float) -> str:
    """A time given in ms, in the unit that fits."""
    return format_time(value / 1e3)


def percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def number(value: float) -> str:
    """Three digits or all that stand before the point, thousands apart: `1,234`, `56.7`, `0.0123`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count(value: int, noun: str, plural: str = "s") -> str:
    return f"{value} {noun}{'' if value == 1 else plural}"
