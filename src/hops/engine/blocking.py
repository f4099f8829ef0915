"""Blocking messages: a rendezvous starts when send and receive are both posted, and keeps both ranks busy.

A rank posts a send when the action that produced it ends, and a receive when its next action needs one. With `fused`
pairs (Megatron-LM's send_forward_recv_backward and its kin) it posts, together with a send, the next receive that it
needs before it sends again, if that comes from the same peer. With several stages per rank, fused exchanges take all
directions at once (Megatron-LM's send_forward_backward_recv_forward_backward), and what is received is posted one
exchange ahead: so a message starts when it is sent, and the receiver starts no further action until it is there.
A policy's rank receives what is offered while it is idle, since nobody knows what it will ask for.
"""

from typing import NamedTuple

from hops.cost.base import CostModel
from hops.engine.iteration import Iteration
from hops.engine.rank_order import RankOrder
from hops.engine.run import ReferenceRun
from hops.engine.settings import P2P, RunSettings
from hops.hardware.network import Network
from hops.program.action import Action
from hops.program.wiring import Wiring

ANY = -2  # the rank receives from anybody
NOBODY = -1


class _Offer(NamedTuple):
    """A posted send."""

    iteration: Iteration
    action: Action
    key: int


class BlockingRun(ReferenceRun):
    """A run whose messages keep sender and receiver busy."""

    def __init__(
        self, order: RankOrder, wiring: Wiring, costs: CostModel, network: Network, settings: RunSettings
    ) -> None:
        super().__init__(order, wiring, costs, network, settings)
        ranks = wiring.shape.num_ranks
        self._fused = settings.p2p is P2P.BLOCKING_FUSED
        self._all_directions = self._fused and wiring.shape.num_stages > ranks
        self._outstanding = [0] * ranks  # transfers the rank has posted or carries out
        self._offers: list[list[_Offer]] = [[] for _ in range(ranks)]  # by receiving rank, first posted first
        self._wanted: list[set[tuple[int, int]]] = [set() for _ in range(ranks)]  # (iteration, key) posted receives
        self._open_to = [NOBODY] * ranks  # whom the rank receives from, besides

    def advance(self, rank: int) -> None:
        if self.busy[rank] or self.left[rank] or self._outstanding[rank]:
            return
        iteration = self.current[rank]
        action = self.order.peek(rank)
        if action is None:
            if self.order.is_done(rank):
                self.end_iteration(rank)
            else:  # a policy that waits for something to come
                self._open(rank, ANY)
        elif self.order.can_start(iteration, rank, action):
            self._open_to[rank] = NOBODY
            self.order.take(rank)
            self.start(rank, action)
        else:
            self._want(rank, iteration, self.order.lacks(iteration, rank, action))

    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        source, target = self._ends(action)
        self._outstanding[source] += 1
        if self._fused:
            self._want_with(source, iteration, target)
        self._offers[target].append(_Offer(iteration, action, key))
        self._match(target)

    def received(self, iteration: Iteration, action: Action, key: int, sent_ns: int) -> None:
        super().received(iteration, action, key, sent_ns)
        for rank in self._ends(action):
            self._outstanding[rank] -= 1
            if not self._outstanding[rank]:
                self._open_to[rank] = NOBODY
                self.loop.wake(rank)

    def _want_with(self, rank: int, iteration: Iteration, peer: int) -> None:
        """Post the receive that is fused with a send to `peer`, if there is one."""
        key = self.order.next_receive(rank, iteration)
        if self.order.is_policy:
            self._open(rank, peer)
        elif not self._all_directions and key is not None and self._source(key) == peer:
            self._want(rank, iteration, key)

    def _want(self, rank: int, iteration: Iteration, key: int) -> None:
        """Post a receive; the rank is busy until it is there."""
        self._wanted[rank].add((iteration.number, key))
        self._outstanding[rank] += 1
        self._match(rank)

    def _open(self, rank: int, peer: int) -> None:
        """Let the rank receive what is offered; it is not held up by that until something comes."""
        self._open_to[rank] = peer
        self._match(rank)

    def _match(self, rank: int) -> None:
        """Start the transfers to `rank` that both sides have posted."""
        for offer in list(self._offers[rank]):
            posted = (offer.iteration.number, offer.key)
            if posted in self._wanted[rank]:
                self._wanted[rank].remove(posted)
            elif self._all_directions or self._open_to[rank] in {ANY, self._ends(offer.action)[0]}:
                self._open_to[rank] = NOBODY
                self._outstanding[rank] += 1
            else:
                continue
            self._offers[rank].remove(offer)
            self.transmit(*offer)

    def _ends(self, action: Action) -> tuple[int, int]:
        """Sending and receiving rank of an action's output."""
        return self.wiring.shape.rank_of_stage[action.stage], self.wiring.target[action.stage][action.op]

    def _source(self, key: int) -> int:
        """The rank that a message comes from."""
        stage, is_gradient, _ = self.wiring.key_of(key)
        return self.wiring.shape.rank_of_stage[stage + 1 if is_gradient else stage - 1]

    def waits_for(self, rank: int) -> str:
        sends = [
            f"waits to send the output of {offer.action} to rank {target}"
            for target, offers in enumerate(self._offers)
            for offer in offers
            if self._ends(offer.action)[0] == rank
        ]
        return "; ".join([*sends, *([] if sends else [super().waits_for(rank)])])

    def advice(self) -> str:
        if self._fused:
            return "with blocking messages this order cannot run; try p2p: overlapped"
        return (
            "with blocking messages this order cannot run; try p2p: blocking_fused (as Megatron-LM does) or overlapped"
        )
