"""Simulate a spec, summarize the run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hops.build.faults import build_inventory, build_plan, check_horizon
from hops.build.prepared import arranged, check_fit, check_weights_fit
from hops.build.setup import Setup, build
from hops.engine.simulate import run_policy, run_program
from hops.faults.plan import NO_FAULTS, FaultPlan
from hops.metrics.summarize import summarize as summarize_trace
from hops.metrics.summary import RunFacts, Summary
from hops.spec.spec import Spec
from hops.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """A spec that has been run: what was built, what broke, and what happened."""

    setup: Setup
    trace: Trace
    plan: FaultPlan = NO_FAULTS

    @property
    def facts(self) -> RunFacts:
        return self.setup.facts

    def __repr__(self) -> str:
        meta = self.trace.meta
        ran = f"{meta.num_ranks} ranks, {self.trace.num_iterations} iterations, {len(self.trace)} rows"
        return f"SimulatedRun({meta.schedule}, {ran})"


def simulate(spec: Spec, *, on_iteration: Callable[[int], None] | None = None) -> SimulatedRun:
    """Run a spec.

    Args:
        spec: from `hops.load`.
        on_iteration: called with the number of every finished iteration.

    Raises DoesNotFitError before it runs if memory is too small, StalledError if ranks wait for each other for ever
    (or for what is never repaired), JobFailedError if a link is down for longer than the transport waits.
    """
    return simulate_setup(build(spec), on_iteration=on_iteration)


def simulate_setup(setup: Setup, *, on_iteration: Callable[[int], None] | None = None) -> SimulatedRun:
    """Run what `build` built, with the faults that its spec's failure section makes."""
    spec = setup.spec
    plan = build_plan(spec, build_inventory(spec, setup.network)).of_hardware() if spec.failure.enabled else NO_FAULTS
    settings = replace(setup.settings, on_iteration=on_iteration)
    if plan:
        settings = replace(settings, faults=replace(settings.faults, plan=plan))
    program = arranged(setup)
    if program is not None:
        check_fit(setup, program)
        trace = run_program(program, setup.costs, setup.network, settings)
    else:
        check_weights_fit(setup)
        trace = run_policy(setup.scheduler().placed(setup.expected), setup.costs, setup.network, settings)
    check_horizon(spec, int(trace.end_ns.max(initial=0)))
    return SimulatedRun(setup=setup, trace=trace, plan=plan)


def summarize(run: SimulatedRun) -> Summary:
    """Every metric of a simulated run."""
    return summarize_trace(run.trace, run.facts)
