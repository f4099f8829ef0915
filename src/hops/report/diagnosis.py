"""Stragglers in words: what, since when, how slow, what it costs, and why that is believed."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from hops.diagnose.stragglers import Findings, Straggler
from hops.diagnose.what_if import Changes, WhatIf
from hops.report.tables import change, count, milliseconds, number, percent, plain_table
from hops.units import format_time


def render_stragglers(title: str, findings: Findings) -> RenderableType:
    """What `hops stragglers` prints: a paragraph for each, the most expensive first, and what could not be compared."""
    found = findings.stragglers
    head = Text.assemble((title, "bold"), f": {count(len(found), 'straggler')}")
    lines = [line for number, each in enumerate(found, start=1) for line in (Text(), *_paragraph(number, each))]
    return Group(head, *([] if found else _nothing(findings)), *lines, *_uncompared(findings, apart=bool(found)))


def _nothing(findings: Findings) -> Iterator[Text]:
    """What "no stragglers" stands on."""
    itself, peers = "it was at other times", "others of equal work"
    if findings.over_time and findings.compared:
        yield Text(f"nothing is slower than {itself}, or than {peers}")
    elif findings.over_time:
        yield Text(f"nothing is slower than {itself}; no rank could be compared with {peers}")
    elif findings.compared:
        yield Text(f"nothing is slower than {peers}; the run is too short to compare a rank with itself")
    else:
        yield Text("nothing could be compared: no rank with others of equal work, and the run is too short for itself")


def _uncompared(findings: Findings, *, apart: bool) -> Iterator[Text]:
    if findings.uncompared and apart:
        yield Text()
    for each in findings.uncompared:
        ranks = f"rank{'s' if len(each.ranks) > 1 else ''} {', '.join(map(str, each.ranks))}"
        yield Text(f"not compared with others: {ranks}: {each.why}; needed: {each.needed}", style="dim")


def _paragraph(number: int, found: Straggler) -> Iterator[Text]:
    names = " or ".join(found.names)
    ranks = f"rank{'s' if len(found.ranks) > 1 else ''} {', '.join(map(str, found.ranks))}"
    yield Text.assemble(
        f"{number}. {found.what} ", (names, "bold"), f" ({ranks}): {found.factor:.3g} times slower {_when(found)}"
    )
    yield Text(f"   cost: {_cost(found)}")
    yield Text(f"   evidence: {_evidence(found)}")


def _when(found: Straggler) -> str:
    since = "from the start" if found.since_ms is None else f"since {format_time(found.since_ms / 1e3)}"
    until = "" if found.until_ms is None else f" until {format_time(found.until_ms / 1e3)}"
    return f"{since}{until}"


def _cost(found: Straggler) -> str:
    if found.cost_ms is None or found.cost_share is None:
        return "unknown: the recorded order cannot be replayed"
    share = percent(found.cost_share)
    touched = count(found.iterations, "iteration")
    return f"{milliseconds(found.cost_ms)} of each iteration ({share}), in {touched}; from a replay without it"


def _evidence(found: Straggler) -> str:
    what = "messages" if found.what == "link" else "actions"
    times = f"{milliseconds(found.slow_ms)} instead of {milliseconds(found.usual_ms)} (median)"
    if found.against == "peers":
        return (
            f"{times}, over {found.measurements} {what}, {found.score:.0f} times the scatter of its peers; it may also "
            "have more work: compare with --spec"
        )
    return f"{times}, {found.measurements} {what} against {found.compared_with}, {found.score:.0f} standard errors"


def render_what_if(changes: Changes, found: Mapping[str, WhatIf]) -> RenderableType:
    """What `hops whatif` prints. The schedule that is fastest with the change is marked."""
    table = plain_table("", "iteration\nms", "with it\nms", "longer", "extra time of\nthe run, ms")
    best = min(each.changed_run_ms for each in found.values())
    for name, each in found.items():
        mark = "*" if each.changed_run_ms == best and len(found) > 1 else " "
        table.add_row(
            Text(name, style="bold"),
            number(each.iteration_ms),
            number(each.changed_iteration_ms) + mark,
            change(each.changed_run_ms, each.run_ms),
            number(each.changed_run_ms - each.run_ms),
        )
    return Group(Text("; ".join(_said(changes)), style="bold"), Text(), table)


def _said(changes: Changes) -> Iterator[str]:
    yield from (f"{name} slower by {factor:g}" for name, factor in changes.slow.items())
    yield from (f"{name} with {100 * part:g} % of its bandwidth" for name, part in changes.slow_links.items())
    yield from (f"{name} down for {format_time(seconds)}" for name, seconds in changes.down_s.items())
