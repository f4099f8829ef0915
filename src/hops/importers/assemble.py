"""Events from outside become a trace, once they have held what every run of a pipeline holds.

Checked, in this order: no event twice; every stage on one rank; no microbatch beyond
as many as there are; iterations one after the other; every action of every
microbatch there; nothing computed before its input was made. What is wrong is named with file and line.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hops.errors import TraceError
from hops.importers.checks import Checks
from hops.importers.clocks import Order, clock_offsets
from hops.importers.events import EventFilter, Events, Mask, Table, name_of
from hops.program.action import Op
from hops.trace.trace import COLUMNS, Stream, Trace, TraceMeta, longest_ns

_TAKEN = ("iteration", "rank", "stage", "op", "microbatch", "pair", "start_ns", "end_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the files say besides events.

    Attributes:
        schedule: the name it was labelled with, "" if none.
        devices, hosts: by rank.
    """

    schedule: str = ""
    devices: tuple[str, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A trace, its times counted from the first start; that start on the events' own clock; and what was done to them.

    `notes`: sentences on clocks that were set back.
    """

    trace: Trace
    origin_ns: int
    notes: tuple[str, ...]


def assemble(events: Events, origin: Origin, sieve: EventFilter, *, align_clocks: bool = False) -> Assembled:
    """The trace of the events; `align_clocks`: with the clocks of hosts set back by their estimated offsets.

    Raises TraceError, naming file and line, for anything that no run can have done.
    """
    table = {name: events.column(name) for name in _TAKEN}
    keep = each_once(events, sieve)
    rank_of_stage = _rank_of_stage(events, table)
    checks = Checks(events, table, rank_of_stage, sieve)
    for check in (checks.numbered, checks.in_turn, checks.complete):
        keep = _some(events, check(keep))
    notes = _set_back(checks, table, keep, origin) if align_clocks else ()
    keep = _some(events, checks.caused(keep))
    start = int(table["start_ns"][keep].min())
    _check_length(table, keep, start, events)
    microbatches = int(table["microbatch"][keep].max()) + 1
    meta = TraceMeta(
        source="measured",
        schedule=origin.schedule,
        num_microbatches=microbatches,
        rank_of_stage=rank_of_stage,
        devices=origin.devices,
        hosts=origin.hosts,
        routes={},
    )
    return Assembled(trace=_trace(table, keep, start, meta), origin_ns=start, notes=notes)


def _check_length(table: Table, keep: Mask, start: int, events: Events) -> None:
    most = longest_ns(int(table["rank"].max()) + 1)
    if int(table["end_ns"][keep].max()) - start > most:
        row = int(np.flatnonzero(keep)[np.argmax(table["end_ns"][keep])])
        raise TraceError(
            f"{events.where(row)}: {name_of(table, row)} ends {most / 1e9:.0f} s or more after the first start, "
            "expected a run that is shorter: its clock is wrong, or times have another unit"
        )


def _some(events: Events, keep: Mask) -> Mask:
    if not keep.any():
        raise TraceError(f"{events.files[0].parent}: nothing is left to read; expected at least one whole iteration")
    return keep


def _set_back(checks: Checks, table: dict[str, NDArray[np.integer]], keep: Mask, origin: Origin) -> tuple[str, ...]:
    """Replace the times in the table by those of the first host's clock; ranks of one host share theirs."""
    names = list(dict.fromkeys(origin.hosts))
    clock = np.array([names.index(host) for host in origin.hosts])[table["rank"]]
    pairs = [(maker, mine) for _, mine, maker in checks.dependencies(keep)]
    before, after = (np.concatenate(rows) for rows in zip(*pairs, strict=True))
    apart = clock[before] != clock[after]
    before, after = before[apart], after[apart]
    order = Order(
        before=clock[before], end_ns=table["end_ns"][before], after=clock[after], start_ns=table["start_ns"][after]
    )
    found = clock_offsets(order, names)
    for name in ("start_ns", "end_ns"):
        table[name] = table[name] - found.ahead_ns[clock]
    return found.notes(names)


def _trace(table: Table, keep: Mask, start: int, meta: TraceMeta) -> Trace:
    """Rows in the order of `Trace.from_columns`, column by column: a long run has each of them once in memory."""
    rows = np.flatnonzero(keep)
    rows = rows[np.lexsort([table[name][rows] for name in ("rank", "end_ns", "start_ns")])]
    op = table["op"][rows]
    fixed = {"stream": Stream.COMPUTE, "bytes": 0}
    columns: dict[str, NDArray[Any]] = {
        name: np.full(len(rows), value, dtype=COLUMNS[name]) for name, value in fixed.items()
    }
    columns |= {
        name: table[name][rows].astype(COLUMNS[name], copy=False) for name in ("iteration", "rank", "microbatch")
    }
    columns |= {name: table[name][rows] - start for name in ("start_ns", "end_ns")}
    columns["peer"] = np.where(table["pair"][rows], columns["rank"], -1).astype(COLUMNS["peer"])
    columns["op"] = op
    columns["stage"] = np.where(op <= Op.W, table["stage"][rows], -1).astype(COLUMNS["stage"])
    return Trace(**columns, meta=meta)


def each_once(events: Events, sieve: EventFilter) -> Mask:
    """Which events stay if of those of one action only the first does. Raises TraceError for a second one."""
    table = {name: events.column(name) for name in _TAKEN}
    order = np.lexsort([table[name] for name in ("microbatch", "op", "stage", "rank", "iteration")])
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for name in ("iteration", "rank", "stage", "op", "microbatch"):
        same &= np.diff(table[name][order]) == 0
    keep = np.ones(len(order), dtype=bool)
    for place in np.flatnonzero(same).tolist():
        first, again = int(order[place]), int(order[place + 1])
        keep[again] = False
        sieve.drop(
            "duplicate event",
            f"{events.where(again)}: duplicate event: {name_of(table, again)} is already at {events.where(first)}; "
            "expected each once: delete one of the lines",
        )
    return keep


def _rank_of_stage(events: Events, table: Table) -> tuple[int, ...]:
    action = np.flatnonzero(table["op"] <= Op.W)
    if not len(action):
        raise TraceError(f"{events.files[0].parent}: no forward or backward in any file; expected a pipeline's events")
    stage, rank = table["stage"][action], table["rank"][action]
    present, first = np.unique(stage, return_index=True)
    gap = np.flatnonzero(present != np.arange(len(present)))
    if len(gap):
        raise TraceError(
            f"{events.files[0].parent}: no event of stage {gap[0]}, but some of stage {present[-1]} "
            f"({events.where(int(action[first[-1]]))}), expected stages from 0 on without a gap: add the missing file"
        )
    owner = rank[first]
    wrong = np.flatnonzero(rank != owner[stage])
    if len(wrong):
        row, at = int(action[wrong[0]]), int(stage[wrong[0]])
        raise TraceError(
            f"{events.where(row)}: stage {at} on rank {rank[wrong[0]]}: got it on rank {owner[at]} as well "
            f"({events.where(int(action[first[at]]))}), expected each stage on one rank: give the "
            "files of one replica of the pipeline"
        )
    return tuple(owner.tolist())
