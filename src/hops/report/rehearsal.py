"""A rehearsal in words: what was predicted, what happened, how far it can be trusted, and what it proves."""

import os
from collections.abc import Iterator
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from hops.rehearse.rehearsal import PROVES, Rehearsal
from hops.report.tables import change, count, milliseconds, number, plain_table


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
