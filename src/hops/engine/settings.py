"""How a run is carried out, apart from what is run and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hops.faults.plan import NO_FAULTS, FaultPlan


class P2P(Enum):
    """How ranks send messages to each other."""

    OVERLAPPED = "overlapped"  # the sender goes on at once
    BLOCKING = "blocking"  # rendezvous: both ranks are busy until the message is delivered
    BLOCKING_FUSED = "blocking_fused"  # a send and the next receive are posted together, as Megatron-LM does
    CALLS = "calls"  # what fused ones become with several stages per rank, if the calls of all ranks meet
    POSTED = "posted"  # a message starts once its send and its receive are posted; nobody is busy with it


class Engine(Enum):
    """What carries a run out. Both give the same trace, in every column."""

    AUTO = "auto"  # the reference for policies and while little was simulated, else the compiled one
    REFERENCE = "reference"  # plain Python: starts at once, runs anything
    COMPILED = "compiled"  # some twenty times as fast; programs only, needs numba, takes a moment to load


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What breaks during a run.

    Attributes:
        plan: the faults; an empty plan changes nothing.
        devices: id per rank of the device it runs on, as targets of the plan name it; () names them rank0, rank1, ...
        reduction_links: per rank, names of the links that its gradient reduction crosses; (): of none.
        link_timeout_ns: how long a message or reduction waits for a link that is down before the job fails; None: as
            long as it takes.
    """

    plan: FaultPlan = NO_FAULTS
    devices: tuple[str, ...] = ()
    reduction_links: tuple[tuple[str, ...], ...] = ()
    link_timeout_ns: int | None = None


NOTHING_BREAKS = Faults()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run is carried out.

    Attributes:
        iterations: optimizer steps to simulate, >= 1.
        seed: the run's one seed.
        p2p: how messages are sent.
        pair_factor: time of a pair over that of its two actions apart.
        host_per_action_ns: the host's time between two entries of a rank's stream, in which the rank starts nothing.
        schedule: name for the trace.
        devices, hosts: names per rank for the trace; () names them by rank.
        faults: what breaks.
        engine: what carries it out.
        on_iteration: called with the number of every finished iteration (progress).
    """

    iterations: int = 1
    seed: int = 0
    p2p: P2P = P2P.OVERLAPPED
    pair_factor: float = 1.0
    host_per_action_ns: int = 0
    schedule: str = ""
    devices: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    faults: Faults = NOTHING_BREAKS
    engine: Engine = Engine.AUTO
    on_iteration: Callable[[int], None] | None = None
