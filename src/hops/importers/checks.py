"""Checks over the iterations of a recorded run; each takes and gives back which events stay, dropping what fails."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hops.importers.events import EventFilter, Events, Mask, Table, name_of
from hops.program.action import Op

# How much earlier than its input an action may start before clocks are said to contradict causality. Hosts that run
# NTP agree to well under 1 ms on one network; see docs/decisions/0082-clocks.md.
CLOCK_TOLERANCE_NS = 1_000_000
_COMPLETE = {
    frozenset({Op.F, Op.B}),
    frozenset({Op.F, Op.I, Op.W}),
    frozenset({Op.F, Op.I}),  # forward and inputs' backward of a stage without weights
}
_FIRST_STAGE = frozenset({Op.F, Op.W})  # it has no inputs that want a gradient


class Checks:
    """Checks over whole iterations; each takes and gives back which rows stay, dropping iterations that fail."""

    def __init__(self, events: Events, table: Table, rank_of_stage: tuple[int, ...], sieve: EventFilter) -> None:
        self._events, self._table, self._sieve = events, table, sieve
        self._rank_of_stage = rank_of_stage
        self._num_stages = len(rank_of_stage)
        self._numbers, self._index = np.unique(table["iteration"], return_inverse=True)
        self._num_microbatches = _usual_microbatches(table, self._index, self._num_stages)

    def numbered(self, keep: Mask) -> Mask:
        """No microbatch beyond as many as there are in an iteration. (So what follows stays as small as the events.)"""
        table = self._table
        beyond = np.flatnonzero(keep & (table["microbatch"] >= self._num_microbatches))
        for row in beyond.tolist():
            if not keep[row]:
                continue
            keep = self._without(
                row,
                keep,
                "microbatch out of range",
                f"{self._events.where(row)}: {name_of(table, row)}: got microbatch {table['microbatch'][row]}, "
                f"expected one below {self._num_microbatches}, which is how many most iterations have",
            )
        return keep

    def in_turn(self, keep: Mask) -> Mask:
        """An iteration starts on each rank only after the one before has started its last event there."""
        table = self._table
        for rank in sorted(set(self._rank_of_stage)):
            rows = np.flatnonzero(keep & (table["rank"] == rank))
            start, index = table["start_ns"][rows], self._index[rows]
            order = np.lexsort((start, index))
            earlier = np.flatnonzero(np.diff(start[order]) < 0)
            for place in earlier.tolist():
                last, early = int(rows[order[place]]), int(rows[order[place + 1]])
                if not keep[early]:
                    continue
                behind = (int(table["start_ns"][last]) - int(table["start_ns"][early])) / 1e6
                keep = self._without(
                    early,
                    keep,
                    "iterations overlap",
                    f"{self._events.where(early)}: {name_of(table, early)} starts {behind:.3f} ms before "
                    f"{name_of(table, last)} ({self._events.where(last)}), expected iterations one after the other: "
                    "the clock was set back or iteration numbers are wrong",
                )
        return keep

    def complete(self, keep: Mask) -> Mask:
        """Every stage has F and B, or F, I and W, of every microbatch; every rank or none has an optimizer step."""
        table = self._table
        rows = np.flatnonzero(keep & (table["op"] <= Op.W))
        seen = np.zeros((len(self._numbers), self._num_stages, self._num_microbatches), dtype=np.uint8)
        bits = np.left_shift(1, table["op"][rows]).astype(np.uint8)
        np.bitwise_or.at(seen, (self._index[rows], table["stage"][rows], table["microbatch"][rows]), bits)
        fine = np.zeros((2, 16), dtype=bool)
        for ops in _COMPLETE:
            fine[:, sum(1 << op for op in ops)] = True
        fine[0, sum(1 << op for op in _FIRST_STAGE)] = True
        later = (np.arange(self._num_stages) > 0).astype(int)
        bad = ~fine[later[None, :, None], seen]
        for index in np.flatnonzero(bad.any(axis=(1, 2))).tolist():
            stage, microbatch = np.argwhere(bad[index])[0].tolist()
            got = [Op(op).name for op in range(4) if seen[index, stage, microbatch] >> op & 1]
            keep = self._incomplete(
                index,
                keep,
                self._rank_of_stage[stage],
                f"stage {stage} has {' and '.join(got) or 'nothing'} of microbatch {microbatch}, expected "
                "F and B (or F, I and W)",
            )
        return self._stepped(keep)

    def _stepped(self, keep: Mask) -> Mask:
        table = self._table
        rows = np.flatnonzero(keep & (table["op"] == Op.OPTIMIZER))
        if not len(rows):
            return keep
        ranks = sorted(set(self._rank_of_stage))
        rows = rows[np.isin(table["rank"][rows], ranks)]
        seen = np.zeros((len(self._numbers), len(ranks)), dtype=bool)
        seen[self._index[rows], np.searchsorted(ranks, table["rank"][rows])] = True
        there = np.zeros(len(self._numbers), dtype=bool)
        there[self._index[keep]] = True
        for index in np.flatnonzero(there & ~seen.all(axis=1)).tolist():
            rank = ranks[int(np.argmin(seen[index]))]
            keep = self._incomplete(index, keep, rank, "no optimizer step, where other ranks or iterations have one")
        return keep

    def _incomplete(self, index: int, keep: Mask, rank: int, what: str) -> Mask:
        """Drop an incomplete iteration; it is missed at the rank's last line of that iteration."""
        rows = np.flatnonzero((self._index == index) & (self._table["rank"] == rank))
        at = self._events.where(int(rows[-1])) if len(rows) else self._events.files[0].parent
        row = int(np.flatnonzero(self._index == index)[0])
        number = self._numbers[index]
        return self._without(
            row,
            keep,
            "incomplete iteration",
            f"{at}: iteration {number} is incomplete on rank {rank}: {what}; the run was cut off or lines are lost",
        )

    def caused(self, keep: Mask) -> Mask:
        """Nothing starts before its input was made, but for the tolerance of clocks."""
        table = self._table
        for what, mine, maker in self.dependencies(keep):
            early = table["end_ns"][maker] - table["start_ns"][mine]
            for at in np.flatnonzero(early > CLOCK_TOLERANCE_NS).tolist():
                row, cause = int(mine[at]), int(maker[at])
                if not keep[row]:
                    continue
                keep = self._without(
                    row,
                    keep,
                    "clocks contradict causality",
                    f"{self._events.where(row)}: clocks contradict causality: {name_of(table, row)} starts "
                    f"{early[at] / 1e6:.3f} ms {what} by {name_of(table, cause)} ({self._events.where(cause)}), "
                    f"expected not earlier than {CLOCK_TOLERANCE_NS / 1e6:g} ms before: let the hosts keep time "
                    "together (chrony, PTP) and record again, or estimate their offsets with --align-clocks",
                )
        return keep

    def dependencies(self, keep: Mask) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
        """What it is to start too early, rows of actions, and of each the row that makes what it takes."""
        table = self._table
        made = self._made(keep)
        rows = np.flatnonzero(keep & (table["op"] <= Op.W))
        op, stage = table["op"][rows], table["stage"][rows].astype(np.int64)
        forward, backward = op == Op.F, (op == Op.B) | (op == Op.I)
        for what, takes, source, direction in (
            ("before its input is made", forward & (stage > 0), stage - 1, 0),
            ("before its gradient is made", backward & (stage < self._num_stages - 1), stage + 1, 1),
            ("before its forward has ended", ~forward, stage, 0),
        ):
            mine = rows[takes]
            yield what, mine, made[direction, self._index[mine], source[takes], table["microbatch"][mine]]

    def _made(self, keep: Mask) -> NDArray[np.int64]:
        """Row of the action that makes what (direction, iteration, stage, microbatch) sends."""
        table = self._table
        made = np.zeros((2, len(self._numbers), self._num_stages, self._num_microbatches), dtype=np.int64)
        rows = np.flatnonzero(keep & (table["op"] <= Op.I))
        direction = (table["op"][rows] != Op.F).astype(np.int64)
        made[direction, self._index[rows], table["stage"][rows], table["microbatch"][rows]] = rows
        return made

    def _without(self, row: int, keep: Mask, reason: str, message: str) -> Mask:
        """Report once, and leave the iteration of the row out."""
        mine = self._index == self._index[row]
        if (keep & mine).any():
            self._sieve.drop(reason, message, events=int((keep & mine).sum()))
        rest: Mask = keep & ~mine
        return rest


def _usual_microbatches(table: Table, index: NDArray[np.int64], num_stages: int) -> int:
    """How many forwards a stage has in an iteration; the most frequent number, the greater of equally frequent ones."""
    forward = table["op"] == Op.F
    cell = index[forward] * num_stages + table["stage"][forward]
    counts = np.bincount(np.unique(cell, return_counts=True)[1], minlength=1)
    return int(len(counts) - 1 - np.argmax(counts[::-1]))
