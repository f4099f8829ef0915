"""How things look in a notebook: tables as HTML, with a small picture where there is one to draw.

`import hops` tells IPython of it where that runs: the rooms of these types know nothing of pictures.
"""

import html
import io
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np

from hops.metrics.summary import RunFacts, Summary
from hops.planner.result import PlanReport
from hops.program.action import Op
from hops.spec.spec import Spec
from hops.spec.text import dump
from hops.trace.trace import COLUMNS, Stream, Trace
from hops.viz.canvas import blank
from hops.viz.headline import key_table, what_ran
from hops.viz.html.answers import held_of
from hops.viz.html.parts import Cell, Table
from hops.viz.html.results import plan_table
from hops.viz.look import Look
from hops.viz.timeline import paint_timeline, timeline_scene, timeline_sheet
from hops.viz.window import choose_window

_MOST_ROWS: Final = 8
_WIDTH_IN: Final = 9.0


def as_html(value: Any) -> str:
    """The HTML of a spec, a trace, a summary, a run or plans."""
    kinds: dict[str, Callable[[Any], str]] = {
        "Spec": spec_html,
        "Trace": trace_html,
        "Summary": summary_html,
        "SimulatedRun": run_html,
        "PlanReport": plans_html,
    }
    return kinds[type(value).__name__](value)


def spec_html(spec: Spec) -> str:
    """One line, and every key with its value to unfold."""
    text = html.escape(dump(spec))
    return f"<details><summary>{html.escape(repr(spec))}</summary><pre>{text}</pre></details>"


def trace_html(trace: Trace) -> str:
    """The first rows, ops and streams by name, and the picture."""
    head = trace.where(np.arange(len(trace)) < _MOST_ROWS)
    names = {"stream": [Stream(each).name for each in head.stream], "op": [Op(each).name for each in head.op]}
    rows = zip(*(names[name] if name in names else getattr(head, name).tolist() for name in COLUMNS), strict=True)
    more = f"<p>{_MOST_ROWS} of {len(trace):,} rows</p>" if len(trace) > _MOST_ROWS else ""
    return f"<b>{html.escape(repr(trace))}</b>{_table(tuple(COLUMNS), list(rows))}{more}{_picture(trace, RunFacts())}"


def run_html(run: Any) -> str:
    """What ran, and the timeline with memory."""
    return f"<b>{html.escape(what_ran(run.trace.meta))}</b>{_picture(run.trace, run.facts)}"


def summary_html(summary: Summary) -> str:
    """Key figures, and a line for each rank."""
    ranks: list[tuple[Cell, ...]] = [
        (
            rank.rank,
            rank.device,
            f"{100 * rank.utilization:.1f} %",
            *(f"{getattr(rank.idle_ms, each.name):.1f}" for each in fields(rank.idle_ms)),
            "" if rank.memory is None else held_of(rank.memory),
        )
        for rank in summary.ranks
    ]
    causes = [each.name.replace("_", " ") for each in fields(summary.ranks[0].idle_ms)]
    heads = ("rank", "device", "busy", *(f"{cause} ms" for cause in causes), "peak memory")
    return (
        f"<b>{html.escape(repr(summary))}</b><div style='display:flex;gap:2em;flex-wrap:wrap'>"
        f"{_table(('figure', 'value'), key_table(summary))}{_table(heads, ranks)}</div>"
    )


def plans_html(report: PlanReport) -> str:
    """The plans, best first."""
    table: Table = plan_table(report)
    heads = tuple(f"{column.name} {column.unit}".strip() for column in table.columns)
    rows = [
        tuple(f"{cell:.2f}" if isinstance(cell, float) else "" if cell is None else cell for cell in row)
        for row in table.rows
    ]
    return f"<b>{html.escape(repr(report))}</b>{_table(heads, rows)}<p>{html.escape(table.note)}</p>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape('' if cell is None else str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(trace: Trace, facts: RunFacts) -> str:
    """The timeline as SVG, without what differs from run to run."""
    scene = timeline_scene(trace, facts, choose_window(trace, facts), look=Look(width_in=_WIDTH_IN))
    sheet = timeline_sheet(scene)
    text = io.StringIO()
    with blank(width_in=sheet.width_in, height_in=sheet.height_in) as figure:
        paint_timeline(figure, scene, sheet)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
