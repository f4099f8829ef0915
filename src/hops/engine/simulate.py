"""The ways in: run a program or a policy, to the end or until something stops it."""

from dataclasses import replace

from hops.cost.base import CostModel
from hops.engine.choice import check_policy, is_compiled_worth_it
from hops.engine.compiled_run import run_compiled
from hops.engine.rank_order import FixedOrder, PolicyOrder
from hops.engine.reference import ReferenceRun
from hops.engine.settings import RunSettings
from hops.engine.stopped_run import StoppedRun
from hops.engine.tables import Inputs
from hops.hardware.network import Network
from hops.program.lowering import lower
from hops.program.policy import PlacedPolicy
from hops.program.program import Program
from hops.program.wiring import wire
from hops.trace.order import with_pairs
from hops.trace.trace import Trace


def run_program(program: Program, costs: CostModel, network: Network, settings: RunSettings | None = None) -> Trace:
    """Simulate a program, which is checked first.

    What faults (in the settings) hit is done again once it is repaired. Raises ProgramError if the program cannot run;
    StalledError if ranks end up waiting for each other, or for what is never repaired; JobFailedError if a link is down
    for longer than the transport waits; UsageError if the engine that the settings ask for is not there.
    """
    inputs = _inputs(program, costs, network, settings or RunSettings())
    if is_compiled_worth_it(program, inputs.settings):
        done = run_compiled(inputs, until_stop=False)
        if done is not None:
            return done.trace
    return with_pairs(_of_program(inputs).run(), program)


def run_policy(order: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings | None = None) -> Trace:
    """Simulate what a policy decides.

    Raises ProgramError if it returns an impossible action, StalledError if it leaves work undone, and what
    `run_program` raises.
    """
    return _of_policy(order, costs, network, settings or RunSettings()).run()


def run_program_until_stop(program: Program, costs: CostModel, network: Network, settings: RunSettings) -> StoppedRun:
    """Simulate a program until the first stop that hits one of its devices; a transport that gives up stops it, too.

    At that moment all that is under way, anywhere, is lost.
    """
    inputs = _inputs(program, costs, network, settings)
    if is_compiled_worth_it(program, settings):
        done = run_compiled(inputs, until_stop=True)
        if done is not None:
            return done
    stopped = _of_program(inputs).run_until_stop()
    return replace(stopped, trace=with_pairs(stopped.trace, program))


def run_policy_until_stop(
    order: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings
) -> StoppedRun:  # fmt: skip
    """The same for a policy."""
    return _of_policy(order, costs, network, settings).run_until_stop()


def _inputs(program: Program, costs: CostModel, network: Network, settings: RunSettings) -> Inputs:
    stages = program.shape.num_stages
    assert costs.num_stages == stages, f"costs of {costs.num_stages} stages for {stages}"
    return Inputs(program, lower(program), costs, network, settings)


def _of_program(inputs: Inputs) -> ReferenceRun:
    wiring = wire(inputs.program.shape)
    order = FixedOrder(inputs.program, wiring)
    return ReferenceRun(order, wiring, inputs.costs, inputs.network, inputs.settings)


def _of_policy(placed: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    check_policy(settings)
    wiring = wire(placed.shape)
    order = PolicyOrder(placed.policy, wiring)
    run = ReferenceRun(order, wiring, costs, network, settings)
    order.clock = lambda: run.loop.now
    return run
