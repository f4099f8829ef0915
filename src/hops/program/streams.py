"""A program with its sends and receives between its actions, as PyTorch's runtime takes it.

A send is posted right after the action that made it, a receive when `hops.program.postings` says: one action early, and
between two ranks in the order of the sender. Transports match messages first come, first served, one way at a time
(NCCL, gloo, MPI), so that any other order would deliver wrong data or wait for ever.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from hops.program.action import Action, Op, Pair
from hops.program.lowering import lower
from hops.program.postings import postings
from hops.program.program import Program
from hops.program.wiring import NONE


class PostingKind(Enum):
    """Activations go forward, gradients back; each is sent by one stage and received by the next."""

    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"

    @property
    def is_send(self) -> bool:
        return self in (PostingKind.SEND_F, PostingKind.SEND_B)


class Posting(NamedTuple):
    """A send or receive that a rank posts for one of its stages, printed `2RECV_F0` as in PyTorch's schedules."""

    stage: int
    kind: PostingKind
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind.value}{self.microbatch}"

    @property
    def partner(self) -> "Posting":
        """What the other side posts: `1SEND_F0` of `2RECV_F0`."""
        match self.kind:
            case PostingKind.SEND_F:
                return Posting(self.stage + 1, PostingKind.RECV_F, self.microbatch)
            case PostingKind.RECV_F:
                return Posting(self.stage - 1, PostingKind.SEND_F, self.microbatch)
            case PostingKind.SEND_B:
                return Posting(self.stage - 1, PostingKind.RECV_B, self.microbatch)
            case PostingKind.RECV_B:
                return Posting(self.stage + 1, PostingKind.SEND_B, self.microbatch)


Entry = Action | Pair | Posting


def with_postings(program: Program) -> tuple[tuple[Entry, ...], ...]:
    """Every rank's stream with its sends and receives. Raises ProgramError where `lower` does."""
    before = _receives(program)
    step, streams = 0, []
    for rank in range(program.num_ranks):
        stream: list[Entry] = []
        for entry in program.rank(rank):
            stream += before[step]
            stream.append(entry)
            stream += sends_of(program.shape.rank_of_stage, entry)
            step += 1
        streams.append(tuple(stream))
    return tuple(streams)


def sends_of(rank_of_stage: Sequence[int], entry: Action | Pair) -> list[Posting]:
    """What an entry of the stream sends to other ranks; a pair's second action before its first."""
    found = []
    for stage, op, microbatch in entry[::-1] if isinstance(entry, Pair) else (entry,):
        other = stage + 1 if op is Op.F else stage - 1
        if op is not Op.W and _apart(rank_of_stage, stage, other):
            found.append(Posting(stage, PostingKind.SEND_F if op is Op.F else PostingKind.SEND_B, microbatch))
    return found


def receive_of(rank_of_stage: Sequence[int], action: Action) -> Posting | None:
    """What an action takes from another rank, if anything."""
    stage, op, microbatch = action
    other = stage - 1 if op is Op.F else stage + 1
    if op is Op.W or not _apart(rank_of_stage, stage, other):
        return None
    return Posting(stage, PostingKind.RECV_F if op is Op.F else PostingKind.RECV_B, microbatch)


def _apart(rank_of_stage: Sequence[int], stage: int, other: int) -> bool:
    """Whether the other stage is there, on another rank."""
    return 0 <= other < len(rank_of_stage) and rank_of_stage[stage] != rank_of_stage[other]


def _receives(program: Program) -> list[list[Posting]]:
    """The receives that are posted right before every step."""
    low = lower(program)
    taker = {key: at for at, key in enumerate(low.need.tolist()) if key != NONE}
    before: list[list[Posting]] = [[] for _ in low.rank]
    posted = postings(program, low)
    for step, message in zip(posted.step.tolist(), posted.message.tolist(), strict=True):
        receive = receive_of(program.shape.rank_of_stage, program.action(taker[message]))
        assert receive is not None, "a message between ranks is received"
        before[step].append(receive)
    return before
