"""Programs to the search's rows of kinds, and back."""

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import count

from hops.actions import Action, Op
from hops.schedule.coded import NUM_OPS, Coded, IntArray
from hops.schedule.program import Program
from hops.schedule.shape import Shape

OPS = tuple(Op)


def order_of(program: Program, kinds: IntArray, length: IntArray) -> None:
    """Fill `kinds` (ranks, longest) and `length` (ranks,) from a program; microbatches are forgotten."""
    coded = Coded.of(program.shape, program.ranks)
    for rank, row in enumerate(coded.split(coded.kind)):
        kinds[rank, : len(row)] = row
        length[rank] = len(row)


def program_of(shape: Shape, kinds: IntArray, length: IntArray) -> Program:
    """The program of an order: each stage takes its forwards, backwards and the W of its split backwards in turn."""
    rows = (row[:actions].tolist() for row, actions in zip(kinds, length.tolist(), strict=True))
    return Program(shape=shape, ranks=tuple(_actions(row) for row in rows))


def _actions(row: list[int]) -> tuple[Action, ...]:
    forwards: defaultdict[int, Iterator[int]] = defaultdict(count)
    backwards: defaultdict[int, Iterator[int]] = defaultdict(count)
    split: defaultdict[int, deque[int]] = defaultdict(deque)
    actions = []
    for kind in row:
        stage, op = kind // NUM_OPS, OPS[kind % NUM_OPS]
        if op is Op.F:
            microbatch = next(forwards[stage])
        elif op is Op.W:
            microbatch = split[stage].popleft()
        else:
            microbatch = next(backwards[stage])
            if op is Op.I:
                split[stage].append(microbatch)
        actions.append(Action(stage, op, microbatch))
    return tuple(actions)
