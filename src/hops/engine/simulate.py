"""The two ways in: run a program, or run a policy."""

from hops.cluster import Network
from hops.cost import CostModel
from hops.engine.blocking import BlockingRun
from hops.engine.orders import FixedOrder, Order, PolicyOrder
from hops.engine.overlapped import OverlappedRun
from hops.engine.recorder import MAX_MICROBATCHES, MAX_STAGES
from hops.engine.run import Run
from hops.engine.settings import P2P, Settings
from hops.engine.wiring import Wiring, wire
from hops.errors import UsageError
from hops.schedule import Profile, Program, Scheduler, Shape
from hops.trace import Trace


def run_program(program: Program, costs: CostModel, network: Network, settings: Settings | None = None) -> Trace:
    """Simulate a program, which must have passed `Program.check`.

    Raises StalledError if ranks end up waiting for each other.
    """
    wiring = _wire(program.shape, costs)
    return _make(FixedOrder(program, wiring), wiring, costs, network, settings or Settings()).run()


def run_policy(
    scheduler: Scheduler, profile: Profile, costs: CostModel, network: Network, settings: Settings | None = None
) -> Trace:
    """Configure a policy with a profile and simulate what it decides.

    Raises StalledError if the policy leaves work undone, ProgramError if it returns an impossible action.
    """
    scheduler.configure(profile)
    wiring = _wire(profile.shape, costs)
    order = PolicyOrder(scheduler, wiring)
    run = _make(order, wiring, costs, network, settings or Settings())
    order.clock = lambda: run.loop.now
    return run.run()


def _wire(shape: Shape, costs: CostModel) -> Wiring:
    assert costs.num_stages == shape.num_stages, f"costs of {costs.num_stages} stages for {shape.num_stages}"
    if shape.num_microbatches > MAX_MICROBATCHES or shape.num_stages > MAX_STAGES:
        raise UsageError(
            f"too large: got {shape.num_microbatches} microbatches on {shape.num_stages} stages, "
            f"expected at most {MAX_MICROBATCHES} and {MAX_STAGES}"
        )
    return wire(shape)


def _make(order: Order, wiring: Wiring, costs: CostModel, network: Network, settings: Settings) -> Run:
    kind = OverlappedRun if settings.p2p is P2P.OVERLAPPED else BlockingRun
    return kind(order, wiring, costs, network, settings)
