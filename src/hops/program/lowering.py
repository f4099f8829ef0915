"""From a program to what runs: checks, then messages, then an order in which all can run.

A message is known by what it brings: (receiving stage, activation or gradient, microbatch), flattened to one integer.
Outputs for a stage on the same rank have a number, too, although nothing is sent.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.errors import DeadlockError
from hops.program.action import Action, Op
from hops.program.check import check_complete, rank_and_index
from hops.program.program import Program
from hops.program.shape import Shape
from hops.program.text import marked_excerpt
from hops.program.wiring import GRADIENT, NONE, wire

WAITING_RANKS_NAMED = 8


class Lowered(NamedTuple):
    """A program of u steps (entries of the stream), a actions and k messages, as what runs it needs it. Arrays.

    Attributes:
        first: the first action of each step, and the number of actions; shape (u + 1,).
        rank: the rank of each step; shape (u,).
        rank_first: the first step of each rank, and the number of steps; shape (ranks + 1,).
        sequence: all steps, in an order in which each can run after those before it; shape (u,).
        need, bring: the message that each action takes and gives, or NONE; shape (a,).
        receiver: the rank that each message is for; shape (k,).
    """

    first: IntArray
    rank: IntArray
    rank_first: IntArray
    sequence: IntArray
    need: IntArray
    bring: IntArray
    receiver: IntArray


def check(program: Program) -> None:
    """Raise ProgramError, with a mark in the grid, unless the program is complete, in order and free of deadlock."""
    lower(program)


def lower(program: Program) -> Lowered:
    """Check the program and prepare it for what runs it.

    Raises ProgramError, with a mark in the grid, unless each action is there once, on its rank and after what it needs
    from it; and when each rank runs its list, waiting for the message of each action (a pair: of both), all lists end.
    """
    check_complete(program)
    return lower_complete(program)


def lower_complete(program: Program) -> Lowered:
    """The same for a program that is known to be complete; its entries may hold any actions of their rank."""
    need, bring = messages(program)
    first, rank, rank_first = _steps(program)
    receiver = np.repeat(np.array(program.shape.rank_of_stage), 2 * program.shape.num_microbatches)
    sequence = np.zeros(len(rank), dtype=np.int64)
    position = rank_first[:-1].copy()
    waits_for = np.full(program.num_ranks, NONE)
    order_steps.on(len(need), rank_first, first, need, bring, receiver, sequence, position, waits_for)
    if not np.array_equal(position, rank_first[1:]):
        raise _deadlock(program, first[position], waits_for)
    return Lowered(first, rank, rank_first, sequence, need, bring, receiver)


def messages(program: Program) -> tuple[IntArray, IntArray]:
    """What each action takes from another stage, and what it gives one, or NONE; twice shape (actions,).

    F takes the activation of the stage before, B and I the gradient of the stage after; W neither takes nor gives.
    """
    lowest = [table[program.kind] for table in _first_messages(program.shape)]
    need, bring = (np.where(low == NONE, NONE, low + program.microbatch) for low in lowest)
    return need, bring


@lru_cache(maxsize=8)
def _first_messages(shape: Shape) -> tuple[IntArray, IntArray]:
    """Per kind, what it takes and gives for microbatch 0."""
    wiring = wire(shape)
    return np.array(wiring.needs).reshape(-1), np.array(wiring.brings).reshape(-1)


def message_of(key: int, shape: Shape) -> tuple[int, int, int]:
    """The receiving stage, ACTIVATION or GRADIENT, and the microbatch of a message."""
    line, microbatch = divmod(key, shape.num_microbatches)
    return line // 2, line % 2, microbatch


def _steps(program: Program) -> tuple[IntArray, IntArray, IntArray]:
    opens = np.flatnonzero(program.closes_pair == 0)
    first = np.append(opens, program.num_actions)
    rank_first = np.searchsorted(opens, program.first)
    return first, np.repeat(np.arange(program.num_ranks), np.diff(rank_first)), rank_first


@kernel
def order_steps(
    rank_first: IntArray,
    first: IntArray,
    need: IntArray,
    bring: IntArray,
    receiver: IntArray,
    sequence: IntArray,
    position: IntArray,
    waits_for: IntArray,
) -> None:
    """Fill `sequence` as far as steps can run, and leave in `position` (per rank) the first that cannot.

    Each rank runs until it lacks a message, which goes to its `waits_for` (NONE before). The stack holds the ranks that
    may go on; a message that somebody waits for puts its receiver there.
    """
    ranks = len(rank_first) - 1
    arrived = [False] * len(receiver)
    stack = [ranks - 1 - rank for rank in range(ranks)]
    height, placed = ranks, 0
    while height > 0:
        height -= 1
        rank = stack[height]
        here = position[rank]
        while here < rank_first[rank + 1]:
            lacking = NONE
            for action in range(first[here], first[here + 1]):
                key = need[action]
                if key >= 0 and not arrived[key]:
                    lacking = key
                    break
            if lacking >= 0:
                waits_for[rank] = lacking
                break
            sequence[placed] = here
            placed += 1
            for action in range(first[here], first[here + 1]):
                key = bring[action]
                if key >= 0:
                    arrived[key] = True
                    other = receiver[key]
                    if waits_for[other] == key:
                        waits_for[other] = NONE
                        stack[height] = other
                        height += 1
            here += 1
        position[rank] = here


def _deadlock(program: Program, stopped_at: IntArray, waits_for: IntArray) -> DeadlockError:
    """The message tells which action each stuck rank waits at, and for what.

    Args:
        program: complete.
        stopped_at: per rank, its first action that could not run, or one past its last.
        waits_for: per rank, the message it lacks, or NONE.
    """
    stuck = {
        rank: int(at) - int(program.first[rank])
        for rank, at in enumerate(stopped_at.tolist())
        if at < program.first[rank + 1]
    }
    named = list(stuck.items())[:WAITING_RANKS_NAMED]
    waits = [_waits(program, rank, index, int(waits_for[rank])) for rank, index in named]
    more = [f"  and {len(stuck) - len(waits)} more ranks"] if len(stuck) > len(waits) else []
    return DeadlockError("\n".join(["the program deadlocks:", *waits, *more, marked_excerpt(program, stuck)]))


def _waits(program: Program, rank: int, index: int, key: int) -> str:
    stage, kind, microbatch = message_of(key, program.shape)
    sender = stage + 1 if kind == GRADIENT else stage - 1
    of_sender = (program.stage == sender) & (program.microbatch == microbatch)
    ops = (Op.B, Op.I) if kind == GRADIENT else (Op.F,)
    position = int(np.flatnonzero(of_sender & np.isin(program.op, ops))[0])
    other, place = rank_and_index(program, position)
    waiting: Action = program.action(int(program.first[rank]) + index)
    wanted = program.word(program.action(position))
    return f"  rank {rank} waits at {program.word(waiting)} for {wanted}, position {place} of rank {other}"
