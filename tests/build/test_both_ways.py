"""Bidirectional pipelines hold the model twice: weights, gradients and reductions count on both ranks of a stage."""

import pytest

from hops.build.run import simulate, summarize
from hops.build.setup import build
from hops.errors import SpecError, UsageError
from hops.program.action import Op
from hops.schedules.base import SCHEDULERS
from hops.search.search import search
from hops.spec.load import loads
from hops.timing.stage_costs import StageCosts
from hops.trace.files import read_events, write_events
from hops.trace.order import producer_rows, program_from_trace
from hops.trace.trace import Stream

GB = 10**9
SPEC = """
simulation: {iterations: 2}
pipeline:
  stage_times:
    forward: [1 ms, 2 ms, 3 ms, 4 ms]
    backward: 4 ms
    message: 1 MB
    weights: [1 GB, 2 GB, 3 GB, 4 GB]
    gradients: [1 GB, 2 GB, 3 GB, 4 GB]
    activation: [10 MB, 20 MB, 30 MB, 40 MB]
  microbatches: 8
  schedule: dualpipe
hardware: {nodes: [{devices: [h100, h100]}, {devices: [h100, h100]}]}
optimizer: {reduction_interconnect: {bandwidth: 10 GB/s, latency: 0 us}}
"""
MODEL = """
pipeline:
  model: {layers: 8, hidden: 1024, heads: 16, vocab: 4096, max_positions: 512, tied: false}
  microbatches: 8
  sequence_length: 512
  schedule: chimera
  partition: [1, 2, 2, 3]
hardware: {nodes: [{devices: [h100, h100, h100, h100]}]}
"""


def test_a_rank_holds_weights_and_gradients_of_both_of_its_stages():
    setup = build(loads(SPEC))
    weights = [setup.facts.stage_memory[stage].weights_bytes for stage in range(8)]
    assert weights == [1 * GB, 2 * GB, 3 * GB, 4 * GB] * 2
    held = [sum(weights[stage] for stage in setup.shape.stages_of(rank)) for rank in range(4)]
    assert held == [5 * GB] * 4
    one_way = build(loads(SPEC, overrides=["pipeline.schedule=1f1b"]))
    free, alone = setup.expected.budget_bytes, one_way.expected.budget_bytes
    assert [alone[rank] - free[rank] for rank in range(4)] == [2 * (5 - own) * GB for own in (1, 2, 3, 4)]


def test_both_ranks_of_a_stage_reduce_its_gradients_and_the_iteration_lasts_longer_by_it():
    """5 GB per rank, a ring of 2, two ranks on each host's 10 GB/s: 1 s. With 3 replicas a ring of 6: 5/3 s."""
    for replicas, seconds in ((1, 1.0), (3, 5 / 3)):
        trace = simulate(loads(SPEC, overrides=[f"optimizer.data_parallel={replicas}"])).trace
        rows = trace.where((trace.op == Op.GRAD_REDUCE) & (trace.iteration == 0))
        assert sorted(rows.rank.tolist()) == [0, 1, 2, 3]
        assert (rows.duration_ns / 1e9).tolist() == pytest.approx([seconds] * 4)
        ends = [int(trace.end_ns[trace.iteration == number].max()) for number in (0, 1)]
        assert ends[0] > seconds * 1e9
    assert build(loads(SPEC, overrides=["pipeline.schedule=1f1b"])).costs.step(0, 0).grad_reduce_s == ()


def test_the_way_between_the_two_ranks_of_a_stage_is_shared_by_all_that_leave_the_host():
    text = SPEC.replace("optimizer: {reduction_interconnect: {bandwidth: 10 GB/s, latency: 0 us}}", "")
    across = build(
        loads(text.replace("[h100, h100]}]", "[h100, h100]}], interconnect: {bandwidth: 10 GB/s, latency: 0 us}"))
    )
    assert across.costs.step(0, 0).grad_reduce_s == pytest.approx((1.0,) * 4)
    one_host = build(
        loads(text.replace("{devices: [h100, h100]}, {devices: [h100, h100]}", "{devices: [h100, h100, h100, h100]}"))
    )
    assert max(one_host.costs.step(0, 0).grad_reduce_s) < 0.02


def test_unstated_gradients_of_copies_are_warned_of():
    text = SPEC.replace("    gradients: [1 GB, 2 GB, 3 GB, 4 GB]\n", "")
    (warning,) = build(loads(text)).warnings
    assert warning == (
        "pipeline.schedule: 2 copies reduce nothing, since pipeline.stage_times state no gradients; state their bytes "
        "per stage, or gradients: 0 B"
    )


@pytest.mark.parametrize("schedule", ["dualpipe", "chimera"])
def test_messages_go_between_neighbours_of_each_copy_and_nowhere_else(schedule):
    trace = simulate(loads(SPEC, overrides=[f"pipeline.schedule={schedule}", "simulation.iterations=1"])).trace
    messages = trace.of(Stream.MESSAGE)
    assert len(messages) == 8 * 3 * 2
    assert set((messages.peer - messages.rank).tolist()) == {1, -1}
    assert not ((messages.stage == 3) & (messages.op == Op.F)).any()
    assert not ((messages.stage == 4) & (messages.op != Op.F)).any()
    inputs = producer_rows(trace)
    firsts = (trace.stream == Stream.COMPUTE) & (trace.op == Op.F) & (trace.stage % 4 == 0)
    assert (inputs[firsts] == -1).all()


@pytest.mark.parametrize("schedule", ["dualpipe", "chimera"])
def test_a_trace_remembers_its_copies_in_a_file(schedule, tmp_path):
    run = simulate(loads(SPEC, overrides=[f"pipeline.schedule={schedule}"]))
    write_events(run.trace, tmp_path / "run.csv")
    again = read_events(tmp_path / "run.csv")
    assert again == run.trace
    assert again.meta.copies == 2
    shape = run.setup.shape
    assert program_from_trace(again) == SCHEDULERS.get(schedule)().build(StageCosts.uniform(shape))


def test_a_model_is_divided_once_and_each_copy_has_its_ends():
    setup = build(loads(MODEL))
    works = [setup.facts.stage_memory[stage].weights_bytes for stage in range(8)]
    assert works[:4] == works[4:]
    seconds = [setup.costs.seconds(stage, Op.F) for stage in range(8)]
    assert seconds[:4] == seconds[4:]
    with pytest.raises(SpecError, match=r"got 8 entries, expected 4 \(one per stage; 4 ranks\)"):
        loads(MODEL, overrides=["pipeline.partition=[1, 1, 1, 1, 1, 1, 1, 1]"])
    for kind in ("even", "balanced"):
        assert build(loads(MODEL, overrides=[f"pipeline.partition={kind}"])).shape.copies == 2


def test_the_first_stages_of_both_copies_do_not_split_where_the_spec_says_so():
    costs = build(loads(MODEL, overrides=["pipeline.first_stage_splits=false"])).costs
    assert [costs.seconds(stage, Op.I) == 0 for stage in range(8)] == [True, False, False, False] * 2
    stated = build(loads(SPEC, overrides=["pipeline.first_stage_splits=false"])).costs
    assert [stated.seconds(stage, Op.I) == 0 for stage in range(8)] == [True, False, False, False] * 2


def test_every_microbatch_has_a_latency_whichever_way_it_goes():
    run = simulate(loads(SPEC, overrides=["simulation.iterations=1"]))
    first = run.trace.where((run.trace.stage % 4 == 0) & (run.trace.op <= Op.W))
    spans = [
        int(first.end_ns[first.microbatch == number].max() - first.start_ns[first.microbatch == number].min())
        for number in range(8)
    ]
    assert summarize(run).microbatch_latency.mean_ms == pytest.approx(sum(spans) / 8 / 1e6)


def test_a_search_refuses_copies_and_says_what_to_search():
    shape = SCHEDULERS.get("dualpipe")().shape(4, 8)
    with pytest.raises(UsageError) as caught:
        search(StageCosts.uniform(shape), {}, iterations=10)
    assert str(caught.value) == (
        "the search arranges one copy of the model, but got 2; search a V of two stages per rank instead, which needs "
        "half of the weights"
    )
