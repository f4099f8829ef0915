"""The table of ranks; many ranks are folded into few rows, so that it stays on one screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from rich.table import Table
from rich.text import Text

from hops.metrics import Summary
from hops.metrics.summary import MemorySummary, RankSummary
from hops.report.tables import plain_table
from hops.report.wording import bar, gibibytes, number

MAX_ROWS = 16
_BAR_WIDTH = 10
_DEVICE_WIDTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Neighbouring ranks that share a row."""

    ranks: Sequence[RankSummary]

    @property
    def name(self) -> str:
        first, last = self.ranks[0].rank, self.ranks[-1].rank
        return str(first) if first == last else f"{first}-{last}"

    @property
    def device(self) -> str:
        kinds = list(dict.fromkeys(rank.device for rank in self.ranks))
        return kinds[0] if len(kinds) == 1 else f"{kinds[0]} +{len(kinds) - 1}"

    def mean(self, values: Sequence[float]) -> float:
        return sum(values) / len(values)

    @property
    def tightest(self) -> MemorySummary | None:
        """Memory of the rank with the least room left."""
        known = [rank.memory for rank in self.ranks if rank.memory is not None]
        return max(known, key=_fullness) if known else None


def ranks_table(summary: Summary) -> Table:
    """Utilisation, waiting, span, microbatches in flight and memory, rank by rank or block by block."""
    per_row = ceil(len(summary.ranks) / MAX_ROWS)
    blocks = [_Block(ranks=summary.ranks[low : low + per_row]) for low in range(0, len(summary.ranks), per_row)]
    folded = per_row > 1
    table = plain_table("ranks" if folded else "rank")
    table.add_column("device", no_wrap=True, overflow="ellipsis", max_width=_DEVICE_WIDTH)
    table.add_column("mean use %" if folded else "use %", no_wrap=True)
    for title in ("exposed\nms", "span\nms", "in\nflight", "peak GiB"):
        table.add_column(title, justify="right", no_wrap=True)
    for block in blocks:
        table.add_row(*_row(block))
    return table


def _row(block: _Block) -> tuple[Text | str, ...]:
    use = block.mean([rank.utilization for rank in block.ranks])
    return (
        block.name,
        block.device,
        Text.assemble((bar(use, _BAR_WIDTH), "cyan on grey23"), f" {100 * use:>5.1f}"),
        number(block.mean([rank.exposed_ms for rank in block.ranks])),
        number(block.mean([rank.stage_span_ms for rank in block.ranks])),
        str(max(rank.in_flight_peak for rank in block.ranks)),
        _memory(block.tightest),
    )


def _memory(memory: MemorySummary | None) -> Text:
    if memory is None:
        return Text("-")
    if memory.capacity_bytes is None:
        return Text(gibibytes(memory.peak_bytes))
    style = "bold red" if memory.peak_bytes > memory.capacity_bytes else ""
    return Text(f"{gibibytes(memory.peak_bytes)} of {gibibytes(memory.capacity_bytes)}", style=style)


def _fullness(memory: MemorySummary) -> float:
    return memory.peak_bytes / (memory.capacity_bytes or 1)
