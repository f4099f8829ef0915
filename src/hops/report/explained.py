"""Where an iteration goes, what would help, and whether it fits: in tables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hops.diagnose.advice import Advice, Advised
from hops.diagnose.fit import MemoryFit, RankMemory
from hops.diagnose.waterfall import Explained
from hops.report.tables import FittedTable, bar, count, gibibytes, milliseconds, number, percent, plain_table, size

_BAR_WIDTH = 20
_MOST_STEPS = 10
_MOST_ADVICE = 8


def render_explained(title: str, found: Explained) -> RenderableType:
    """The waterfall and the critical path; both sum to the iteration."""
    total = found.iteration_ms
    waterfall = plain_table("a mean rank's iteration", "ms", "%")
    waterfall.add_column("", no_wrap=True)
    for each in found.bars:
        waterfall.add_row(each.name, number(each.ms), _share(each.ms, total), Text(bar(each.ms / total, _BAR_WIDTH)))
    waterfall.add_section()
    waterfall.add_row("iteration", number(total), "100.0", "")
    path = plain_table("critical path, the longest first", "ms", "%")
    for step in found.path[:_MOST_STEPS]:
        path.add_row(step.what, number(step.ms), _share(step.ms, total))
    rest = found.path[_MOST_STEPS:]
    if rest:
        others = sum(step.ms for step in rest)
        path.add_row(count(len(rest), "other"), number(others), _share(others, total))
    return Group(Text(title, style="bold"), "", waterfall, "", path)


def _share(value: float, total: float) -> str:
    return f"{100 * value / total:.1f}"


def render_advice(spec: str, found: Advised) -> RenderableType:
    """What helps, with its cost in memory and its command; how much else was tried."""
    tried = len(found.helps) + len(found.no_help) + len(found.refused)
    if not found.helps:
        head = Text(f"advice: none of {count(tried, 'change')} that were simulated helps", style="bold")
        return Group(head, *_refused(found))
    table = plain_table("advice: single changes, simulated", "throughput", "iteration ms", "peak GiB", "more GiB")
    for each in found.helps[:_MOST_ADVICE]:
        table.add_row(each.change.what, f"{100 * each.gain:+.1f} %", number(each.iteration_ms), *_memory(each))
    commands = [f"  hops run {spec} {each.change.command}" for each in found.helps[:_MOST_ADVICE]]
    more = len(found.helps) - _MOST_ADVICE
    others = [f"{count(more, 'other change')} that {'helps' if more == 1 else 'help'} less: --json"] if more > 0 else []
    without = f"{len(found.no_help)} changes do not help, {len(found.refused)} cannot run (reasons: --json)"
    return Group(
        table, "", "commands, in the same order:", *map(_whole_line, commands), *others, Text(without, style="dim")
    )


def _whole_line(text: str) -> Text:
    """A line that is not wrapped, to be copied."""
    return Text(text, no_wrap=True, overflow="ignore")


def _refused(found: Advised) -> list[Text]:
    return [Text(f"  {change.what} cannot run: {why}", style="dim") for change, why in found.refused]


def _memory(advice: Advice) -> tuple[str, str]:
    if advice.peak_bytes is None or advice.more_bytes is None:
        return "-", "-"
    return gibibytes(advice.peak_bytes), f"{advice.more_bytes / 2**30:+.2f}"


def render_fit(found: MemoryFit) -> RenderableType:
    """Every rank at its fullest, and what would make it fit."""
    parts = list(found.ranks[0].parts)
    table = plain_table("rank")
    table.add_column("device", no_wrap=True)
    for heading in ("needs\nGiB", "of\nGiB", "full\n%", *(f"{part}\nGiB" for part in parts), "in\nflight", "at\nms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for rank in found.ranks:
        _row(table, rank, parts)
    table.caption, table.caption_justify = "each rank at the moment when it holds most", "left"
    return Group(_verdict(found), "", table, *_remedies(found))


def _row(table: FittedTable, rank: RankMemory, parts: Sequence[str]) -> None:
    full = rank.needed_bytes / rank.capacity_bytes
    table.add_row(
        str(rank.rank),
        rank.device,
        Text(gibibytes(rank.needed_bytes), style="" if rank.fits else "bold red"),
        gibibytes(rank.capacity_bytes),
        f"{100 * full:.0f}",
        *(gibibytes(rank.parts[part]) for part in parts),
        str(rank.in_flight),
        number(rank.at_ms),
    )


def _verdict(found: MemoryFit) -> Text:
    tightest = max(found.ranks, key=lambda rank: rank.needed_bytes / rank.capacity_bytes)
    part, largest = max(tightest.parts.items(), key=lambda item: item[1])
    where = f"rank {tightest.rank} ({tightest.device})"
    what = f"its largest part: {part}, {size(largest)}, {percent(largest / tightest.needed_bytes)}"
    free = tightest.capacity_bytes - tightest.needed_bytes
    if found.fits:
        return Text.assemble(("it fits", "bold green"), f": {where} is fullest, with {size(free)} free; {what}")
    return Text.assemble(("it does not fit", "bold red"), f": {where} lacks {size(-free)}; {what}")


def _remedies(found: MemoryFit) -> list[RenderableType]:
    if found.fits:
        return []
    if not found.remedies:
        tried = count(len(found.no_remedy), "change")
        return ["", f"nothing of what was tried makes it fit ({tried}: --json); use more or larger devices"]
    table = plain_table("what makes it fit, the fastest first", "per s", "peak GiB")
    for each in found.remedies[:_MOST_ADVICE]:
        peak = "-" if each.peak_bytes is None else gibibytes(each.peak_bytes)
        table.add_row(each.change.what, number(each.samples_per_s), peak)
    best = found.remedies[0].change.command
    return ["", table, "", _whole_line(f"the first: hops run SPEC {best}")]


def explained_title(name: str, iterations: int, mean_ms: float) -> str:
    """`demo.yaml (simulated): 4,761 ms, mean of 3 iterations`."""
    return f"{name}: {milliseconds(mean_ms)}, mean of {count(iterations, 'iteration')}"
