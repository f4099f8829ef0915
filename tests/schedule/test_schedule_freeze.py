"""A trace freezes into the program that made it."""

import pytest

from hops.cluster import Network
from hops.cost import FixedCosts
from hops.engine import Settings, run_program
from hops.errors import TraceError
from hops.schedule import SCHEDULERS, Profile, freeze


def trace_of(name, *, iterations=1):
    scheduler = SCHEDULERS.get(name)()
    profile = Profile.uniform(scheduler.shape(4, 8))
    program = scheduler.build(profile)
    costs = FixedCosts.uniform(profile.shape.num_stages)
    settings = Settings(iterations=iterations)
    return program, run_program(program, costs, Network.uniform(4, latency_s=0.2), settings)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "zero_bubble"])
def test_the_trace_of_a_program_freezes_into_the_program(name):
    program, trace = trace_of(name)
    assert freeze(trace) == program


def test_every_iteration_can_be_frozen():
    program, trace = trace_of("1f1b", iterations=3)
    assert [freeze(trace, iteration=number) for number in range(3)] == [program] * 3


def test_an_iteration_that_is_not_there_is_refused():
    _, trace = trace_of("1f1b", iterations=2)
    with pytest.raises(TraceError, match="no compute actions of iteration 5; it has iterations 0 to 1"):
        freeze(trace, iteration=5)
    with pytest.raises(TraceError, match="no compute actions of any iteration; it has none"):
        freeze(trace.where(trace.rank < 0))
