"""How an output reaches the next stage: overlapped with what its ranks do, or as a rendezvous, with or without waiting.

Overlapped: the sender goes on at once, the receiver takes its input when it needs it.

Blocking: a rendezvous starts when send and receive are both posted. A rank posts a send when the action that produced
it ends, and a receive when its next action needs one. With `fused` pairs (Megatron-LM's send_forward_recv_backward and
its kin) it posts, together with a send, the next receive that it needs before it sends again, if that comes from the
same peer. With several stages per rank, calls take all directions at once (Megatron-LM's
send_forward_backward_recv_forward_backward, see `hops.program.calls`). Where those of an order do not meet, receives
are posted one exchange ahead: a message starts when it is sent, and the receiver starts no further action until it is
there. A policy's rank receives what is offered while it is idle, since nobody knows what it will ask for.

Posted: a rendezvous, too, but nobody is busy: sends are posted when their action ends, receives one entry early
(`hops.program.postings`), and a message starts at the later of the two. A policy's rank has all receives posted.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from hops.engine.iteration import Iteration
from hops.engine.settings import P2P
from hops.program.action import Action

if TYPE_CHECKING:
    from hops.engine.reference import ReferenceRun

ANY = -2  # the rank receives from anybody
NOBODY = -1


class Transport(ABC):
    """What the reference asks about messages, rank by rank."""

    @staticmethod
    def of(mode: P2P, run: "ReferenceRun") -> "Transport":
        """The transport of a mode."""
        if mode is P2P.POSTED and not run.order.is_policy:
            return Posted(run)
        if mode in {P2P.OVERLAPPED, P2P.POSTED}:
            return Overlapped(run)
        if mode is P2P.CALLS and not run.order.is_policy:
            return Calls(run)
        return Blocking(run, fused=mode is not P2P.BLOCKING)

    @abstractmethod
    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        """An action has ended whose output, known as `key`, another rank needs."""

    def holds(self, rank: int) -> bool:
        """Whether messages keep the rank from starting anything."""
        return False

    def reach(self, rank: int) -> None:
        """The rank has got to its next action, whose input may be missing."""

    def await_input(self, rank: int, key: int) -> None:
        """The rank's next action lacks this message."""

    def idle(self, rank: int) -> None:
        """The rank does not know what it wants next."""

    def close(self, rank: int) -> None:
        """The rank starts an action."""

    def delivered(self, pair: tuple[int, int]) -> None:
        """A message from rank to rank is there."""

    def waits_to_send(self, rank: int) -> str:
        """The sends that the rank waits with, in words; empty: none."""
        return ""

    def advice(self) -> str:
        """How to get rid of a stall."""
        return "check the program: each rank's order must be possible given the others' (hops schedule check)"


class Overlapped(Transport):
    """Messages cost the ranks nothing but waiting."""

    def __init__(self, run: "ReferenceRun") -> None:
        self._run = run

    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        self._run.transmit(iteration, action, key)


class Posted(Transport):
    """A message starts when its send and its receive are posted; both ranks go on."""

    def __init__(self, run: "ReferenceRun") -> None:
        self._run = run
        self._offers: dict[tuple[int, int], _Offer] = {}  # by (iteration, key): sends whose receive is not posted
        self._wanted: set[tuple[int, int]] = set()  # receives that were posted before their send

    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        posted = (iteration.number, key)
        if posted in self._wanted:
            self._wanted.remove(posted)
            self._run.transmit(iteration, action, key)
        else:
            self._offers[posted] = _Offer(iteration, action, key)

    def reach(self, rank: int) -> None:
        number = self._run.current[rank].number
        for key in self._run.order.receives(rank):
            offer = self._offers.pop((number, key), None)
            if offer is None:
                self._wanted.add((number, key))
            else:
                self._run.transmit(*offer)


class _Offer(NamedTuple):
    """A posted send."""

    iteration: Iteration
    action: Action
    key: int


class Blocking(Transport):
    """Messages keep sender and receiver busy."""

    def __init__(self, run: "ReferenceRun", *, fused: bool) -> None:
        shape = run.wiring.shape
        self._run, self._fused = run, fused
        self._all_directions = fused and shape.num_stages > shape.num_ranks
        self._outstanding = [0] * shape.num_ranks  # transfers the rank has posted or carries out
        self._offers: list[list[_Offer]] = [[] for _ in range(shape.num_ranks)]  # by receiver, first posted first
        self._wanted: list[set[tuple[int, int]]] = [set() for _ in range(shape.num_ranks)]  # (iteration, key) posted
        self._open_to = [NOBODY] * shape.num_ranks  # whom the rank receives from, besides

    def holds(self, rank: int) -> bool:
        return self._outstanding[rank] > 0

    def await_input(self, rank: int, key: int) -> None:
        self._want(rank, self._run.current[rank], key)

    def idle(self, rank: int) -> None:
        self._open(rank, ANY)

    def close(self, rank: int) -> None:
        self._open_to[rank] = NOBODY

    def emit(self, iteration: Iteration, action: Action, key: int) -> None:
        source, target = self._run.ends_of(action)
        self._outstanding[source] += 1
        if self._fused:
            self._want_with(source, iteration, target)
        self._offers[target].append(_Offer(iteration, action, key))
        self._match(target)

    def delivered(self, pair: tuple[int, int]) -> None:
        for rank in pair:
            self._outstanding[rank] -= 1
            if not self._outstanding[rank]:
                self._open_to[rank] = NOBODY
                self._run.loop.wake(rank)

    def _want_with(self, rank: int, iteration: Iteration, peer: int) -> None:
        """Post the receive that is fused with a send to `peer`, if there is one."""
        order = self._run.order
        key = order.next_receive(rank, iteration)
        if order.is_policy:
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
            elif self._all_directions or self._open_to[rank] in {ANY, self._run.ends_of(offer.action)[0]}:
                self._open_to[rank] = NOBODY
                self._outstanding[rank] += 1
            else:
                continue
            self._offers[rank].remove(offer)
            self._run.transmit(*offer)

    def _source(self, key: int) -> int:
        """The rank that a message comes from."""
        wiring = self._run.wiring
        stage, is_gradient, _ = wiring.key_of(key)
        return wiring.shape.rank_of_stage[stage + 1 if is_gradient else stage - 1]

    def waits_to_send(self, rank: int) -> str:
        return "; ".join(
            f"waits to send the output of {offer.action} to rank {target}"
            for target, offers in enumerate(self._offers)
            for offer in offers
            if self._run.ends_of(offer.action)[0] == rank
        )

    def advice(self) -> str:
        if self._fused:
            return "with blocking messages this order cannot run; try p2p: posted or overlapped"
        return (
            "with blocking messages this order cannot run; try p2p: blocking_fused (as Megatron-LM does), posted (as "
            "PyTorch does) or overlapped"
        )


class Calls(Blocking):
    """A rank's call posts its sends, and the receives of its next entry; it goes on when all are delivered."""

    def __init__(self, run: "ReferenceRun") -> None:
        super().__init__(run, fused=False)

    def reach(self, rank: int) -> None:
        for key in self._run.order.receives(rank):
            self._want(rank, self._run.current[rank], key)

    def await_input(self, rank: int, key: int) -> None:
        """It has been posted."""
