"""The ways in: run a program or a policy, to the end or until something stops it."""

from hops.cost.base import CostModel
from hops.cost.paired import paired
from hops.engine.choice import check_policy, is_compiled_worth_it
from hops.engine.compiled_run import run_compiled
from hops.engine.rank_order import FixedOrder, PolicyOrder
from hops.engine.reference import ReferenceRun
from hops.engine.settings import RunSettings
from hops.engine.stopped_run import StoppedRun
from hops.engine.tables import Inputs
from hops.hardware.network import Network
from hops.program.lowering import Lowered, lower
from hops.program.policy import PlacedPolicy
from hops.program.program import Program
from hops.program.wiring import wire
from hops.recent import Recent
from hops.trace.trace import Trace


def run_program(program: Program, costs: CostModel, network: Network, settings: RunSettings | None = None) -> Trace:
    """Simulate a program, which is checked first.

    What faults (in the settings) hit is done again once it is repaired. Raises ProgramError if the program cannot run;
    StalledError if ranks end up waiting for each other, or for what is never repaired; JobFailedError if a link is down
    for longer than the transport waits; UsageError if the engine that the settings ask for is not there.
    """
    settings = settings or RunSettings()
    done = _compiled(program, _lowered(program, costs), costs, network, settings, until_stop=False)
    if done is not None:
        return done.trace
    return _of_program(program, costs, network, settings).run()


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
    done = _compiled(program, _lowered(program, costs), costs, network, settings, until_stop=True)
    if done is not None:
        return done
    return _of_program(program, costs, network, settings).run_until_stop()


def run_policy_until_stop(
    order: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings
) -> StoppedRun:  # fmt: skip
    """The same for a policy."""
    return _of_policy(order, costs, network, settings).run_until_stop()


SHARED_ACTIONS = 20_000  # of larger programs nothing is kept for the next run
_LOWERED: Recent[Lowered] = Recent(64)


def _lowered(program: Program, costs: CostModel) -> Lowered:
    stages = program.shape.num_stages
    assert costs.num_stages == stages, f"costs of {costs.num_stages} stages for {stages}"
    return _LOWERED.of((program,), lambda: lower(program), keep=lambda _: program.num_actions <= SHARED_ACTIONS)


def _compiled(
    program: Program, low: Lowered, costs: CostModel, network: Network, settings: RunSettings, *, until_stop: bool
) -> StoppedRun | None:
    """The run in the compiled engine; None: it is the reference's, or it ends where only that has words."""
    if not is_compiled_worth_it(program, settings):
        return None
    inputs = Inputs.of(program, low, paired(costs, program, settings.pair_factor), network, settings)
    del low  # it is as large as half a trace
    return run_compiled(inputs, until_stop=until_stop)


def _of_program(program: Program, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    wiring = wire(program.shape)
    costs = paired(costs, program, settings.pair_factor)
    return ReferenceRun(FixedOrder(program, wiring), wiring, costs, network, settings)


def _of_policy(placed: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    check_policy(settings)
    wiring = wire(placed.shape)
    order = PolicyOrder(placed.policy, wiring)
    run = ReferenceRun(order, wiring, costs, network, settings)
    order.clock = lambda: run.loop.now
    return run
