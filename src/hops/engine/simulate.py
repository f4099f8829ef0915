"""The ways in: run a program or a policy, to the end or until something stops it."""

from hops.cluster import Network
from hops.cost import CostModel
from hops.engine.blocking import BlockingRun
from hops.engine.disturbed import Disturbed, DisturbedBlockingRun, DisturbedOverlappedRun
from hops.engine.meta import message_sizes, trace_meta
from hops.engine.orders import FixedOrder, Order, PolicyOrder
from hops.engine.outcome import Outcome
from hops.engine.overlapped import OverlappedRun
from hops.engine.quick import quick_rows
from hops.engine.recorder import MAX_MICROBATCHES, MAX_STAGES
from hops.engine.run import Run
from hops.engine.settings import P2P, Settings
from hops.engine.wiring import Wiring, wire
from hops.errors import UsageError
from hops.schedule import Profile, Program, Scheduler, Shape
from hops.trace import Trace

_KINDS: dict[tuple[bool, bool], type[Run]] = {  # (messages overlap, something breaks)
    (True, False): OverlappedRun,
    (False, False): BlockingRun,
    (True, True): DisturbedOverlappedRun,
    (False, True): DisturbedBlockingRun,
}


def run_program(program: Program, costs: CostModel, network: Network, settings: Settings | None = None) -> Trace:
    """Simulate a program, which must have passed `Program.check`.

    What faults (in the settings) hit is done again once it is repaired. Raises StalledError if ranks end up waiting for
    each other, or for what is never repaired; JobFailedError if a link is down for longer than the transport waits.
    """
    settings = settings or Settings()
    if settings.p2p is P2P.OVERLAPPED and not settings.faults.plan and not settings.by_events:
        rows = quick_rows(program, _wire(program.shape, costs), costs, network, settings)
        if rows is not None:
            return rows.trace(trace_meta(program.shape, network, settings), message_sizes(costs))
    return _of_program(program, costs, network, settings).run()


def run_policy(
    scheduler: Scheduler, profile: Profile, costs: CostModel, network: Network, settings: Settings | None = None
) -> Trace:
    """Configure a policy with a profile and simulate what it decides.

    Raises ProgramError if it returns an impossible action, StalledError if it leaves work undone, and what
    `run_program` raises.
    """
    return _of_policy(scheduler, profile, costs, network, settings or Settings()).run()


def run_program_until_stop(program: Program, costs: CostModel, network: Network, settings: Settings) -> Outcome:
    """Simulate a program until the first stop that hits one of its devices; a transport that gives up stops it, too.

    At that moment all that is under way, anywhere, is lost.
    """
    if not settings.faults.plan:
        return Outcome(trace=run_program(program, costs, network, settings))
    return _to_first_stop(_of_program(program, costs, network, settings))


def run_policy_until_stop(
    scheduler: Scheduler, profile: Profile, costs: CostModel, network: Network, settings: Settings
) -> Outcome:
    """The same for a policy."""
    if not settings.faults.plan:
        return Outcome(trace=run_policy(scheduler, profile, costs, network, settings))
    return _to_first_stop(_of_policy(scheduler, profile, costs, network, settings))


def _to_first_stop(run: Run) -> Outcome:
    assert isinstance(run, Disturbed), "runs with faults are disturbed"
    return run.run_until_stop()


def _of_program(program: Program, costs: CostModel, network: Network, settings: Settings) -> Run:
    wiring = _wire(program.shape, costs)
    return _make(FixedOrder(program, wiring), wiring, costs, network, settings)


def _of_policy(scheduler: Scheduler, profile: Profile, costs: CostModel, network: Network, settings: Settings) -> Run:
    scheduler.configure(profile)
    wiring = _wire(profile.shape, costs)
    order = PolicyOrder(scheduler, wiring)
    run = _make(order, wiring, costs, network, settings)
    order.clock = lambda: run.loop.now
    return run


def _wire(shape: Shape, costs: CostModel) -> Wiring:
    assert costs.num_stages == shape.num_stages, f"costs of {costs.num_stages} stages for {shape.num_stages}"
    if shape.num_microbatches > MAX_MICROBATCHES or shape.num_stages > MAX_STAGES:
        raise UsageError(
            f"too large: got {shape.num_microbatches} microbatches on {shape.num_stages} stages, "
            f"expected at most {MAX_MICROBATCHES} and {MAX_STAGES}"
        )
    return wire(shape)


def _make(order: Order, wiring: Wiring, costs: CostModel, network: Network, settings: Settings) -> Run:
    overlapped, disturbed = settings.p2p is P2P.OVERLAPPED, bool(settings.faults.plan)
    kind = _KINDS[overlapped, disturbed]
    return kind(order, wiring, costs, network, settings)
