"""How a run ended that a stop may have cut short."""

from dataclasses import dataclass

from hops.engine.fault_windows import FaultWindows
from hops.faults.plan import Fault, FaultKind
from hops.program.action import Action, Op
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


def stopped_by_faults(windows: FaultWindows, at_ns: int, ranks: tuple[int, ...], completed: int) -> Interruption:
    """The end that stops of these ranks' devices bring at this moment."""
    faults = windows.stops_at(at_ns, ranks)
    names = ", ".join(dict.fromkeys(fault.target for fault in faults))
    message = f"stopped at {at_ns / 1e6:.3f} ms: {names}"
    return Interruption(at_ns=at_ns, message=message, faults=faults, ranks=ranks, completed_iterations=completed)


def timed_out(
    windows: FaultWindows, at_ns: int, what: str, ranks: tuple[int, ...], link: int, completed: int
) -> Interruption:
    """The end that comes when the transport of `what`, which these ranks wait for, gives a link up."""
    timeout, name = windows.faults.link_timeout_ns, windows.links[link]
    assert timeout is not None, "without a timeout nothing is given up"
    since, _ = windows.down_since(link, at_ns)
    message = (
        f"the job failed at {at_ns / 1e6:.3f} ms: {what} waited {timeout / 1e6:.3f} ms for the link {name}, down "
        f"since {since / 1e6:.3f} ms, and the transport timed out; raise the timeout, or let messages wait"
    )
    faults = tuple(
        fault
        for fault in windows.faults.plan.during(at_ns, at_ns + 1)
        if fault.kind is FaultKind.LINK_DOWN and fault.target == name
    )
    return Interruption(at_ns=at_ns, message=message, faults=faults, ranks=ranks, completed_iterations=completed)


def words_of_work(stage: int, op: Op, microbatch: int, ranks: tuple[int, ...]) -> str:
    """Work, for messages: `2F0 of rank 2`, `TIED_REDUCE of ranks 0 and 3`; stage -1: no action."""
    what = op.name if stage < 0 else str(Action(stage, op, microbatch))
    return f"{what} of rank{'s' if len(ranks) > 1 else ''} {' and '.join(map(str, ranks))}"


def words_of_message(action: Action, ranks: tuple[int, int]) -> str:
    """A message, for messages."""
    return f"the output of {action} from rank {ranks[0]} to rank {ranks[1]}"
