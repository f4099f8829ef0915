"""A trace freezes into the program that made it."""

from dataclasses import replace

import pytest

from hops.cost.table import TableCosts
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import TraceError
from hops.hardware.network import Network
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace


def trace_of(name, *, iterations=1):
    scheduler = SCHEDULERS.get(name)()
    profile = StageCosts.uniform(scheduler.shape(4, 8))
    program = scheduler.build(profile)
    costs = TableCosts.uniform(profile.shape.num_stages)
    settings = RunSettings(iterations=iterations)
    return program, run_program(program, costs, Network.uniform(4, latency_s=0.2), settings)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "zero_bubble"])
def test_the_trace_of_a_program_freezes_into_the_program(name):
    program, trace = trace_of(name)
    assert program_from_trace(trace) == program


def test_every_iteration_can_be_frozen():
    program, trace = trace_of("1f1b", iterations=3)
    assert [program_from_trace(trace, iteration=number) for number in range(3)] == [program] * 3


def test_an_iteration_that_is_not_there_is_refused():
    _, trace = trace_of("1f1b", iterations=2)
    with pytest.raises(TraceError, match="no compute actions of iteration 5; it has iterations 0 to 1"):
        program_from_trace(trace, iteration=5)
    with pytest.raises(TraceError, match="no compute actions of any iteration; it has none"):
        program_from_trace(trace.where(trace.rank < 0))


def test_pairs_are_found_again_so_that_a_frozen_run_takes_as_long_as_the_run():
    """DualPipeV on unequal stages: the program of its trace is the program, and comes to the same times."""
    shape = SCHEDULERS.get("dualpipe_v")().shape(4, 10)
    forward = tuple(0.001 * (1 + stage % 3) for stage in range(shape.num_stages))
    profile = replace(StageCosts.uniform(shape, f=0.001, i=0.002, w=0.001), forward_s=forward)
    program = SCHEDULERS.get("dualpipe_v")().build(profile)
    assert program.closes_pair.any()
    costs = TableCosts.of(
        forward_s=forward,
        input_backward_s=profile.input_backward_s,
        weight_backward_s=profile.weight_backward_s,
    )
    trace = run_program(program, costs, Network.uniform(4))
    frozen = program_from_trace(trace)
    assert frozen == program
    assert evaluate(frozen, profile).makespan_ns == trace.end_ns.max()
    apart = Program.of(shape, [program.actions(rank) for rank in range(4)])
    assert evaluate(apart, profile).makespan_ns != trace.end_ns.max()
    assert apart != program
    assert apart.same_order(program)
