"""A page is put together: style, scripts, library and data in one file that needs nothing else."""

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from hops.errors import UsageError
from hops.files import atomic_write
from hops.program.action import Op
from hops.trace.trace import Stream
from hops.viz.html.answers import answers
from hops.viz.html.columns import ColumnStore
from hops.viz.html.parts import Answer, Part, part_data
from hops.viz.html.run import ShownRun, run_data
from hops.viz.html.run_parts import parts_of_all, parts_of_run
from hops.viz.style import CAUSES, OPS

FORMAT: Final = "hops-report/1"
SCRIPTS: Final = (
    "data.js", "words.js", "lanes.js", "overlays.js", "timeline.js", "memory.js", "parts.js", "details.js", "page.js"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything on one page.

    Attributes:
        title: of the page.
        runs: with a timeline each; all have the same time axis.
        answers: cards at the top.
        parts: of the whole: between the timelines and what belongs to single runs.
        notes: what the reader should know.
    """

    title: str
    runs: tuple[ShownRun, ...] = ()
    answers: tuple[Answer, ...] = ()
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()


def report_of_runs(title: str, runs: Sequence[ShownRun], notes: Sequence[str] = ()) -> Report:
    """A report on one run, or on several side by side; the first is the one that others are compared with."""
    names = [shown.name for shown in runs]
    if len(set(names)) != len(names):
        raise UsageError(f"runs of a report: got the names {', '.join(names)}, expected different ones")
    return Report(
        title=title,
        runs=tuple(runs),
        answers=tuple(answers(runs)),
        parts=tuple(parts_of_all(runs)) if len(runs) > 1 else (),
        notes=tuple(notes),
    )


def check_path(path: Path) -> None:
    """Raise UsageError unless the name ends in .html."""
    if path.suffix.lower() != ".html":
        raise UsageError(f"cannot write the report {path}: expected a name that ends in .html; rename it")


def write_report(report: Report, path: Path) -> None:
    """Write the page, whole or not at all. Raises UsageError unless `path` ends in .html."""
    check_path(path)
    with atomic_write(path) as out:
        out.write(render_report(report))


def render_report(report: Report) -> str:
    """The page as text: the same report gives the same bytes."""
    store = ColumnStore()
    data = _data(report, store)
    scripts = "\n".join(f"<script>\n{_asset(name)}</script>" for name in ("uPlot.iife.min.js", *SCRIPTS))
    return _asset("page.html").format(
        title=html.escape(report.title),
        licence=_asset("uPlot.LICENSE"),
        style=_asset("uPlot.min.css") + _asset("page.css"),
        data=_in_script(json.dumps(data, allow_nan=False, separators=(",", ":"))),
        columns=store.text(),
        scripts=scripts,
    )


def _data(report: Report, store: ColumnStore) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "title": report.title,
        "notes": list(report.notes),
        "ops": [{"name": op.name, "label": OPS[op].label, "fill": OPS[op].fill, "text": OPS[op].text} for op in Op],
        "streams": {stream.name: int(stream) for stream in Stream},
        "causes": [{"key": key, "name": style.label, "colour": style.fill} for key, style in CAUSES.items()],
        "answers": [asdict(answer) for answer in report.answers],
        "parts": [part_data(part) for part in report.parts],
        "runs": [
            {**run_data(shown, store), "parts": [part_data(part) for part in parts_of_run(shown, number)]}
            for number, shown in enumerate(report.runs)
        ],
    }


def _in_script(text: str) -> str:
    """JSON that cannot end the script element that it stands in."""
    return text.replace("<", "\\u003c")


@cache
def _asset(name: str) -> str:
    return files("hops.viz.html").joinpath("assets", name).read_text(encoding="utf-8")
