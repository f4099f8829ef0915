"""What was measured beside what was simulated: an iteration and its parts, medians."""

from rich.console import RenderableType

from hops.metrics import Audit
from hops.metrics.audit import Times
from hops.report.audit import PARTS
from hops.report.tables import plain_table
from hops.report.wording import change


def render_beside(measured: Audit, simulated: Audit) -> RenderableType:
    """Iteration and parts of both, and how far the simulated one is off. Fits 80 columns."""
    table = plain_table("median of an iteration", "measured ms", "simulated ms", "off")
    table.add_row("iteration", *_cells(measured.wall, simulated.wall))
    for key, name in PARTS.items():
        known: list[Times] = [times for run in (measured, simulated) if (times := getattr(run.parts, key)) is not None]
        if len(known) == 2:
            table.add_row(f"  {name}", *_cells(*known))
    return table


def _cells(measured: Times, simulated: Times) -> tuple[str, str, str]:
    off = change(simulated.median_ms, measured.median_ms) if measured.median_ms else "-"
    return f"{measured.median_ms:,.2f}", f"{simulated.median_ms:,.2f}", off
