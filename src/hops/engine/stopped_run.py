"""How a run ended that a stop may have cut short."""

from dataclasses import dataclass

from hops.faults.plan import Fault
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """What stopped a run.

    Attributes:
        at_ns: when.
        message: in words.
        faults: those that did it, all that began (or timed out) at that moment.
        ranks: that they hit, or that waited for too long.
        completed_iterations: iterations that all ranks had ended by then.
    """

    at_ns: int
    message: str
    faults: tuple[Fault, ...]
    ranks: tuple[int, ...]
    completed_iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedRun:
    """The trace up to the end, or up to an interruption; then what was under way on any rank is in it as lost."""

    trace: Trace
    interruption: Interruption | None = None
