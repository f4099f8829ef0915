"""Programs as text for people: one row per rank, in order or over time, with a mark where something is wrong."""

from collections.abc import Mapping, Sequence

from hops.actions import Action

CELLS_AROUND_A_MARK = 6
RANKS_AROUND_A_MARK = 3


def order_grid(
    ranks: Sequence[Sequence[Action]], *, marks: Mapping[int, int] | None = None, columns: slice | None = None
) -> str:
    """Every rank's actions, the n-th of each in one column.

    Args:
        ranks: the actions of every rank.
        marks: rank to index of the action to put between `>` and `<`; one past the end marks the end.
        columns: which indices to show; all if None.
    """
    at = {} if marks is None else marks
    longest = max([len(actions) for actions in ranks] + [index + 1 for index in at.values()])
    shown = range(longest)[columns] if columns is not None else range(longest)
    cells = [[_cell(rank, actions, index, at) for index in shown] for rank, actions in enumerate(ranks)]
    width = max((len(cell) for row in cells for cell in row), default=0)
    label = len(str(len(ranks) - 1))
    before = "... " if shown.start > 0 else ""
    after = f" ... {longest - shown.stop} more" if shown.stop < longest else ""
    return "\n".join(
        f"rank {rank:>{label}} | {before}{' '.join(cell.center(width) for cell in row)}".rstrip() + after
        for rank, row in enumerate(cells)
    )


def _cell(rank: int, actions: Sequence[Action], index: int, marks: Mapping[int, int]) -> str:
    text = str(actions[index]) if index < len(actions) else ""
    return f">{text}<" if rank in marks and marks[rank] == index else text


def marked_excerpt(ranks: Sequence[Sequence[Action]], marks: Mapping[int, int]) -> str:
    """The order grid around the marks: a few columns before and after, and at most a screen of ranks."""
    low = max(0, min(marks.values()) - CELLS_AROUND_A_MARK)
    high = min(max(marks.values()) + 1, low + 2 * CELLS_AROUND_A_MARK) + CELLS_AROUND_A_MARK
    lines = order_grid(ranks, marks=marks, columns=slice(low, high)).splitlines()
    near = [
        line
        for rank, line in enumerate(lines)
        if any(abs(rank - marked) <= RANKS_AROUND_A_MARK for marked in list(marks)[:RANKS_AROUND_A_MARK])
    ]
    return "\n".join(near)
