"""An audit on one screen: what ran, what an iteration consists of, stages, gaps between them, and what stalled."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.diagnose.against_program import AgainstProgram
from hops.diagnose.detect import Detected
from hops.metrics.audit import Audit, GapTimes, Times
from hops.metrics.summary import Summary
from hops.program.action import Op
from hops.report.tables import count, milliseconds, number, percent, plain_table

_MOST_NAMED = 6
PARTS = {
    "pipeline": "pipeline: first action to last",
    "reduce": "pipeline's end to optimizer",
    "optimizer": "optimizer, first start to last end",
    "host": "until the next iteration",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A run and everything that was found out about it.

    Attributes:
        label: the schedule it was said to run.
        dropped: events left out by a lenient reader, by reason.
        notes: what else its reader must know.
        against: a program that it was compared with.
    """

    name: str
    label: str
    summary: Summary
    audit: Audit
    detected: Detected
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = ()
    against: AgainstProgram | None = None


def render_audit(run: Audited) -> RenderableType:
    """What `hops trace show` prints; fits 80 columns."""
    parts: list[RenderableType] = [_title(run), _headline(run), _parts(run.audit), _stages(run), _gaps(run.audit)]
    spaced = [piece for part in parts for piece in (part, Text())]
    said = [Text(f"! {sentence}", style="yellow") for sentence in findings(run)]
    return Group(*spaced[:-1], *([Text(), *said] if said else []))


def findings(run: Audited) -> tuple[str, ...]:
    """What a reader should be told without looking for it: the most serious first."""
    return (*run.notes, *_mislabelled(run), *_against(run), *_other_orders(run), *_dropped(run), *_stalled(run.audit))


def _mislabelled(run: Audited) -> list[str]:
    if not run.detected.contradicts(run.label):
        return []
    return [f"labelled {run.label}, but every rank ran {' = '.join(run.detected.names)}: the label is wrong"]


def _against(run: Audited) -> list[str]:
    found = run.against
    if found is None or found.first is None:
        return []
    return [f"another order than {found.name} in {_some(found.others)}: {found.first}"]


def _other_orders(run: Audited) -> list[str]:
    others = run.detected.others
    if not others:
        return []
    return [f"{count(len(others), 'iteration')} ran another order: {_some(others)}"]


def _dropped(run: Audited) -> list[str]:
    return [f"dropped {count(events, 'event')}: {reason}" for reason, events in run.dropped.items()]


def _stalled(found: Audit) -> list[str]:
    if not found.stalls:
        return []
    lost = sum(stall.excess_ns for stall in found.stalls) / 1e6
    mean = sum(found.walls_ms) / len(found.walls_ms)
    share = lost / len(found.walls_ms) / mean
    stalled = f"{len(found.stalls)} of {count(len(found.walls_ms), 'iteration')} stalled"
    return [f"{stalled}, which costs {percent(share)} of the mean; the median has none of it"]


def _some(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_NAMED]))
    return shown + (", ..." if len(numbers) > _MOST_NAMED else "")


def _title(run: Audited) -> Text:
    summary = run.summary
    sizes = (
        count(summary.num_ranks, "rank"),
        count(summary.num_stages, "stage"),
        count(summary.num_microbatches, "microbatch", "microbatches"),
    )
    return Text.assemble((run.name, "bold"), f" ({summary.source}): {', '.join(sizes)}")


def _headline(run: Audited) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    found, summary = run.audit, run.summary
    grid.add_row("order", _order(run))
    if run.against is not None:
        grid.add_row("program", _program(run.against))
    counted = count(len(found.iterations), "iteration")
    warmup = f"{found.warmup_iterations} of warm-up left out" if found.warmup_iterations else "no warm-up"
    grid.add_row(
        "iteration",
        Text.assemble(
            (milliseconds(found.wall.median_ms), "bold"),
            f" median, spread {_ms(found.wall.spread_ms)}, mean {number(summary.iteration_time.mean_ms)}"
            f" ({counted}, {warmup}{_cut(found)})",
        ),
    )
    grid.add_row("stalls", _stalls(found))
    pipeline, whole = (percent(each.fraction) for each in (summary.bubble.pipeline, summary.bubble.iteration))
    grid.add_row("bubble", f"{pipeline} of the pipeline, {whole} of the iteration")
    rates = summary.throughput
    tokens = "" if rates.tokens_per_s is None else f", {number(rates.tokens_per_s)} tokens/s"
    mfu = "" if summary.mfu is None else f", MFU {percent(summary.mfu)}"
    grid.add_row("throughput", f"{number(rates.microbatches_per_s)} microbatches/s{tokens}{mfu}")
    return grid


def _program(found: AgainstProgram) -> Text:
    same = found.iterations - len(found.others)
    where = f"all {found.iterations}" if not found.others else f"{same} of {found.iterations}"
    text = Text.assemble((found.name, "bold"), f" in {where} iterations")
    if found.first is not None:
        text.append(f"; first leaves it at {found.first}\n{found.first.excerpt}", style="bold red")
    return text


def _cut(found: Audit) -> str:
    """The iterations left out because the trace does not show when they ended; mostly the last one."""
    return f", {len(found.cut_iterations)} cut off by the record's end" if found.cut_iterations else ""


def _order(run: Audited) -> Text:
    detected = run.detected
    names = " = ".join(detected.names) or "none of the known schedules"
    whole = detected.iterations + len(detected.others)
    where = f"all {whole} iterations" if not detected.others else f"{detected.iterations} of {whole} iterations"
    text = Text.assemble((names, "bold"), f" in {where}")
    if detected.contradicts(run.label):
        text.append(f"; labelled {run.label}", style="bold red")
    elif run.label:
        text.append(f"; labelled {run.label}")
    return text


def _stalls(found: Audit) -> str:
    if not found.stalls:
        return "none"
    named = [f"{stall.iteration} (+{stall.excess_ns / 1e6:.0f} ms)" for stall in found.stalls[:_MOST_NAMED]]
    more = f" and {len(found.stalls) - _MOST_NAMED} more" if len(found.stalls) > _MOST_NAMED else ""
    places = dict.fromkeys(str(stall.term) for stall in found.stalls)
    return f"iteration {', '.join(named)}{more}; in: {', '.join(places)}"


def _parts(found: Audit) -> Table:
    table = plain_table("an iteration, in order", "ms", "spread", "%")
    known = {key: getattr(found.parts, key) for key in PARTS if getattr(found.parts, key) is not None}
    for key, times in known.items():
        share = 100 * times.median_ms / found.wall.median_ms
        table.add_row(PARTS[key], _ms(times.median_ms), _ms(times.spread_ms), f"{share:.1f}")
    return table


def _stages(run: Audited) -> Table:
    """A row per stage: its ops, and what its rank does besides."""
    times = {(each.rank, each.stage, each.op): each.times for each in run.audit.ops}
    ops = [op.name for op in Op if op.is_action and any(key[2] == op.name for key in times)]
    table = plain_table("stage")
    table.add_column("device", no_wrap=True)
    for title in (*(f"{op} ms" for op in ops), "optimizer", "use %"):
        table.add_column(title, justify="right", no_wrap=True)
    for rank in run.summary.ranks:
        for place, stage in enumerate(rank.stages):
            cells = [_spread(times.get((rank.rank, stage, op))) for op in ops]
            first = place == 0
            step = _median(times.get((rank.rank, -1, Op.OPTIMIZER.name))) if first else ""
            use = f"{100 * rank.utilization:.1f}"
            table.add_row(str(stage), rank.device if first else "", *cells, step, use if first else "")
    table.caption, table.caption_justify = "median ±robust spread", "left"
    return table


def _spread(times: Times | None) -> str:
    return "-" if times is None else f"{_ms(times.median_ms)} ±{_ms(times.spread_ms)}"


def _median(times: Times | None) -> str:
    return "-" if times is None else _ms(times.median_ms)


def _ms(value: float) -> str:
    """To the hundredth of a millisecond, which is what clocks and launches are good for; more only below that."""
    return f"{value:.2f}" if 0.005 <= value < 1 else number(value)


def _gaps(found: Audit) -> Table:
    """Messages between neighbouring ranks in both directions, then time between actions of a rank."""
    table = plain_table("gap ms", "to higher rank", "waits", "to lower rank", "waits")
    links: dict[tuple[int, int], tuple[list[GapTimes], list[GapTimes]]] = {}
    for gap in found.gaps:
        ends = (gap.source, gap.target)
        if gap.source != gap.target:
            links.setdefault((min(ends), max(ends)), ([], []))[gap.source > gap.target].append(gap)
    for (low, high), (down, up) in sorted(links.items()):
        for place, pair in enumerate(zip_longest(down, up)):  # two lines where both ways carry two ops
            name = "" if place else f"rank {low} - {high}"
            table.add_row(name, *(cell for gap in pair for cell in _gap(gap)))
    own = [f"{gap.source}: {_ms(gap.times.median_ms)}" for gap in found.gaps if gap.source == gap.target]
    if own:
        table.caption, table.caption_justify = f"between actions of one rank: {', '.join(own)}", "left"
    return table


def _gap(gap: GapTimes | None) -> tuple[str, str]:
    return ("-", "0") if gap is None else (f"{gap.op} {_spread(gap.times)}", str(gap.times.count))
