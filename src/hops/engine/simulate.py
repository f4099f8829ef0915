"""The ways in: run a program or a policy, to the end or until something stops it."""

from dataclasses import replace

from hops.cost.base import CostModel
from hops.engine.blocking import BlockingRun
from hops.engine.choice import check_policy, is_compiled_worth_it
from hops.engine.compiled_run import run_compiled
from hops.engine.disturbed import Disturbed, DisturbedBlockingRun, DisturbedOverlappedRun
from hops.engine.overlapped import OverlappedRun
from hops.engine.rank_order import FixedOrder, PolicyOrder, RankOrder
from hops.engine.rows import MAX_MICROBATCHES, MAX_STAGES
from hops.engine.run import ReferenceRun
from hops.engine.settings import P2P, RunSettings
from hops.engine.stopped_run import StoppedRun
from hops.engine.tables import Inputs
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.program.lowering import lower
from hops.program.program import Program
from hops.program.shape import Shape
from hops.program.wiring import Wiring, wire
from hops.schedules.base import Scheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.order import with_pairs
from hops.trace.trace import Trace

_KINDS: dict[tuple[bool, bool], type[ReferenceRun]] = {  # (messages overlap, something breaks)
    (True, False): OverlappedRun,
    (False, False): BlockingRun,
    (True, True): DisturbedOverlappedRun,
    (False, True): DisturbedBlockingRun,
}


def run_program(program: Program, costs: CostModel, network: Network, settings: RunSettings | None = None) -> Trace:
    """Simulate a program, which is checked first.

    What faults (in the settings) hit is done again once it is repaired. Raises ProgramError if the program cannot run;
    StalledError if ranks end up waiting for each other, or for what is never repaired; JobFailedError if a link is down
    for longer than the transport waits.
    """
    settings, low = settings or RunSettings(), lower(program)
    if is_compiled_worth_it(program, settings):
        done = run_compiled(Inputs(program, low, costs, network, settings), until_stop=False)
        if done is not None:
            return done.trace
    return with_pairs(_of_program(program, costs, network, settings).run(), program)


def run_policy(
    scheduler: Scheduler, profile: StageCosts, costs: CostModel, network: Network, settings: RunSettings | None = None
) -> Trace:
    """Configure a policy with a profile and simulate what it decides.

    Raises ProgramError if it returns an impossible action, StalledError if it leaves work undone, and what
    `run_program` raises.
    """
    return _of_policy(scheduler, profile, costs, network, settings or RunSettings()).run()


def run_program_until_stop(program: Program, costs: CostModel, network: Network, settings: RunSettings) -> StoppedRun:
    """Simulate a program until the first stop that hits one of its devices; a transport that gives up stops it, too.

    At that moment all that is under way, anywhere, is lost.
    """
    if not settings.faults.plan:
        return StoppedRun(trace=run_program(program, costs, network, settings))
    low = lower(program)
    if is_compiled_worth_it(program, settings):
        done = run_compiled(Inputs(program, low, costs, network, settings), until_stop=True)
        if done is not None:
            return done
    stopped = _to_first_stop(_of_program(program, costs, network, settings))
    return replace(stopped, trace=with_pairs(stopped.trace, program))


def run_policy_until_stop(
    scheduler: Scheduler, profile: StageCosts, costs: CostModel, network: Network, settings: RunSettings
) -> StoppedRun:
    """The same for a policy."""
    if not settings.faults.plan:
        return StoppedRun(trace=run_policy(scheduler, profile, costs, network, settings))
    return _to_first_stop(_of_policy(scheduler, profile, costs, network, settings))


def _to_first_stop(run: ReferenceRun) -> StoppedRun:
    assert isinstance(run, Disturbed), "runs with faults are disturbed"
    return run.run_until_stop()


def _of_program(program: Program, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    wiring = _wire(program.shape, costs)
    return _make(FixedOrder(program, wiring), wiring, costs, network, settings)


def _of_policy(
    scheduler: Scheduler, profile: StageCosts, costs: CostModel, network: Network, settings: RunSettings
) -> ReferenceRun:
    check_policy(settings)
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


def _make(order: RankOrder, wiring: Wiring, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    overlapped, disturbed = settings.p2p is P2P.OVERLAPPED, bool(settings.faults.plan)
    kind = _KINDS[overlapped, disturbed]
    return kind(order, wiring, costs, network, settings)
