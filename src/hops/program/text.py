"""Programs as text for people: one row per rank, its actions in order, with a mark where something is wrong."""

from collections.abc import Mapping, Sequence

from hops.program.program import Program

COLUMNS_AROUND_A_MARK = 6
RANKS_AROUND_A_MARK = 3
MARKED_RANKS_SHOWN = 3


def order_grid(rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Every rank's words, the n-th of each in one column; as many as fit into `width` characters (None: all)."""
    columns = max(map(len, rows))
    if width is not None:
        cell = max((len(word) for row in rows for word in row), default=0) + 1
        columns = min(columns, max(1, (width - len(f"rank {len(rows)} |  ... {columns} more")) // cell))
    return _grid(rows, 0, columns)


def marked_excerpt(program: Program, marks: Mapping[int, int]) -> str:
    """The grid around the marks: a few columns before and after, and a screen of ranks.

    Args:
        program: whatever it says, in order or not; pairs are shown as their two actions.
        marks: rank to index of the action to put between `>` and `<`; one past the end marks what is missing there.
    """
    low = max(0, min(marks.values()) - COLUMNS_AROUND_A_MARK)
    high = min(max(marks.values()), low + 2 * COLUMNS_AROUND_A_MARK) + COLUMNS_AROUND_A_MARK + 1
    lines = _grid([_marked(program, rank, marks) for rank in range(program.num_ranks)], low, high).splitlines()
    near = list(marks)[:MARKED_RANKS_SHOWN]
    shown = [line for r, line in enumerate(lines) if any(abs(r - rank) <= RANKS_AROUND_A_MARK for rank in near)]
    return "\n".join(shown)


def _marked(program: Program, rank: int, marks: Mapping[int, int]) -> list[str]:
    words = [*map(program.word, program.actions(rank))]
    if rank in marks:
        index = marks[rank]
        words[index : index + 1] = [f">{word}<" for word in words[index : index + 1] or [""]]
    return words


def _grid(rows: Sequence[Sequence[str]], low: int, high: int) -> str:
    """Columns low to high - 1 of the rows."""
    shown = [row[low:high] for row in rows]
    width = max((len(word) for row in shown for word in row), default=0)
    label = len(str(len(rows) - 1))
    before = "... " if low > 0 else ""
    lines = []
    for rank, (row, words) in enumerate(zip(rows, shown, strict=True)):
        cells = " ".join(word.center(width) for word in words).rstrip()
        after = f" ... {len(row) - high} more" if len(row) > high else ""
        lines.append(f"rank {rank:>{label}} | {before}{cells}{after}")
    return "\n".join(lines)
