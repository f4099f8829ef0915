"""Events of a run as they are read: columns that grow, with the place in the files where each event stands."""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op

Table = Mapping[str, NDArray[np.integer]]
Mask = NDArray[np.bool_]

# About 31 bytes an event, where a line of JSON has 350.
_KINDS = {
    "iteration": "i", "rank": "i", "stage": "i", "op": "b", "microbatch": "i", "file": "h", "line": "I",
    "start_ns": "q", "end_ns": "q",
}  # fmt: skip


class Events:
    """Grows event by event. Times are nanoseconds of any one clock; `microbatch` and `stage` are -1 where none."""

    def __init__(self, files: Sequence[Path], *, mark: str = "{file}:{place}") -> None:
        """`mark`: how the place of an event reads; `place` is a line unless the format has another unit."""
        self.files = tuple(files)
        self._mark = mark
        self._columns = {name: array(kind) for name, kind in _KINDS.items()}
        self._appends = tuple(column.append for column in self._columns.values())

    def add(
        self, iteration: int, rank: int, stage: int, op: int, microbatch: int, file: int, line: int,
        start_ns: int, end_ns: int,
    ) -> None:  # fmt: skip
        """Add an event (by position: this runs once a line)."""
        values = (iteration, rank, stage, op, microbatch, file, line, start_ns, end_ns)
        for append, value in zip(self._appends, values, strict=True):
            append(value)

    def __len__(self) -> int:
        return len(self._columns["line"])

    def column(self, name: str) -> NDArray[np.integer]:
        """A view of the column; nothing can be added while it is in use."""
        column = self._columns[name]
        view = np.frombuffer(column, dtype=f"{column.typecode}") if column else np.zeros(0, dtype=column.typecode)
        view.setflags(write=False)
        return view

    def where(self, row: int) -> str:
        """`file:line` of an event."""
        return self._mark.format(file=self.files[self._columns["file"][row]], place=self._columns["line"][row])


def name_of(table: Table, row: int) -> str:
    """`2F0 of iteration 3 on rank 2`."""
    op = Op(int(table["op"][row]))
    what = f"{table['stage'][row]}{op.name}{table['microbatch'][row]}" if op.is_action else op.name.lower()
    return f"{what} of iteration {table['iteration'][row]} on rank {table['rank'][row]}"
