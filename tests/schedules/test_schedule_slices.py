"""Slices of the sequence: their text, their order, their causal cost, and what a run of them comes to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.cost.sliced import Sliced
from hops.cost.table import TableCosts
from hops.errors import ProgramError
from hops.program.action import Op
from hops.program.lowering import check
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS
from hops.schedules.builtins import search_from_builtins
from hops.spec.load import loads
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.files import read_events, write_events
from hops.trace.order import program_from_trace
from hops.viz.headline import what_ran

PROGRAM = """microbatches 2, rank of stage 0 1, slices 2
0F0.0 0F0.1 0F1.0 0B0.1 0F1.1 0B0.0 0B1.1 0B1.0
1F0.0 1F0.1 1B0.1 1F1.0 1B0.0 1F1.1 1B1.1 1B1.0"""
SPEC = """
simulation: {iterations: 2}
pipeline:
  stage_times: {forward: 4 ms, backward: 8 ms, message: 1 MB, activation: 8 MB, kept_for_weight: 4 MB}
  microbatches: 8
  schedule: {name: seq1f1b, slices: 4}
hardware: {nodes: [{devices: [h100, h100, h100, h100]}]}
"""
MODEL = """
pipeline:
  model: {layers: 8, hidden: 1024, heads: 16, vocab: 4096, max_positions: 32768, tied: false}
  microbatches: 4
  sequence_length: 32768
  schedule: seq1f1b
hardware: {nodes: [{devices: [h100, h100]}]}
"""


def run(p, m, slices):
    scheduler = SCHEDULERS.get("seq1f1b")(slices=slices)
    costs = StageCosts.uniform(scheduler.shape(p, m))
    program = scheduler.build(costs)
    check(program)
    return evaluate(program, costs)


@settings(deadline=None, max_examples=40)
@given(p=st.integers(1, 8), m=st.integers(1, 10), slices=st.integers(2, 5))
def test_seq1f1b_loses_p_minus_1_slices_and_holds_so_many_more_than_1f1b_less_one(p, m, slices):
    found = run(p, m, slices)
    assert found.makespan_ns / 1e9 == 3 * (m * slices + p - 1)
    assert found.peak_in_flight == tuple(min(p - 1 - rank + slices, m * slices) for rank in range(p))


@pytest.mark.parametrize(("p", "m", "slices", "makespan"), [(4, 8, 2, 57), (4, 8, 4, 105), (8, 64, 4, 789)])
def test_golden_makespans(p, m, slices, makespan):
    assert run(p, m, slices).makespan_ns / 1e9 == makespan


def test_a_program_of_slices_reads_back_as_it_prints():
    program = Program.parse(PROGRAM)
    check(program)
    assert str(program) == PROGRAM
    assert (program.shape.num_microbatches, program.shape.whole_microbatches) == (4, 2)
    assert SCHEDULERS.get("seq1f1b")().build(StageCosts.uniform(program.shape)) == program
    assert str(Program.parse(PROGRAM.replace("0F1.0 0B0.1", "0F1.0+0B0.1"))).count("0F1.0+0B0.1") == 1


FAULTS = {
    ("0F0.0 0F0.1", "0F0.1 0F0.0"): "rank 0, position 0 (0F0.1): it comes before 0F0.0, which it needs",
    ("1B1.1 1B1.0", "1B1.0 1B1.1"): "rank 1, position 6 (1B1.0): it comes before 1B1.1 or 1I1.1, which it needs",
    ("0F1.1 0B0.0 ", "0F1.1 "): "rank 0 is not complete: it lacks 0B0.0 (or 0I0.0 and 0W0.0)",
    ("0F0.0 ", "0F0 "): "program:2:1: not an action on a slice: got '0F0', expected slice 0 to 1, such as 2F0.1",
    ("0F0.0 ", "0F0.2 "): "program:2:1: not an action on a slice: got '0F0.2', expected slice 0 to 1, such as 2F0.1",
    (", slices 2", ", slices 0"): "program:1: a microbatch cannot be cut into 0 slices, expected at least 1",
    (", slices 2", ""): "program:2:1: not an action: got '0F0.0', expected stage, op (F, B, I or W) and microbatch",
}


@pytest.mark.parametrize("change", FAULTS)
def test_faults_in_programs_of_slices_are_named(change):
    with pytest.raises(ProgramError) as caught:
        check(Program.parse(PROGRAM.replace(*change)))
    assert str(caught.value).startswith(FAULTS[change])


def test_a_deadlock_names_slices():
    stuck = PROGRAM.replace("1F0.0 1F0.1 1B0.1 1F1.0", "1F0.0 1F0.1 1F1.0 1F1.1 1B0.1").replace("1B0.0 1F1.1", "1B0.0")
    with pytest.raises(ProgramError, match=r"waits at 1F1\.1 for 0F1\.1"):
        check(Program.parse(stuck))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_slice_costs_its_part_of_causal_attention_and_all_cost_the_microbatch(share):
    whole = TableCosts.uniform(3, f=1.0, i=2.0, w=3.0, bytes_per_message=10)
    costs = Sliced(inner=whole, slices=4, attention_share=share)
    drawn = costs.draw(0, 8, 0).reshape(3, 4, 2, 4)
    assert drawn.sum(axis=3) == pytest.approx(whole.draw(0, 2, 0))
    first, last = drawn[0, Op.F, 0, 0], drawn[0, Op.F, 0, -1]
    assert last - first == pytest.approx(share * 6 / 16)
    assert costs.seconds(0, Op.I) == pytest.approx(drawn[0, Op.I].mean())
    assert costs.message_bytes(0, Op.F) == 3  # a quarter of 10, rounded up


def test_a_run_of_slices_counts_microbatches_and_holds_slices():
    whole, sliced = (simulate(loads(SPEC, overrides=o)) for o in (["pipeline.schedule=1f1b"], []))
    summaries = summarize(whole), summarize(sliced)
    assert [each.num_microbatches for each in summaries] == [8, 8]
    assert summaries[1].iteration_time.mean_ms < summaries[0].iteration_time.mean_ms
    # a quarter of 1F1B's bubble, but for latencies: 3 (m Q + p - 1) slices of 1 ms where F is 4 ms
    assert summaries[1].iteration_time.mean_ms == pytest.approx(3 * (32 + 3), rel=0.02)
    assert summaries[1].throughput.microbatches_per_s == pytest.approx(8e3 / summaries[1].iteration_time.mean_ms)
    peaks = [max(rank.memory.activations_bytes for rank in each.ranks) for each in summaries]
    assert peaks == [4 * 8_000_000, 7 * 2_000_000]


def test_a_trace_remembers_its_slices_in_a_file(tmp_path):
    run = simulate(loads(SPEC))
    write_events(run.trace, tmp_path / "run.csv")
    again = read_events(tmp_path / "run.csv")
    assert again == run.trace
    assert again.meta.slices == 4
    assert program_from_trace(again) == SCHEDULERS.get("seq1f1b")(slices=4).build(StageCosts.uniform(run.setup.shape))


def test_the_model_says_how_much_dearer_later_slices_are():
    """Of 2 slices the second has 3/4 of causal attention's products and half of all else."""
    long, short = (build(loads(MODEL, overrides=[f"pipeline.sequence_length={n}"])) for n in (32768, 64))
    shares = [setup.costs.shares for setup in (long, short)]
    assert shares[0][1] > 0.6
    assert shares[1][1] == pytest.approx(0.5, abs=0.01)
    model = long.known.work.model
    scores = model.model_flop(sequence_length=32768, samples=1) - 2 * model.model_flop(sequence_length=16384, samples=1)
    total = model.model_flop(sequence_length=32768, samples=1) - scores
    assert long.costs.attention_share == pytest.approx(scores / total)


def test_a_picture_says_how_many_microbatches_its_slices_are():
    assert what_ran(simulate(loads(SPEC)).trace.meta) == "seq1f1b, 4 ranks, 8 microbatches in 32 slices, simulated"


def test_work_of_microbatches_goes_to_all_of_their_slices():
    setup = build(loads(SPEC, overrides=["pipeline.microbatch_work=[2, 1, 1, 1, 1, 1, 1, 1]"]))
    assert setup.costs.work(0, 32, 0)[:6].tolist() == [2, 2, 2, 2, 1, 1]
    assert setup.expected.microbatch_work[:6] == (2, 2, 2, 2, 1, 1)
    drawn = setup.costs.draw(0, 32, 0)
    assert drawn[0, Op.F, 0] == pytest.approx(2 * drawn[0, Op.F, 4])


def test_a_search_over_slices_gives_the_best_that_is_known():
    costs = StageCosts.uniform(SCHEDULERS.get("seq1f1b")(slices=3).shape(4, 8))
    result = search_from_builtins(costs, iterations=100)
    assert (result.certificate.found_by, result.program) == (
        "seq1f1b",
        SCHEDULERS.get("seq1f1b")(slices=3).build(costs),
    )
