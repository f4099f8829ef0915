"""A rehearsal in words: what was predicted, what happened, how far it can be trusted, and what it proves."""

import os
from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from hops.rehearse.experiment import APART, CaseRow, RankedPairs
from hops.rehearse.rehearsal import PROVES, Rehearsal
from hops.report.tables import change, count, milliseconds, number, percent, plain_table


def render_rehearsal(title: str, found: Rehearsal, *, runtime: str) -> RenderableType:
    """What `hops rehearse` prints."""
    head = Text.assemble((title, "bold"), f": {count(len(found.ranks), 'rank')} in {runtime}")
    return Group(head, *map(Text, _figures(found)), Text(), _by_rank(found), Text(), *map(Text, _verdict(found)))


def _figures(found: Rehearsal) -> Iterator[str]:
    measured = found.measured_ms
    predicted = found.simulated_ms
    clean = "clean iteration" if found.late_actions == 0 else "iteration"
    yield ""
    yield f"simulated  {milliseconds(predicted)} from the first F to the last backward"
    spread = f"p50 of {count(len(measured), clean)}, least {number(min(measured))}"
    yield f"measured   {milliseconds(median(measured))} ({spread}): {change(median(measured), predicted)}"


def _by_rank(found: Rehearsal) -> RenderableType:
    table = plain_table("rank (times in ms)", "busy", "simul.", "late", "lag", "order")
    for each in found.to_dict()["ranks"]:  # type: ignore[attr-defined]
        table.add_row(
            f"{each['rank']} {each['device']}",
            number(each["busy_ms"]),
            number(each["simulated_busy_ms"]),
            str(each["late_actions"]),
            number(each["worst_lag_ms"]),
            "equal" if each["order_equal"] else "OTHER",
        )
    return table


def _verdict(found: Rehearsal) -> Iterator[str]:
    ran = count(found.num_iterations, "iteration")
    if found.late_actions:
        yield (
            f"! no clean iteration in {ran}: the machine is too busy ({count(os.cpu_count() or 1, 'core')} for "
            f"{count(len(found.ranks), 'rank')}); the least disturbed has {count(found.late_actions, 'late action')}, "
            "and its time says little. Try again when less runs, or with longer times"
        )
    else:
        yield f"{len(found.kept)} of {ran} clean: no action came later than its device's time for it"
    if not found.order_equal:
        yield "! a rank executed another order than the program's: look at its trace"
    yield from PROVES


def render_experiment(rows: Sequence[CaseRow], pairs: RankedPairs) -> RenderableType:
    """What `hops bench rehearse` and `rehearse-hetero` print: a block per case, the fastest marked, and the ranking."""
    blocks: list[RenderableType] = []
    for case in dict.fromkeys(row.case for row in rows):
        mine = [row for row in rows if row.case == case]
        blocks += [Text(case, "bold"), _case(mine), Text()]
    return Group(*blocks, *map(Text, _in_all(rows, pairs)))


def _case(rows: Sequence[CaseRow]) -> RenderableType:
    table = plain_table("schedule", "simulated ms", "measured ms", "off", "late", "order")
    best, fastest = min(row.simulated_ms for row in rows), min(row.measured_ms for row in rows)
    for row in rows:
        table.add_row(
            row.schedule,
            number(row.simulated_ms) + (" *" if row.simulated_ms == best else "  "),
            number(row.measured_ms) + (" *" if row.measured_ms == fastest else "  "),
            change(row.measured_ms, row.simulated_ms),
            str(row.late) if row.late else "-",
            "equal" if row.order_equal else "OTHER",
        )
    return table


def _in_all(rows: Sequence[CaseRow], pairs: RankedPairs) -> Iterator[str]:
    clean = [abs(row.error) for row in rows if not row.late]
    ran = sum(row.order_equal for row in rows)
    yield f"{ran} of {len(rows)} executed their program's order; {len(clean)} had a clean iteration"
    if clean:
        yield f"clean: measured is {percent(sum(clean) / len(clean))} off on average, {percent(max(clean))} at most"
    yield (
        f"{pairs.agree} of {pairs.agree + len(pairs.differ)} pairs that the simulator sees more than {percent(APART)} "
        "apart were ranked alike"
    )
    yield from (f"! ranked otherwise: {pair}" for pair in pairs.differ)
