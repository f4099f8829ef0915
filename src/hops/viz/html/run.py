"""What a page knows about one run: rows, gaps, critical paths and memory as columns, names and figures as text.

Times are nanoseconds since the start of the first iteration that is shown. Rows are sorted by rank, stream and start.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hops.faults.plan import Fault
from hops.metrics.audit import Audit, audit
from hops.metrics.bubble import BubbleCause
from hops.metrics.critical_path import PathTerm, critical_steps
from hops.metrics.gaps import IdleGaps, idle_gaps
from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations
from hops.metrics.memory import StepFunction, memory_over_time
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts, Summary
from hops.trace.trace import Stream, Trace
from hops.viz.headline import count, summary_figures, what_ran
from hops.viz.html.columns import ColumnStore

MOST_ROWS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownRun:
    """One run of a page.

    Attributes:
        name: what it is called beside others.
        trace, facts: the run.
        summary, measured, gaps, audit: what is known of it.
        notes: what its reader should know, such as events that were dropped.
        faults: what broke before the run's end, by name.
    """

    name: str
    trace: Trace
    facts: RunFacts
    summary: Summary
    measured: Iterations
    gaps: IdleGaps
    audit: Audit
    notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        trace: Trace,
        facts: RunFacts,
        notes: tuple[str, ...] = (),
        faults: tuple[Fault, ...] = (),
    ) -> "ShownRun":
        """Summarize a run for a page. Raises UsageError if warm-up leaves no iteration."""
        measured = Iterations.of(trace, facts)
        summary = summarize(trace, facts)
        return cls(
            name=name,
            trace=trace,
            facts=facts,
            summary=summary,
            measured=measured,
            gaps=idle_gaps(measured),
            audit=audit(measured),
            notes=notes,
            faults=tuple(fault for fault in faults if fault.start_ns < int(trace.end_ns.max(initial=0))),
        )


def run_data(shown: ShownRun, store: ColumnStore) -> dict[str, Any]:
    """Everything the page's script needs to draw it; arrays go into the store."""
    run, meta = shown.measured, shown.trace.meta
    window = _window(run)
    rows, page_of = _rows(shown, window)
    steps, terms = _path(run, window, page_of)
    held = memory_over_time(run)
    return {
        "name": shown.name,
        "title": what_ran(meta),
        "figures": summary_figures(shown.summary),
        "notes": [*shown.notes, *_left_out(run, window)],
        "ranks": meta.num_ranks,
        "microbatches": meta.num_microbatches,
        "rank_of_stage": list(meta.rank_of_stage),
        "devices": list(meta.devices),
        "links": [
            [source, target, [meta.links[link].name for link in route]]
            for (source, target), route in sorted(meta.routes.items())
        ],
        "iterations": _iterations(run, window),
        "rows": store.add_all(
            {
                "rank": rows.rank,
                "stream": rows.stream,
                "iteration": rows.iteration,
                "stage": rows.stage,
                "op": rows.op,
                "microbatch": rows.microbatch,
                "peer": rows.peer,
                "start": rows.start_ns - window.origin_ns,
                "length": rows.duration_ns,
                "bytes": rows.bytes,
            },
            steps=("rank", "start"),
        ),
        "gaps": _gaps(shown.gaps, window, page_of, store),
        "path": store.add_all(steps, steps=("start",)),
        "terms": [str(term) for term in terms],
        "pieces": [term.piece.value for term in terms],
        "memory": [_held(step, window, store) for step in held],
        "capacity": list(shown.facts.memory_bytes),
        "static": [step.initial for step in held],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """Which of the iterations that count are shown: as many as hold MOST_ROWS rows, the first in any case."""

    count: int
    origin_ns: int
    end_ns: int

    def holds(self, start: Ints) -> NDArray[np.bool_]:
        """Whether something that starts then is shown."""
        return np.asarray((start >= self.origin_ns) & (start < self.end_ns))


def _window(run: Iterations) -> _Shown:
    total = np.cumsum(np.bincount(run.index, minlength=run.num_iterations))
    count = max(1, int(np.searchsorted(total, MOST_ROWS, side="right")))
    last = run.trace.end_ns[run.index < count].max()
    return _Shown(count=count, origin_ns=int(run.start_ns[0]), end_ns=int(max(last, run.end_ns[count - 1])))


def _left_out(run: Iterations, window: _Shown) -> list[str]:
    notes = []
    if run.facts.warmup_iterations:
        notes.append(f"Left out: {count(run.facts.warmup_iterations, 'iteration')} of warm-up.")
    if window.count < run.num_iterations:
        notes.append(
            f"The timeline shows the first {window.count} of {run.num_iterations} iterations; figures count all."
        )
    return notes


def _iterations(run: Iterations, window: _Shown) -> list[dict[str, int]]:
    kept = slice(0, window.count)
    return [
        {"number": number, "start": start - window.origin_ns, "end": end - window.origin_ns, "pipeline_end": done}
        for number, start, end, done in zip(
            run.iterations[kept].tolist(),
            run.start_ns[kept].tolist(),
            run.end_ns[kept].tolist(),
            (run.pipeline_end_ns[kept] - window.origin_ns).tolist(),
            strict=True,
        )
    ]


def _rows(shown: ShownRun, window: _Shown) -> tuple[Trace, Ints]:
    """The rows of the page in its order, and for every row of the measured trace its place there (-1: not shown)."""
    run, trace = shown.measured, shown.trace
    counted = np.flatnonzero(run.index < window.count)
    broken = np.flatnonzero(
        np.isin(trace.stream, (Stream.FAULT, Stream.LOST))
        & (trace.end_ns > window.origin_ns)
        & (trace.start_ns < window.end_ns)
    )
    kept, faults = run.trace.where(_mask(counted, len(run.trace))), trace.where(_mask(broken, len(trace)))
    columns = {
        name: np.concatenate([getattr(kept, name), getattr(faults, name)]) for name in Trace.__slots__ if name != "meta"
    }
    order = np.lexsort((columns["start_ns"], columns["stream"], columns["rank"]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    page_of = np.full(len(run.trace) + 1, -1, dtype=np.int64)  # the last stands for row -1
    page_of[counted] = place[: len(counted)]
    return Trace(**{name: column[order] for name, column in columns.items()}, meta=trace.meta), page_of


def _mask(rows: Ints, size: int) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask


def _gaps(gaps: IdleGaps, window: _Shown, page_of: Ints, store: ColumnStore) -> dict[str, Any]:
    """Gaps that start in what is shown; causes as whole nanoseconds."""
    kept = window.holds(gaps.start_ns)
    causes = {cause.value: np.rint(gaps.by_cause[cause][kept]).astype(np.int64) for cause in BubbleCause}
    return store.add_all(
        {
            "rank": gaps.rank[kept],
            "start": gaps.start_ns[kept] - window.origin_ns,
            "length": (gaps.end_ns - gaps.start_ns)[kept],
            "row": page_of[gaps.row[kept]],
            "source": page_of[gaps.source[kept]],
            "ready": (gaps.ready_ns - gaps.start_ns)[kept],
            "holder": gaps.holder[kept],
            "held": gaps.held_ns[kept],
            **causes,
        },
        steps=("rank", "start"),
    )


def _path(run: Iterations, window: _Shown, page_of: Ints) -> tuple[dict[str, Ints], list[PathTerm]]:
    """The critical paths of what is shown, step after step, and the terms that steps point to."""
    steps = [step for path in critical_steps(run)[: window.count] for step in path if step.end_ns > step.start_ns]
    terms = list(dict.fromkeys(step.term for step in steps))
    number = {term: index for index, term in enumerate(terms)}
    columns = {
        "start": np.array([step.start_ns - window.origin_ns for step in steps], dtype=np.int64),
        "length": np.array([step.end_ns - step.start_ns for step in steps], dtype=np.int64),
        "row": page_of[np.array([step.row for step in steps], dtype=np.int64)],
        "term": np.array([number[step.term] for step in steps], dtype=np.int64),
    }
    return columns, terms


def _held(step: StepFunction, window: _Shown, store: ColumnStore) -> dict[str, Any]:
    """What a rank holds over time: bytes from each moment on."""
    shown = step.at_ns < window.end_ns
    return store.add_all(
        {"at": step.at_ns[shown] - window.origin_ns, "bytes": step.value[shown]}, steps=("at", "bytes")
    )
