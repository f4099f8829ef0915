"""What an iteration's time consists of: the chain of work and waits, each the cause of the next, that fills it.

The critical path of an iteration is followed from its end backwards. From an action it goes to what enabled it: the
action that made its input or the one before it on its rank, whichever ended later; if both ended at once, the one
before it, since then the input waited for the rank and not the rank for the input. What lies between the two is a
message in the first case and time between actions of the rank in the second. A pair is passed as a whole. Before the
optimizer lies what the pipeline's last action ends; after it, what the host does until the next iteration. So the
pieces fill the iteration without overlap, and their sum is its time, to the nanosecond.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from hops.metrics.inputs import inputs_from_elsewhere
from hops.metrics.intervals import Ints
from hops.metrics.iterations import Iterations, is_action
from hops.program.action import Op
from hops.trace.trace import Stream


class Piece(StrEnum):
    """What the time of a piece is spent on."""

    COMPUTE = "compute"  # an action on the path
    MESSAGE = "message"  # from the end of an action to the start of the one that takes its output elsewhere
    BETWEEN = "between"  # from the end of an action to the start of the next on the same rank, whose input was there
    REDUCE = "reduce"  # from the end of the pipeline to the first optimizer step on the path
    OPTIMIZER = "optimizer"
    HOST = "host"  # from the last optimizer step to the next iteration


class PathTerm(NamedTuple):
    """One kind of piece: where it lies and what it does. -1: none. A message goes from `rank` to `peer`."""

    piece: Piece
    rank: int = -1
    stage: int = -1
    op: Op | None = None
    peer: int = -1

    def __str__(self) -> str:
        """What people call it: `B of stage 2`, `message 0 to 1 (F)`."""
        letter = "" if self.op is None else self.op.name
        elsewhere = f" on rank {self.rank}" if self.rank != self.stage else ""
        return {
            Piece.COMPUTE: f"{letter} of stage {self.stage}{elsewhere}",
            Piece.MESSAGE: f"message {self.rank} to {self.peer} ({letter})",
            Piece.BETWEEN: f"between actions, rank {self.rank}",
            Piece.REDUCE: "pipeline's end to optimizer",
            Piece.OPTIMIZER: f"optimizer, rank {self.rank}",
            Piece.HOST: "until the next iteration",
        }[self.piece]

    def to_dict(self) -> dict[str, int | str | None]:
        """Plain values; null where it has none."""
        numbers = {"rank": self.rank, "stage": self.stage, "peer": self.peer}
        plain = {name: None if value < 0 else value for name, value in numbers.items()}
        return {"piece": self.piece.value, "op": None if self.op is None else self.op.name, **plain}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """The critical paths of a run's iterations.

    Attributes:
        terms: what occurs on any of them, sorted.
        spent_ns: shape (iterations, terms); rows sum to the iteration times.
    """

    terms: tuple[PathTerm, ...]
    spent_ns: Ints


def critical_paths(run: Iterations) -> Paths:
    """Follow every iteration that counts from its end to its start."""
    walk = _Walk(run)
    found = [walk.iteration(index) for index in range(run.num_iterations)]
    terms = sorted({term for pieces in found for term in pieces}, key=_order)
    spent = np.array([[pieces[term] for term in terms] for pieces in found], dtype=np.int64)
    return Paths(terms=tuple(terms), spent_ns=spent.reshape(len(found), len(terms)))


class PathStep(NamedTuple):
    """A stretch of an iteration's critical path. `row`: of the run's trace that it is; -1: the time between rows."""

    term: PathTerm
    row: int
    start_ns: int
    end_ns: int


def critical_steps(run: Iterations) -> tuple[tuple[PathStep, ...], ...]:
    """Every iteration's critical path, from its start to its end; a step starts where the one before it ends."""
    walk = _Walk(run)
    return tuple(tuple(reversed(list(walk.steps(index)))) for index in range(run.num_iterations))


def _order(term: PathTerm) -> tuple[int, ...]:
    return (list(Piece).index(term.piece), term.rank, term.stage, -1 if term.op is None else term.op, term.peer)


class _Walk:
    """Everything a walk looks up, as plain lists."""

    def __init__(self, run: Iterations) -> None:
        trace = run.trace
        self._run = run
        self._start, self._end = trace.start_ns.tolist(), trace.end_ns.tolist()
        self._rank, self._stage = trace.rank.tolist(), trace.stage.tolist()
        ops = tuple(Op)  # by number; calling Op takes ten times as long
        self._op = [ops[op] for op in trace.op.tolist()]
        found = inputs_from_elsewhere(run)
        self._source, self._ready, self._last = found.source.tolist(), found.ready_ns.tolist(), found.last.tolist()
        self._previous = previous_rows(run).tolist()
        self._computed = _by_iteration(run, np.flatnonzero(trace.stream == Stream.COMPUTE))
        self._actions = _by_iteration(run, np.flatnonzero(is_action(trace)))

    def iteration(self, index: int) -> defaultdict[PathTerm, int]:
        """Nanoseconds by term of one iteration."""
        spent: defaultdict[PathTerm, int] = defaultdict(int)
        for step in self.steps(index):
            spent[step.term] += step.end_ns - step.start_ns
        return spent

    def steps(self, index: int) -> Iterator[PathStep]:
        """The pieces of one iteration, the last first."""
        begin, now = int(self._run.start_ns[index]), int(self._run.end_ns[index])
        row = self._latest(self._computed[index], now)
        between, rank = PathTerm(Piece.HOST), -1
        for _ in range(len(self._computed[index])):  # no row twice; clocks that disagree could make circles
            if row < 0:
                break
            until = max(min(now, self._end[row]), begin)
            yield PathStep(between, -1, until, now)
            rank = self._rank[row]
            now = max(min(until, self._start[row]), begin)
            yield PathStep(self._work(row), row, now, until)
            row, between = self._enabled_by(row, index, now)
        yield PathStep(PathTerm(Piece.BETWEEN, rank), -1, begin, now)

    def _work(self, row: int) -> PathTerm:
        piece = Piece.OPTIMIZER if self._op[row] == Op.OPTIMIZER else Piece.COMPUTE
        return PathTerm(piece, self._rank[row], self._stage[row], self._op[row])

    def _enabled_by(self, row: int, index: int, now: int) -> tuple[int, PathTerm]:
        """The row on the path before this one (-1: none), and what lies between them."""
        rank = self._rank[row]
        if self._op[row] == Op.OPTIMIZER:
            return self._latest(self._actions[index], now), PathTerm(Piece.REDUCE)
        before, source = self._previous[row], self._source[row]
        if source >= 0 and (before < 0 or self._ready[row] > self._end[before]):
            return self._last[source], PathTerm(
                Piece.MESSAGE, self._rank[source], self._stage[source], self._op[source], rank
            )
        return before, PathTerm(Piece.BETWEEN, rank)

    def _latest(self, rows: list[int], until: int) -> int:
        """Of these rows the one that ends last, but not after `until`; -1: none."""
        return max((row for row in rows if self._end[row] <= until), key=self._end.__getitem__, default=-1)


def _by_iteration(run: Iterations, rows: Ints) -> list[list[int]]:
    order = rows[np.argsort(run.index[rows], kind="stable")]
    cuts = np.searchsorted(run.index[order], np.arange(1, run.num_iterations))
    return [part.tolist() for part in np.split(order, cuts)]


def previous_rows(run: Iterations) -> Ints:
    """Of every row of the trace the compute row before it on its rank and in its iteration; -1: none."""
    row = run.compute_rows().row
    same = (np.diff(run.trace.rank[row]) == 0) & (np.diff(run.index[row]) == 0)
    previous = np.full(len(run.trace), -1, dtype=np.int64)
    previous[row[1:][same]] = row[:-1][same]
    return previous
