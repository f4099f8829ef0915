"""Faults in a terminal: what a plan holds, and what faults cost a run."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hops.faults import FOREVER, Fault, FaultKind, FaultPlan
from hops.metrics import Losses
from hops.report.tables import plain_table
from hops.report.wording import count, milliseconds
from hops.units import format_time

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
    yield format_time(sum(lengths) / len(lengths) / 1e9) if lengths else "-"
    yield str(len(faults) - len(lengths)) if len(lengths) < len(faults) else "-"


def _listed(faults: Iterable[Fault]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
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
    return format_time(nanoseconds / 1e9)
