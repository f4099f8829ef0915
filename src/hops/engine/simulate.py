"""The ways in: run a program or a policy, to the end or until something stops it."""

from dataclasses import replace
from typing import NamedTuple

from hops.compiled import load
from hops.cost.base import CostModel
from hops.cost.paired import paired
from hops.engine.choice import check_policy, is_compiled_worth_it, will_load
from hops.engine.compiled_run import run_compiled
from hops.engine.rank_order import FixedOrder, PolicyOrder
from hops.engine.reference import ReferenceRun
from hops.engine.settings import P2P, RunSettings
from hops.engine.stopped_run import StoppedRun
from hops.engine.tables import Inputs
from hops.hardware.network import Network
from hops.program.calls import with_calls
from hops.program.lowering import Lowered, lower, lower_complete
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
    prepared = EngineProgram.of(program, costs, settings or RunSettings())
    done = _compiled(prepared, prepared.lowered(), costs, network, until_stop=False)
    if done is not None:
        return done.trace
    return _of_program(prepared, costs, network).run()


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
    prepared = EngineProgram.of(program, costs, settings)
    done = _compiled(prepared, prepared.lowered(), costs, network, until_stop=True)
    if done is not None:
        return done
    return _of_program(prepared, costs, network).run_until_stop()


def run_policy_until_stop(
    order: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings
) -> StoppedRun:  # fmt: skip
    """The same for a policy."""
    return _of_policy(order, costs, network, settings).run_until_stop()


SHARED_ACTIONS = 20_000  # of larger programs nothing is kept for the next run
_LOWERED: Recent[Lowered] = Recent(64)
_COUPLES: Recent[Program | None] = Recent(64)


class EngineProgram(NamedTuple):
    """A program, the same with what stands between two calls as entries, and the settings of that."""

    program: Program
    couples: Program
    settings: RunSettings

    @classmethod
    def of(cls, program: Program, costs: CostModel, settings: RunSettings) -> "EngineProgram":
        stages = program.shape.num_stages
        assert costs.num_stages == stages, f"costs of {costs.num_stages} stages for {stages}"
        if settings.p2p not in {P2P.BLOCKING_FUSED, P2P.CALLS}:
            return cls(program, program, settings)
        if stages > program.num_ranks:
            couples = _COUPLES.of((program,), lambda: with_calls(program), keep=lambda _: _is_shared(program))
            if couples is not None:
                return cls(program, couples, replace(settings, p2p=P2P.CALLS))
        return cls(program, program, replace(settings, p2p=P2P.BLOCKING_FUSED))

    def lowered(self) -> Lowered:
        """What runs, checked; by compiled code if a compiled engine is to run it."""
        if will_load(self.program, self.settings):
            load()
        make = lower if self.couples is self.program else lower_complete
        return _LOWERED.of((self.couples,), lambda: make(self.couples), keep=lambda _: _is_shared(self.program))


def _is_shared(program: Program) -> bool:
    return program.num_actions <= SHARED_ACTIONS


def _compiled(
    prepared: EngineProgram, low: Lowered, costs: CostModel, network: Network, *, until_stop: bool
) -> StoppedRun | None:
    """The run in the compiled engine; None: it is the reference's, or it ends where only that has words."""
    program, couples, settings = prepared
    if not is_compiled_worth_it(program, settings):
        return None
    costs = paired(costs, program, settings.pair_factor)
    inputs = Inputs.of(program, couples, low, costs, network, settings)
    del low  # it is as large as half a trace
    return run_compiled(inputs, until_stop=until_stop)


def _of_program(prepared: EngineProgram, costs: CostModel, network: Network) -> ReferenceRun:
    program, couples, settings = prepared
    wiring = wire(program.shape)
    costs = paired(costs, program, settings.pair_factor)
    order = FixedOrder(program, wiring, None if couples is program else couples)
    return ReferenceRun(order, wiring, costs, network, settings)


def _of_policy(placed: PlacedPolicy, costs: CostModel, network: Network, settings: RunSettings) -> ReferenceRun:
    check_policy(settings)
    wiring = wire(placed.shape)
    order = PolicyOrder(placed.policy, wiring)
    run = ReferenceRun(order, wiring, costs, network, settings)
    order.clock = lambda: run.loop.now
    return run
