"""The list of all schedules: what each comes to on a small pipeline, what it needs, what it is."""

from inspect import getdoc
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from hops.report.tables import plain_table
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import CHOOSERS
from hops.schedules.figures import ScheduleFigures, figures
from hops.spec.schedule import ScheduleChoice

Row = dict[str, Any]


def schedule_rows(num_ranks: int, num_microbatches: int) -> list[Row]:
    """One row per schedule, in order of their names; figures are None where `no_figures` says why."""
    return [_row(name, num_ranks, num_microbatches) for name in sorted(SCHEDULERS.names())]


def _row(name: str, num_ranks: int, num_microbatches: int) -> Row:
    family = SCHEDULERS.get(name)
    found = "they depend on what it chooses" if name in CHOOSERS else _figures_of(name, num_ranks, num_microbatches)
    known = found if isinstance(found, ScheduleFigures) else None
    return {
        "name": name,
        "bubble_fraction": known and known.bubble_fraction,
        "peak_microbatches": known and known.peak_microbatches,
        "messages_on_critical_path": known and known.messages,
        "copies": known and known.copies,
        "no_figures": None if isinstance(found, ScheduleFigures) else found,
        "needs": family.needs,
        "parameters": ScheduleChoice(name=name).defaults(),
        "what": " ".join((getdoc(family) or "").partition("\n\n")[0].split()),
    }


def _figures_of(name: str, num_ranks: int, num_microbatches: int) -> ScheduleFigures | str:
    try:
        return figures(name, num_ranks, num_microbatches)
    except Exception as error:  # noqa: BLE001 (a plug-in's own fault, which is its row's and no other's)
        return f"{type(error).__name__}: {error}"


def schedule_table(rows: list[Row], num_ranks: int, num_microbatches: int) -> RenderableType:
    """What `hops list schedules` prints."""
    table = plain_table("schedule", "bubble\n%", "in\nflight", "laten-\ncies")
    table.add_column("what it is; what it needs; its parameters")
    table.caption = (
        f"{num_ranks} ranks, {num_microbatches} microbatches (-p and -m for others), F = I = W: bubble of the whole "
        "pipeline; most activations that a rank holds, in microbatches, W keeping half; messages on the critical path"
    )
    table.caption_justify = "left"
    for row in rows:
        table.add_row(row["name"], *_figures(row), Text("\n".join(_sentences(row))))
    return table


def _figures(row: Row) -> tuple[str, str, str]:
    if row["no_figures"] is not None:
        return "-", "-", "-"
    return (
        f"{100 * row['bubble_fraction']:.1f}",
        f"{row['peak_microbatches']:.3g}",
        str(row["messages_on_critical_path"]),
    )


def _sentences(row: Row) -> list[str]:
    """The lines of the last column."""
    lines = [row["what"]]
    if row["needs"]:
        lines.append(f"Needs: {row['needs']}.")
    if (row["copies"] or 1) > 1:
        lines.append(f"Holds every weight {row['copies']} times.")
    if row["parameters"]:
        lines.append(", ".join(f"{key}: {_yaml(value)}" for key, value in row["parameters"].items()))
    if row["no_figures"] is not None:
        lines.append(f"No figures: {row['no_figures']}.")
    return lines


def _yaml(value: object) -> str:
    """A default as one writes it into a spec."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
