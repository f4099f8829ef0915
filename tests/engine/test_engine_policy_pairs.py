"""A policy's pairs run as one action, as those of a program do."""

from dataclasses import replace

import pytest

from hops.cost.table import TableCosts
from hops.engine.settings import P2P, Engine, RunSettings
from hops.engine.simulate import run_policy, run_program
from hops.errors import ProgramError
from hops.hardware.network import Network
from hops.program.action import Action, Op, Pair
from hops.program.policy import PlacedPolicy
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.schedules.hops_hetero import HopsHeteroAdaptive
from hops.timing.stage_costs import StageCosts
from hops.trace.order import program_from_trace


@pytest.mark.parametrize("factor", [1.0, 0.8, 0.37])
@pytest.mark.parametrize("way", [P2P.OVERLAPPED, P2P.BLOCKING_FUSED])
@pytest.mark.parametrize("host_ns", [0, 20_000])
def test_a_schedule_as_a_policy_runs_as_its_program(factor, way, host_ns):
    """With blocking messages a policy receives what is offered, so that only the order is the same there."""
    scheduler = SCHEDULERS.get("dualpipe_v")()
    placed = scheduler.placed(StageCosts.uniform(scheduler.shape(3, 8)))
    costs = TableCosts.uniform(6, f=1.1234567e-3, i=2e-3, w=1.7e-3)
    how = RunSettings(pair_factor=factor, p2p=way, iterations=2, host_per_action_ns=host_ns, engine=Engine.REFERENCE)
    network = Network.uniform(3, latency_s=2e-4)
    trace = run_policy(placed, costs, network, how)
    assert program_from_trace(trace) == scheduler.program
    if way is P2P.OVERLAPPED:
        assert trace == run_program(scheduler.program, costs, network, how)


class Listed:
    """Hands out a list of entries at its first question."""

    def __init__(self, *entries):
        self.entries = entries

    def next_actions(self, view):
        entries, self.entries = self.entries, ()
        return entries


def one_rank(*entries, microbatches=2):
    placed = PlacedPolicy(shape=Shape.loop(1, num_microbatches=microbatches), policy=Listed(*entries))
    return run_policy(
        placed, TableCosts.uniform(1, f=2e-3, i=2e-3, w=2e-3), Network.uniform(1), RunSettings(pair_factor=0.5)
    )


def test_one_rank_by_hand():
    """F0, then F1 with B0 at half of 6 ms, then B1."""
    f, b = [[Action(0, op, microbatch) for microbatch in range(2)] for op in (Op.F, Op.B)]
    assert one_rank(f[0], Pair(f[1], b[0]), b[1]).end_ns.max() == 9_000_000


@pytest.mark.parametrize(
    ("pair", "wrong"),
    [
        (Pair(Action(0, Op.F, 1), Action(0, Op.F, 0)), "0F1.0F0"),
        (Pair(Action(0, Op.B, 0), Action(0, Op.F, 1)), "0B0.0F1"),
        (Pair(Action(0, Op.F, 0), Action(0, Op.B, 0)), "0F0.0B0"),
    ],
)
def test_other_pairs_are_refused(pair, wrong):
    message = (
        rf"Listed.next_actions on rank 0 at 0.000 ms: returned the pair {wrong}, expected a forward and then a backward"
    )
    with pytest.raises(ProgramError, match=message):
        one_rank(pair)


def test_an_adaptive_plan_with_pairs_runs_them():
    """Where overlapping halves them, dualpipe_v is the best plan there is, and the policy runs it as it is."""
    adaptive = HopsHeteroAdaptive(chunks=2, placement="v", iterations=50)
    expected = replace(StageCosts.uniform(adaptive.shape(3, 12), f=1e-3, i=1e-3, w=1e-3), pair_factor=0.5)
    placed = adaptive.placed(expected)
    plan = adaptive.planner.result.program
    assert plan.in_pair.any()
    trace = run_policy(
        placed, TableCosts.uniform(6, f=1e-3, i=1e-3, w=1e-3), Network.uniform(3), RunSettings(pair_factor=0.5)
    )
    assert program_from_trace(trace) == plan
    assert trace.end_ns.max() == adaptive.planner.result.certificate.makespan_ns
