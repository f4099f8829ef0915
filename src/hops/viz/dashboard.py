"""The dashboard: eight panels that say where an iteration's time and memory go."""

from pathlib import Path
from typing import TYPE_CHECKING

from hops.metrics import Run, RunFacts, Summary
from hops.trace import Trace
from hops.viz.board import LEFT_IN, PANEL_IN, Board, place_panel
from hops.viz.canvas import picture
from hops.viz.headline import summary_figures, what_ran
from hops.viz.panels import PANELS
from hops.viz.style import QUIET, TEXT_PT, TITLE_PT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
HEAD_IN = 0.7
SHEET_IN = (COLUMNS * PANEL_IN[0], HEAD_IN + -(-len(PANELS) // COLUMNS) * PANEL_IN[1])


def draw_dashboard(trace: Trace, summary: Summary, facts: RunFacts, path: Path) -> None:
    """Write the dashboard of a run as PNG or SVG. `summary` is `summarize(trace, facts)`.

    Raises UsageError for any other suffix, or if warm-up leaves no iteration.
    """
    board = Board(run=Run.of(trace, facts), summary=summary)
    with picture(path, width_in=SHEET_IN[0], height_in=SHEET_IN[1]) as figure:
        paint_dashboard(figure, board)


def paint_dashboard(figure: "Figure", board: Board) -> None:
    """Draw on an empty figure of the size SHEET_IN."""
    width, height = SHEET_IN
    figure.text(
        LEFT_IN / width, 1 - 0.32 / height, what_ran(board.run.trace.meta), fontsize=TITLE_PT, fontweight="bold"
    )
    figure.text(LEFT_IN / width, 1 - 0.54 / height, summary_figures(board.summary), fontsize=TEXT_PT, color=QUIET)
    for number, draw in enumerate(PANELS):
        row, column = divmod(number, COLUMNS)
        draw(place_panel(figure, column, row, SHEET_IN, HEAD_IN), board)
