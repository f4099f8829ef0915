"""A pair takes its factor of F + B: in both engines, in the longest path, and in what a search may promise."""

from dataclasses import replace

import numpy as np
import pytest

from hops.build.run import simulate
from hops.build.setup import build
from hops.cost.table import TableCosts
from hops.decode.document import parse
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.planner.planner import plan
from hops.program.action import Op
from hops.program.program import Program
from hops.schedules.base import StaticScheduler
from hops.search.search import search
from hops.spec.load import loads
from hops.spec.open import open_spec
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

SPEC = """
simulation: {iterations: 1}
pipeline:
  stage_times: {forward: 2 ms, input_backward: 2 ms, weight_backward: 1 ms}
  schedule: dualpipe_v
  microbatches: 12
  pair_factor: 0.8
hardware: {nodes: [{devices: [h100, h100, h100]}]}
"""


def prepared(*overrides):
    """A setup and its program."""
    setup = build(loads(SPEC, overrides=overrides))
    scheduler = setup.scheduler()
    assert isinstance(scheduler, StaticScheduler)
    scheduler.configure(setup.expected)
    return setup, scheduler.program


@pytest.mark.parametrize("factor", [1.0, 0.75, 0.5])
def test_one_rank_by_hand(factor):
    """F0, then F1 with B0, then B1: 2 + factor x (2 + 4) + 4 ms."""
    program = Program.parse("microbatches 2, rank of stage 0\n0F0 0F1+0B0 0B1")
    costs = TableCosts.uniform(1, f=2e-3, i=2e-3, w=2e-3)
    trace = run_program(program, costs, Network.uniform(1), RunSettings(pair_factor=factor))
    assert trace.end_ns.max() == 6_000_000 + factor * 6_000_000


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_actions_in_pairs_take_the_factor_and_others_do_not(engine):
    _, program = prepared()
    trace = simulate(loads(SPEC, overrides=[f"simulation.engine={engine}"])).trace
    rows = trace.where(trace.stream == Stream.COMPUTE)
    alone = {Op.F: 2_000_000, Op.B: 3_000_000, Op.I: 2_000_000, Op.W: 1_000_000}
    pairs = set(
        zip(
            program.stage[program.in_pair].tolist(),
            program.op[program.in_pair].tolist(),
            program.microbatch[program.in_pair].tolist(),
            strict=True,
        )
    )
    assert 0 < len(pairs) < program.num_actions
    for stage, op, microbatch, taken in zip(
        rows.stage.tolist(), rows.op.tolist(), rows.microbatch.tolist(), rows.duration_ns.tolist(), strict=True
    ):
        assert taken == alone[Op(op)] * (0.8 if (stage, op, microbatch) in pairs else 1)


@pytest.mark.parametrize("factor", [1.0, 0.9, 0.37])
def test_the_longest_path_agrees_with_the_engine_to_the_nanosecond(factor):
    _, program = prepared()
    costs = {"f": 2.1234567e-3, "i": 2e-3, "w": 1.7e-3}
    expected = replace(StageCosts.uniform(program.shape, **costs), pair_factor=factor)
    work, settings = TableCosts.uniform(program.shape.num_stages, **costs), RunSettings(pair_factor=factor)
    trace = run_program(program, work, Network.uniform(3), settings)
    assert trace.end_ns.max() == evaluate(program, expected).makespan_ns


def test_a_search_promises_nothing_that_pairs_can_beat():
    _, program = prepared()
    costs = replace(StageCosts.uniform(program.shape, f=2e-3, i=2e-3, w=1e-3), pair_factor=0.5)
    costs = replace(costs, budget_bytes=(None,) * 3)
    certificate = search(costs, {"dualpipe_v": program}, iterations=100).certificate
    assert certificate.makespan_ns <= evaluate(program, costs).makespan_ns
    assert certificate.gap >= 0


def test_programs_without_pairs_are_what_they_were():
    ends = [
        simulate(loads(SPEC, overrides=["pipeline.schedule=zb_v", f"pipeline.pair_factor={factor}"])).trace.end_ns
        for factor in (0.8, 1.0)
    ]
    assert np.array_equal(*ends)


def test_plans_do_not_reckon_with_it():
    text = """
pipeline: {model: gpt2-medium, microbatches: 4, pair_factor: 0.9}
hardware: {nodes: [{devices: [h100, h100]}]}
"""
    message = "hops plan: got pipeline.pair_factor 0.9, expected 1, as plans reckon with F [+] B; remove it"
    with pytest.raises(UsageError, match=message):
        plan(open_spec(parse(text, name="spec")))
