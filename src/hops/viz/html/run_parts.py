"""The tables, bars and waterfalls of runs: one set per run, and what tells several apart."""

from collections.abc import Sequence

from hops.faults.plan import FOREVER
from hops.metrics.critical_path import Piece
from hops.metrics.difference import Difference, break_down, difference
from hops.metrics.summary import RankSummary, Summary
from hops.viz.headline import key_table
from hops.viz.html.answers import waited_for_ms
from hops.viz.html.parts import Column, FallStep, Part, Show, Stack, StackPart, Table, Waterfall
from hops.viz.html.run import ShownRun
from hops.viz.style import BUSY, CAUSES

_GIB = 1 << 30
PIECES = {
    Piece.COMPUTE: "computing",
    Piece.MESSAGE: "messages",
    Piece.BETWEEN: "between actions of a rank",
    Piece.REDUCE: "pipeline's end to optimizer",
    Piece.OPTIMIZER: "optimizer",
    Piece.HOST: "until the next iteration",
}
_MOST_CHANGES = 10


def parts_of_run(shown: ShownRun, number: int) -> list[Part]:
    """What one run's tab shows."""
    summary = shown.summary
    parts: list[Part] = [_bubble(summary, number), _consists_of(shown, number), _ranks(shown, number)]
    if shown.faults:
        parts.append(_faults(shown))
    parts.append(_stages(summary))
    if summary.links:
        parts.append(_links(summary))
    parts.append(_figures(summary))
    return parts


def parts_of_all(runs: Sequence[ShownRun]) -> list[Part]:
    """What several runs have in common and what not: all figures side by side, and each difference to the first."""
    parts: list[Part] = [_side_by_side(runs)]
    first = runs[0]
    begin = break_down(first.audit)
    for number, other in enumerate(runs[1:], start=1):
        found = difference(begin, break_down(other.audit))
        parts.append(_changes(found, first.name, other.name, number))
    return parts


def _bubble(summary: Summary, number: int) -> Stack:
    parts = (
        StackPart(key="busy", name=BUSY.label, colour=BUSY.fill),
        *(StackPart(key=key, name=style.label, colour=style.fill) for key, style in CAUSES.items()),
    )
    values = tuple((rank.busy_ms, *(getattr(rank.idle_ms, key) for key in CAUSES)) for rank in summary.ranks)
    return Stack(
        title="What the ranks' time goes into",
        unit="ms per iteration",
        parts=parts,
        names=tuple(f"rank {rank.rank}" for rank in summary.ranks),
        values=values,
        note="Click a cause to see its gaps in the timeline. Idle time has the cause that its wait ends at.",
        show=Show(run=number),
    )


def _consists_of(shown: ShownRun, number: int) -> Waterfall:
    """The mean iteration along its critical path, piece by piece."""
    broken = break_down(shown.audit)
    steps, at = [], 0.0
    for piece, name in PIECES.items():
        terms = [term for term in broken.terms_ms if term.piece is piece]
        spent = sum(broken.terms_ms[term] for term in terms)
        if spent:
            steps.append(FallStep(name=name, start=at, change=spent, terms=tuple(str(term) for term in terms)))
            at += spent
    if broken.stalls_ms:
        steps.append(FallStep(name="stalls", start=at, change=broken.stalls_ms))
    steps.append(FallStep(name="iteration", start=0.0, change=broken.iteration_ms, whole=True, terms=("*",)))
    return Waterfall(
        title="What an iteration consists of, along its critical path",
        unit="ms",
        steps=tuple(steps),
        note="The chain of work and waits that fills the iteration: only what lies on it makes it shorter. "
        "Click a bar to see its pieces in the timeline.",
        show=Show(run=number),
    )


def _changes(found: Difference, first: str, second: str, number: int) -> Waterfall:
    changed = [change for change in found.changes if abs(change.change_ms) >= 1e-6]
    steps = [FallStep(name=first, start=0.0, change=found.first.iteration_ms, whole=True)]
    at = found.first.iteration_ms
    for change in changed[:_MOST_CHANGES]:
        named = () if change.term is None else (str(change.term),)
        steps.append(FallStep(name=str(change), start=at, change=change.change_ms, terms=named))
        at += change.change_ms
    rest = changed[_MOST_CHANGES:]
    if rest:
        total = sum(change.change_ms for change in rest)
        terms = tuple(str(change.term) for change in rest if change.term is not None)
        steps.append(FallStep(name=f"{len(rest)} others", start=at, change=total, terms=terms))
    steps.append(FallStep(name=second, start=0.0, change=found.second.iteration_ms, whole=True))
    return Waterfall(
        title=f"From {first} to {second}: where the iteration times differ",
        unit="ms",
        steps=tuple(steps),
        note="Along the critical paths of both runs. Where the path leads through other ranks, both show: "
        "less time there, more here. Click a bar to see its pieces in the timelines.",
        show=Show(run=number),
    )


def _side_by_side(runs: Sequence[ShownRun]) -> Table:
    tables = [dict(key_table(shown.summary)) for shown in runs]
    names = list(dict.fromkeys(name for table in tables for name in table))
    return Table(
        title="Side by side",
        columns=(Column(name="figure"), *(Column(name=shown.name) for shown in runs)),
        rows=tuple((name, *(table.get(name) for table in tables)) for name in names),
    )


def _ranks(shown: ShownRun, number: int) -> Table:
    waited = waited_for_ms(shown).tolist()
    columns = (
        Column(name="rank"),
        Column(name="device"),
        Column(name="stages"),
        Column(name="busy", unit="%", digits=1, bar=True),
        Column(name="computing", unit="ms", digits=1),
        Column(name="others wait for it", unit="ms", digits=1),
        Column(name="exposed communication", unit="ms", digits=1),
        Column(name="most microbatches in flight"),
        Column(name="peak memory", unit="GiB", digits=2),
        Column(name="of", unit="GiB", digits=1),
    )
    return Table(
        title="Ranks",
        columns=columns,
        rows=tuple((*_rank(rank, waited[rank.rank]), *_peak(rank)) for rank in shown.summary.ranks),
        note="Per iteration. Click a heading to sort, a row to see the rank in the timeline.",
        shows=tuple(Show(run=number, rank=rank.rank) for rank in shown.summary.ranks),
    )


def _rank(rank: RankSummary, waited: float) -> tuple[str | float | int | None, ...]:
    stages = ", ".join(str(stage) for stage in rank.stages)
    return (
        rank.rank,
        rank.device,
        stages,
        100 * rank.utilization,
        rank.busy_ms,
        waited,
        rank.exposed_ms,
        rank.in_flight_peak,
    )


def _peak(rank: RankSummary) -> tuple[float | None, float | None]:
    if rank.memory is None:
        return None, None
    capacity = rank.memory.capacity_bytes
    return rank.memory.peak_bytes / _GIB, None if capacity is None else capacity / _GIB


def _faults(shown: ShownRun) -> Table:
    """Times as the page counts them, from the first iteration that is shown."""
    origin = int(shown.measured.start_ns[0])
    return Table(
        title="Faults",
        columns=(
            Column(name="kind"),
            Column(name="of"),
            Column(name="from", unit="ms", digits=1),
            Column(name="to", unit="ms", digits=1),
            Column(name="factor"),
        ),
        rows=tuple(
            (
                fault.kind.value,
                fault.target,
                (fault.start_ns - origin) / 1e6,
                None if fault.end_ns >= FOREVER else (fault.end_ns - origin) / 1e6,
                fault.factor if fault.factor != 1 else None,
            )
            for fault in shown.faults
        ),
        note="slow: everything takes so many times longer; link-slow: this part of the bandwidth is left.",
    )


def _stages(summary: Summary) -> Table:
    columns = (
        Column(name="stage"),
        Column(name="rank"),
        Column(name="F", unit="ms", digits=3),
        Column(name="B", unit="ms", digits=3),
        Column(name="I", unit="ms", digits=3),
        Column(name="W", unit="ms", digits=3),
    )
    rows = tuple(
        (each.stage, each.rank, each.forward_ms, each.backward_ms, each.input_backward_ms, each.weight_backward_ms)
        for each in summary.stages
    )
    note = (
        "Median time of an action: F forward, B backward, which may be split into I (for inputs) and W (for weights)."
    )
    return Table(title="Stages", columns=columns, rows=rows, note=note)


def _links(summary: Summary) -> Table:
    columns = (
        Column(name="link"),
        Column(name="in use", unit="%", digits=1, bar=True),
        Column(name="of its bandwidth", unit="%", digits=1),
        Column(name="two or more messages", unit="ms", digits=2),
        Column(name="messages", digits=0),
        Column(name="carried", unit="GiB", digits=3),
    )
    rows = tuple(
        (
            link.name,
            100 * link.busy_share,
            None if link.utilization is None else 100 * link.utilization,
            link.contention_ms,
            link.messages,
            link.carried_bytes / _GIB,
        )
        for link in summary.links
    )
    return Table(title="Links", columns=columns, rows=rows, note="Per iteration.")


def _figures(summary: Summary) -> Table:
    return Table(title="Figures", columns=(Column(name="figure"), Column(name="value")), rows=tuple(key_table(summary)))
