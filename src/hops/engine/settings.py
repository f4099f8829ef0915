"""How a run is carried out, apart from what is run and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class P2P(Enum):
    """How ranks send messages to each other."""

    OVERLAPPED = "overlapped"  # the sender goes on at once
    BLOCKING = "blocking"  # rendezvous: both ranks are busy until the message is delivered
    BLOCKING_FUSED = "blocking_fused"  # a send and the next receive are posted together, as Megatron-LM does


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a run is carried out.

    Attributes:
        iterations: optimizer steps to simulate, >= 1.
        seed: the run's one seed.
        p2p: how messages are sent.
        schedule: name for the trace.
        devices, hosts: names per rank for the trace; () names them by rank.
        on_iteration: called with the number of every finished iteration (progress).
    """

    iterations: int = 1
    seed: int = 0
    p2p: P2P = P2P.OVERLAPPED
    schedule: str = ""
    devices: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    on_iteration: Callable[[int], None] | None = None
