"""When receives are posted, so that a message that waits for both of its ends finds the receiver early.

A pass over a lowered program, for transports in which a message starts once it is sent and its receive is posted
(NCCL's send and receive, `torch.distributed.pipelining`). A receive is posted one entry early: when the rank gets to
the entry before the one that needs it, after the sends of what came before. Messages between two ranks are matched in
the order in which they are sent, so that a receive is also posted before those of all later messages of the same peer.
"""

from typing import NamedTuple

import numpy as np

from hops.arrays import IntArray
from hops.program.lowering import Lowered
from hops.program.program import Program
from hops.program.wiring import NONE


class Postings(NamedTuple):
    """The receives of a program from other ranks, in the order in which each rank posts them, rank after rank.

    Attributes:
        step: the entry of the stream that the rank gets to when it posts; shape (receives,), ascending.
        message: what is received, as in `Lowered.need`; shape (receives,).
        early: how many entries before the one that needs it; 1 unless the peer's order asks for more, or there is no
            entry before; shape (receives,).
    """

    step: IntArray
    message: IntArray
    early: IntArray


def postings(program: Program, low: Lowered, *, in_calls: bool = False) -> Postings:
    """The receives of a program that has been lowered.

    `in_calls`: they are posted in the call before the entry that needs them (`hops.program.calls`).
    """
    sender_of, sent_at = _senders(program, low)
    takers = np.flatnonzero(low.need != NONE)
    rank_of_action = program.rank_of_action
    takers = takers[sender_of[low.need[takers]] != rank_of_action[takers]]
    message, receiver = low.need[takers], rank_of_action[takers]
    needed = np.searchsorted(low.first, takers, side="right") - 1
    if in_calls:
        return Postings(needed, message, np.zeros(len(takers), dtype=np.int64))
    wished = np.maximum(needed - 1, low.rank_first[receiver])
    # The least of what later messages of the same pair of ranks ask for, read from the last to the first.
    pair = receiver * program.num_ranks + sender_of[message]
    order = np.lexsort((sent_at[message], pair))
    apart = pair[order] * (len(low.rank) + 1)
    step = np.empty(len(takers), dtype=np.int64)
    step[order] = np.minimum.accumulate((apart + wished[order])[::-1])[::-1] - apart
    posted = np.lexsort((sent_at[message], step))
    return Postings(step[posted], message[posted], (needed - step)[posted])


def _senders(program: Program, low: Lowered) -> tuple[IntArray, IntArray]:
    """The rank that sends each message, and the message's place among all that are sent; twice shape (messages,).

    The second of a pair passes its output on before the first.
    """
    givers = np.flatnonzero(low.bring != NONE)
    sender, sent_at = (np.full(len(low.receiver), NONE) for _ in range(2))
    sender[low.bring[givers]] = program.rank_of_action[givers]
    place = np.arange(program.num_actions)
    closes = np.flatnonzero(program.closes_pair)
    place[closes], place[closes - 1] = closes - 1, closes
    sent_at[low.bring[givers]] = place[givers]
    return sender, sent_at
