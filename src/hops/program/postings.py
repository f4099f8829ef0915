"""When messages are posted: a program with its sends and receives between its actions.

A send is posted right after the action that made it, a receive one action before the action that takes it. Between two
ranks, receives are posted in the order in which the other rank sends: transports match them first come, first served,
one way at a time (NCCL, gloo, MPI), so any other order would deliver wrong data or wait for ever.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from hops.program.action import Action, Op, Pair
from hops.program.lowering import Lowered, lower
from hops.program.program import Program

ACTIONS_AHEAD = 1  # how many actions before the one that takes it a receive is posted


class Exchange(Enum):
    """Activations go forward, gradients back; each is sent by one stage and received by the next."""

    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"

    @property
    def is_send(self) -> bool:
        return self in (Exchange.SEND_F, Exchange.SEND_B)


class Posting(NamedTuple):
    """A send or receive that a rank posts for one of its stages, printed `2RECV_F0` as in PyTorch's schedules."""

    stage: int
    exchange: Exchange
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.exchange.value}{self.microbatch}"

    @property
    def partner(self) -> "Posting":
        """What the other side posts: `1SEND_F0` of `2RECV_F0`."""
        match self.exchange:
            case Exchange.SEND_F:
                return Posting(self.stage + 1, Exchange.RECV_F, self.microbatch)
            case Exchange.RECV_F:
                return Posting(self.stage - 1, Exchange.SEND_F, self.microbatch)
            case Exchange.SEND_B:
                return Posting(self.stage - 1, Exchange.RECV_B, self.microbatch)
            case Exchange.RECV_B:
                return Posting(self.stage + 1, Exchange.SEND_B, self.microbatch)


Entry = Action | Pair | Posting


def with_postings(program: Program) -> tuple[tuple[Entry, ...], ...]:
    """Every rank's stream with its sends and receives. Raises ProgramError where `lower` does."""
    low = lower(program)
    before = _receives(program, low)
    streams = []
    for rank in range(program.num_ranks):
        stream: list[Entry] = []
        for step, entry in enumerate(program.rank(rank), start=int(low.rank_first[rank])):
            stream += before[step]
            stream.append(entry)
            stream += sends_of(program.shape.rank_of_stage, entry)
        streams.append(tuple(stream))
    return tuple(streams)


def sends_of(rank_of_stage: Sequence[int], entry: Action | Pair) -> list[Posting]:
    """What an entry of the stream sends to other ranks."""
    found = []
    for stage, op, microbatch in entry if isinstance(entry, Pair) else (entry,):
        other = stage + 1 if op is Op.F else stage - 1
        if op is not Op.W and _apart(rank_of_stage, stage, other):
            found.append(Posting(stage, Exchange.SEND_F if op is Op.F else Exchange.SEND_B, microbatch))
    return found


def receive_of(rank_of_stage: Sequence[int], action: Action) -> Posting | None:
    """What an action takes from another rank, if anything."""
    stage, op, microbatch = action
    other = stage - 1 if op is Op.F else stage + 1
    if op is Op.W or not _apart(rank_of_stage, stage, other):
        return None
    return Posting(stage, Exchange.RECV_F if op is Op.F else Exchange.RECV_B, microbatch)


def _apart(rank_of_stage: Sequence[int], stage: int, other: int) -> bool:
    """Whether the other stage is there, on another rank."""
    return 0 <= other < len(rank_of_stage) and rank_of_stage[stage] != rank_of_stage[other]


def _receives(program: Program, low: Lowered) -> list[list[Posting]]:
    """The receives that are posted right before every step."""
    step_of_action = np.repeat(np.arange(len(low.rank)), np.diff(low.first))
    needed_at = {int(key): int(step) for key, step in zip(low.need, step_of_action, strict=True) if key >= 0}
    channels: dict[tuple[int, int], list[int]] = {}
    for key, step in zip(low.bring.tolist(), step_of_action.tolist(), strict=True):
        if key >= 0 and low.receiver[key] != low.rank[step]:
            channels.setdefault((int(low.rank[step]), int(low.receiver[key])), []).append(key)
    taker = {int(key): at for at, key in enumerate(low.need) if key >= 0}
    placed: list[tuple[int, int, int, Posting]] = []
    for (sender, receiver), keys in channels.items():
        needed = np.array([needed_at[key] for key in keys])
        due = np.minimum.accumulate(needed[::-1])[::-1]  # what is sent later may be needed first
        slots = np.maximum(due - ACTIONS_AHEAD, low.rank_first[receiver])
        for key, slot, step in zip(keys, slots.tolist(), due.tolist(), strict=True):
            posting = receive_of(program.shape.rank_of_stage, program.action(taker[key]))
            assert posting is not None, "a message between ranks is received"
            placed.append((slot, step, sender, posting))
    before: list[list[Posting]] = [[] for _ in low.rank]
    for slot, _, _, posting in sorted(placed, key=lambda each: each[:3]):  # stable: a sender's order stays
        before[slot].append(posting)
    return before
