"""A goodput study on one screen: what was delivered, where the rest of the time went, what broke."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.faults.plan import FOREVER, Fault, FaultKind, FaultPlan
from hops.fleet.checkpoint_sweep import IntervalSweep
from hops.fleet.result import AcrossSeeds, GoodputSummary
from hops.metrics.losses import Losses
from hops.report.tables import FittedTable, bar, count, milliseconds, number, percent, plain_table
from hops.units import NS_PER_S, format_time

_BAR = 24
CAUSES: Mapping[str, str] = {
    "slow": "slow devices and links",
    "degraded": "devices missing",
    "stalled": "stalled until back",
    "redone": "work done again",
    "checkpoint": "checkpoints",
    "detection": "detection",
    "waiting": "waiting for devices",
    "restart": "restart",
    "reload": "reading state",
    "reconfigure": "reconfiguration",
}


def render_goodput(summary: GoodputSummary) -> RenderableType:
    """What `hops goodput` prints. Depends on the summary only; fits 80 columns."""
    return Group(_title(summary), Text(), _headline(summary), Text(), _losses(summary))


def _title(summary: GoodputSummary) -> Text:
    copies = f" in {summary.replicas} copies" if summary.replicas > 1 else ""
    spares = f" and {count(summary.spares, 'spare')}" if summary.spares else ""
    lives = count(summary.seeds, "life", "lives")
    return Text.assemble(
        ("goodput", "bold"),
        f": {count(summary.devices, 'device')}{copies}{spares}, {summary.policy}, {summary.days:g} days, {lives}",
    )


def _headline(summary: GoodputSummary) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    grid.add_row("goodput", Text.assemble((percent(summary.goodput), "bold"), _scatter(summary.goodput_spread)))
    grid.add_row(
        "effective time",
        percent(summary.effective_training_time_ratio) + _scatter(summary.effective_training_time_ratio_spread),
    )
    kept = f"{summary.iterations:,.0f} kept, {format_time(summary.iteration_ms / 1e3)} each without faults"
    grid.add_row("iterations", kept)
    if summary.tokens_per_s is not None:
        grid.add_row("tokens", f"{number(summary.tokens_per_s)} /s kept")
    grid.add_row("faults", _faults(summary))
    grid.add_row("interruptions", _interruptions(summary))
    grid.add_row("checkpoints", _checkpoints(summary))
    grid.add_row("downtime", _downtime(summary))
    grid.add_row("cost", _cost(summary))
    return grid


def _scatter(spread: AcrossSeeds) -> str:
    if spread.std is None:
        return ""
    return f" ± {100 * spread.std:.2f} ({100 * spread.lowest:.1f} to {100 * spread.highest:.1f})"


def _faults(summary: GoodputSummary) -> str:
    if not summary.faults.total:
        return "none"
    return ", ".join(f"{number(amount)} {kind}" for kind, amount in summary.faults.by_kind.items())


def _interruptions(summary: GoodputSummary) -> str:
    faults = summary.faults
    if faults.mean_time_between_interruptions_s is None:
        return "none"
    every = format_time(faults.mean_time_between_interruptions_s)
    lost = ", ".join(f"{number(lost)} by {cause}" for cause, lost in faults.lost_iterations_by_cause.items())
    return f"{number(faults.interruptions)}, one every {every}; iterations lost: {lost}"


def _checkpoints(summary: GoodputSummary) -> str:
    found = summary.checkpoint
    if found.interval_s is None:
        return "none"
    how = " (asynchronous)" if found.asynchronous else ""
    theory = "" if found.young_s is None or found.daly_s is None else _theory(found.young_s, found.daly_s)
    return f"every {format_time(found.interval_s)}, {format_time(found.pause_s)} each{how}{theory}"


def _theory(young_s: float, daly_s: float) -> str:
    return f"; best in theory {format_time(young_s)} (Young), {format_time(daly_s)} (Daly)"


def _downtime(summary: GoodputSummary) -> str:
    down = summary.downtime
    if not down.longest:
        return "none"
    worst = down.longest[0]
    copy = f" of copy {worst.replica}" if summary.replicas > 1 else ""
    return f"{format_time(down.per_device_s)} per device; most: {worst.device}{copy}, {format_time(worst.down_s)}"


def _cost(summary: GoodputSummary) -> str:
    cost = summary.cost
    text = f"{number(cost.total)} USD at {number(cost.per_hour)} per hour"
    if cost.per_million_tokens is None or cost.without_faults_per_million_tokens is None:
        return text
    best = number(cost.without_faults_per_million_tokens)
    return f"{text}; {number(cost.per_million_tokens)} per million tokens ({best} without faults)"


def _losses(summary: GoodputSummary) -> Table:
    table = plain_table("lost time", "hours", "%", "of the loss")
    table.columns[-1].justify = "left"
    lost = summary.wall_s - summary.productive_s
    ordered = sorted(summary.lost_s_by_cause.items(), key=lambda item: -item[1])
    for cause, seconds in ordered:
        if seconds:
            share = Text(f"{100 * seconds / summary.wall_s:.2f}")
            table.add_row(CAUSES[cause], f"{seconds / 3600:,.1f}", share, bar(seconds / lost, _BAR))
    total = Text(f"{100 * lost / summary.wall_s:.2f}", style="bold")
    table.add_row("all", f"{lost / 3600:,.1f}", total, "")
    return table


def render_policies(summaries: Mapping[str, GoodputSummary]) -> RenderableType:
    """Several recovery policies side by side."""
    titles = ("goodput\n%", "\n±", "effective\n%", "lost\nh", "iterations\nlost", "USD per\nMtoken")
    table = plain_table("", *titles)
    table.columns[0].min_width = max(map(len, summaries))
    best = max(summary.goodput for summary in summaries.values())
    for name, summary in summaries.items():
        price = summary.cost.per_million_tokens
        mark = "*" if summary.goodput == best and len(summaries) > 1 else " "
        std = summary.goodput_spread.std
        table.add_row(
            Text(name, style="bold"),
            f"{100 * summary.goodput:.2f}{mark}",
            "-" if std is None else f"{100 * std:.2f}",
            f"{100 * summary.effective_training_time_ratio:.2f}",
            f"{(summary.wall_s - summary.productive_s) / 3600:,.1f}",
            f"{summary.faults.lost_iterations:,.0f}",
            "-" if price is None else number(price),
        )
    return table


def render_sweep(sweep: IntervalSweep) -> RenderableType:
    """The sweep of the checkpoint interval, the best and theory's marked."""
    table = plain_table("interval", "goodput %", "±")
    nearest = min(sweep.points, key=lambda point: abs(point.interval_s - sweep.best_s))
    for point in sweep.points:
        mark = " <" if point is nearest else "  "
        error = "-" if point.error is None else f"{100 * point.error:.2f}"
        table.add_row(format_time(point.interval_s), f"{100 * point.goodput:.2f}{mark}", error)
    said = Text(
        f"best: {format_time(sweep.best_s)} with {percent(sweep.best_goodput)} (a curve through all points); "
        f"in theory {format_time(sweep.young_s)} (Young), {format_time(sweep.daly_s)} (Daly), "
        f"with a stop every {format_time(sweep.mtbf_s)} and {format_time(sweep.pause_s)} per checkpoint"
    )
    return Group(table, Text(), said)


FIRST = 20


def render_losses(lost: Losses, plan: FaultPlan) -> RenderableType:
    """One paragraph for under a run's summary."""
    windows = count(lost.faults, "window")
    parts = [f"faults   {count(len(plan), 'fault')} planned, in {windows} on ranks or between two of them"]
    if lost.pieces_of_work:
        parts.append(f"{milliseconds(int(lost.work_ns.sum()) / 1e6)} of work lost in {_pieces(lost)}, and done again")
    if lost.messages:
        parts.append(f"{count(lost.messages, 'message')} lost and sent again")
    if lost.down_ns.any():
        parts.append(f"devices down or slow for {milliseconds(int(lost.down_ns.sum()) / 1e6)}")
    return Text("\n" + "; ".join(parts))


def render_plan(plan: FaultPlan, *, first: int = FIRST) -> RenderableType:
    """How much of what a plan holds, by kind and by what it was drawn for, and the first faults of it."""
    if not plan:
        return Text("no faults")
    table = plain_table("faults of", "number", "targets", "first", "mean length", "never repaired")
    for (kind, family), faults in sorted(_by_kind(plan).items()):
        table.add_row(f"{kind}, {family}" if family else str(kind), *_row(faults))
    shown = plan.faults[:first]
    more = len(plan) - len(shown)
    tail = [Text(f"... and {more} more (--all shows them)", style="dim")] if more else []
    return Group(Text(count(len(plan), "fault"), style="bold"), table, Text(), _listed(shown), *tail)


def _pieces(lost: Losses) -> str:
    return count(lost.pieces_of_work, "piece")


def _by_kind(plan: FaultPlan) -> dict[tuple[FaultKind, str], list[Fault]]:
    """By kind, and the first word of the cause (device, host, nic ...)."""
    found: dict[tuple[FaultKind, str], list[Fault]] = defaultdict(list)
    for fault in plan:
        family, _, named = fault.cause.partition(" ")
        found[fault.kind, family if named else ""].append(fault)
    return found


def _row(faults: list[Fault]) -> Iterable[str]:
    lengths = [fault.end_ns - fault.start_ns for fault in faults if fault.end_ns < FOREVER]
    yield str(len(faults))
    yield str(len(Counter(fault.target for fault in faults)))
    yield _time(faults[0].start_ns)
    yield format_time(sum(lengths) / len(lengths) / NS_PER_S) if lengths else "-"
    yield str(len(faults) - len(lengths)) if len(lengths) < len(faults) else "-"


def _listed(faults: Iterable[Fault]) -> Table:
    table = FittedTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for title in ("from", "for", "what", "target", "cause"):
        table.add_column(
            title, header_style="dim", no_wrap=True, justify="right" if title in ("from", "for") else "left"
        )
    for fault in faults:
        length = "ever" if fault.end_ns >= FOREVER else _time(fault.end_ns - fault.start_ns)
        factor = f" x {fault.factor:g}" if fault.factor != 1 else ""
        table.add_row(_time(fault.start_ns), length, f"{fault.kind}{factor}", fault.target, fault.cause)
    return table


def _time(nanoseconds: int) -> str:
    return format_time(nanoseconds / NS_PER_S)
