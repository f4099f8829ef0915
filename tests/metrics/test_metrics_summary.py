"""Every figure of a summary, from traces small enough to check by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pipelines import B, F, I, Rows, W, gpipe, meta, one_f_one_b, simulate, split

from hops.errors import UsageError
from hops.metrics.iterations import Iterations
from hops.metrics.memory import in_flight, memory_over_time
from hops.metrics.summarize import _medians, summarize
from hops.metrics.summary import RunFacts
from hops.model.memory import StageMemory
from hops.program.action import Op
from hops.trace.trace import LinkMeta, Stream

MS = 1_000_000
TIMES = {F: 10 * MS, B: 20 * MS, I: 10 * MS, W: 10 * MS}
MEMORY = StageMemory(
    weights_bytes=100, gradients_bytes=50, optimizer_bytes=300, activation_bytes=10, kept_for_weight_bytes=4
)


def equal(action, iteration):
    return TIMES[action.op]


def slower_each_iteration(action, iteration):
    return TIMES[action.op] * (iteration + 1)


def test_an_iteration_lasts_to_the_start_of_the_next_and_the_last_to_its_own_end():
    summary = summarize(simulate(gpipe(1, 1), slower_each_iteration, iterations=3, step=(0, 5 * MS, MS)), RunFacts())
    assert summary.iteration_time.values_ms == (36, 66, 96)
    assert summary.iteration_time.mean_ms == 66
    assert summary.iteration_time.p50_ms == 66
    assert summary.iteration_time.p99_ms == pytest.approx(95.4)


def test_an_iteration_before_a_missing_number_ends_with_its_own_last_row():
    trace = simulate(gpipe(1, 1), equal, iterations=4)
    summary = summarize(trace.where(trace.iteration != 1), RunFacts())
    assert summary.iteration_time.values_ms == (30, 30, 30)


def test_warm_up_iterations_are_left_out_of_everything_whatever_they_were_like():
    step = (0, 5 * MS, 0)
    slow_first = simulate(one_f_one_b(3, 4), lambda a, k: TIMES[a.op] * (9 if k < 2 else 1), iterations=5, step=step)
    calm = simulate(one_f_one_b(3, 4), equal, iterations=3, step=step)
    warmed = summarize(slow_first, RunFacts(warmup_iterations=2))
    assert replace(warmed, warmup_iterations=0) == summarize(calm, RunFacts())


def test_warm_up_counts_iterations_and_not_their_numbers():
    """Measured traces start at iteration 3 or so."""
    trace = simulate(gpipe(1, 1), equal, iterations=5)
    assert summarize(trace.where(trace.iteration >= 3), RunFacts(warmup_iterations=1)).iterations == 1


def test_warm_up_that_leaves_nothing_is_refused():
    with pytest.raises(
        UsageError, match=r"no iteration left .* has 2 .* warm-up takes 2; run more .* lower simulation"
    ):
        summarize(simulate(gpipe(1, 1), equal, iterations=2), RunFacts(warmup_iterations=2))


def test_throughput_counts_all_replicas_and_the_optimizer_step():
    facts = RunFacts(samples_per_microbatch=4, tokens_per_microbatch=1024, data_parallel=3)
    rates = summarize(simulate(gpipe(1, 2), equal, step=(0, 40 * MS, 0)), facts).throughput
    assert rates.microbatches_per_s == pytest.approx(2 * 3 / 0.1)
    assert rates.samples_per_s == pytest.approx(4 * 60)
    assert rates.tokens_per_s == pytest.approx(1024 * 60)


def test_what_facts_do_not_say_is_none():
    summary = summarize(simulate(gpipe(1, 2), equal), RunFacts())
    assert (summary.throughput.samples_per_s, summary.throughput.tokens_per_s, summary.mfu) == (None, None, None)
    assert summary.ranks[0].memory is None


def test_mfu_is_model_flop_per_second_over_the_peak_of_all_devices_for_any_number_of_replicas():
    facts = RunFacts(flop_per_microbatch=6e9, peak_flop_per_s=(1e12, 3e12), data_parallel=7)
    summary = summarize(simulate(gpipe(2, 2), equal), facts)
    assert summary.mfu == pytest.approx(2 * 6e9 / 0.09 / 4e12)


def test_latency_is_from_forward_on_stage_0_to_the_end_of_its_last_backward_there():
    fused = summarize(simulate(gpipe(2, 2), equal), RunFacts()).microbatch_latency
    assert (fused.mean_ms, fused.p99_ms) == (75, pytest.approx(79.9))  # 0 to 70 and 10 to 90
    assert summarize(simulate(split(gpipe(1, 1)), equal), RunFacts()).microbatch_latency.mean_ms == 30


def test_a_trace_without_stage_0_has_no_latency():
    trace = simulate(gpipe(2, 2), equal)
    assert summarize(trace.where(trace.stage != 0), RunFacts()).microbatch_latency is None


def test_stage_spans_are_from_first_start_to_last_end_of_each_rank():
    ranks = summarize(simulate(gpipe(3, 2), equal), RunFacts()).ranks
    assert [rank.stage_span_ms for rank in ranks] == [120, 90, 60]


def test_utilisation_is_busy_over_the_window_iteration_and_complements_the_bubble():
    summary = summarize(simulate(one_f_one_b(4, 8), equal, hop=MS, step=(9 * MS, 5 * MS, MS)), RunFacts())
    mean = np.mean([rank.utilization for rank in summary.ranks])
    assert mean == pytest.approx(1 - summary.bubble.iteration.fraction)


def test_phases_fill_the_iteration():
    cut = summarize(simulate(one_f_one_b(4, 8), equal, step=(9 * MS, 5 * MS, 2 * MS)), RunFacts()).phases
    assert (cut.warm_up_ms, cut.steady_ms, cut.cool_down_ms) == (30, 240, 60)
    assert (cut.reductions_ms, cut.optimizer_ms, cut.host_ms, cut.other_ms) == (9, 5, 2, 0)


def test_phases_sum_to_the_iteration_even_if_ranks_go_on_alone():
    """Rank 1 steps while rank 0 still computes; rank 0 starts its next iteration before rank 1 has stepped."""
    rows = Rows()
    for k, begin in enumerate((0, 100)):
        rows.add(begin, begin + 30, rank=0, stage=0, op=F, microbatch=0, iteration=k)
        rows.add(begin + 30, begin + 40, rank=1, stage=1, op=F, microbatch=0, iteration=k)
        rows.add(begin + 40, begin + 90, rank=1, stage=1, op=B, microbatch=0, iteration=k)
        rows.add(begin + 90, begin + 130, rank=1, op=Op.OPTIMIZER, iteration=k)
        rows.add(begin + 90, begin + 95, rank=0, stage=0, op=B, microbatch=0, iteration=k)
    summary = summarize(rows.trace(meta(2, 1)), RunFacts())
    assert sum(getattr(summary.phases, name) for name in summary.phases.__slots__) == pytest.approx(
        summary.iteration_time.mean_ms
    )
    causes = summary.bubble.iteration.by_cause
    assert sum(getattr(causes, name) for name in causes.__slots__) == pytest.approx(summary.bubble.iteration.fraction)


def test_exposed_communication_is_messages_reductions_and_waiting_for_other_ranks():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(15, 25, rank=1, stage=1, op=F, microbatch=0)  # 5 for the message, to both ranks
    rows.add(25, 45, rank=1, stage=1, op=B, microbatch=0)
    rows.add(50, 70, rank=0, stage=0, op=B, microbatch=0)  # 5 for the message, to both ranks
    rows.add(45, 55, rank=1, op=Op.GRAD_REDUCE, stream=Stream.COLLECTIVE)  # while the pipeline drains: hidden
    rows.add(70, 71, rank=0, op=Op.GRAD_REDUCE, stream=Stream.COLLECTIVE)  # 1, exposed
    rows.add(71, 80, rank=0, op=Op.OPTIMIZER)
    rows.add(74, 80, rank=1, op=Op.OPTIMIZER)  # 4 of waiting after the pipeline
    rows.add(80, 83, rank=0, op=Op.HOST, stream=Stream.HOST)  # rank 1 waits 3 for it
    lost = summarize(rows.trace(meta(2, 1)), RunFacts()).exposed_communication
    per_rank = 2 * MS
    assert lost.messages_ms == pytest.approx(4 * 5 / per_rank)
    assert lost.reductions_ms == pytest.approx(1 / per_rank)
    assert lost.synchronization_ms == pytest.approx((4 + 3) / per_rank)
    assert lost.total_ms == pytest.approx(28 / per_rank)


def test_link_use_is_bytes_over_capacity_and_contention_two_or_more_messages_at_once():
    rows = Rows()
    rows.add(0, 100 * MS, rank=0, stage=0, op=F, microbatch=0)
    message = {"stream": Stream.MESSAGE, "stage": 0, "op": F, "peer": 1}
    rows.add(10 * MS, 30 * MS, rank=0, microbatch=0, bytes=1000, **message)
    rows.add(20 * MS, 50 * MS, rank=0, microbatch=1, bytes=500, **message)
    rows.add(50 * MS, 60 * MS, rank=0, microbatch=2, bytes=500, **message)
    links = (LinkMeta(name="wire", bandwidth=40_000.0), LinkMeta(name="free", bandwidth=float("inf")))
    wire, free = summarize(rows.trace(meta(2, 3, links=links, routes={(0, 1): (0, 1)})), RunFacts()).links
    assert (wire.messages, wire.carried_bytes, wire.bandwidth_bytes_per_s) == (3, 2000, 40_000)
    assert wire.utilization == pytest.approx(2000 / (40_000 * 0.1))
    assert wire.busy_share == pytest.approx(0.5)
    assert wire.contention_ms == pytest.approx(10)
    assert (free.bandwidth_bytes_per_s, free.utilization, free.busy_share) == (None, None, wire.busy_share)


def test_a_link_that_nothing_crosses_is_idle():
    links = (LinkMeta(name="spare", bandwidth=1.0),)
    (spare,) = summarize(simulate(gpipe(2, 2), equal, links=links), RunFacts()).links
    assert (spare.messages, spare.utilization, spare.busy_share, spare.contention_ms) == (0, 0, 0, 0)


@pytest.mark.parametrize(("ranks", "microbatches"), [(4, 8), (4, 2), (1, 3)])
def test_in_flight_peaks_are_min_p_minus_s_m_for_1f1b_and_m_for_gpipe(ranks, microbatches):
    one = summarize(simulate(one_f_one_b(ranks, microbatches), equal, hop=MS), RunFacts())
    assert [r.in_flight_peak for r in one.ranks] == [min(ranks - s, microbatches) for s in range(ranks)]
    all_first = summarize(simulate(gpipe(ranks, microbatches), equal, hop=MS), RunFacts())
    assert {r.in_flight_peak for r in all_first.ranks} == {microbatches}


def test_memory_peak_is_what_is_held_all_the_time_and_the_activations_in_flight():
    facts = RunFacts(stage_memory=(MEMORY,) * 3, memory_bytes=(1000, 1000, 1000))
    ranks = summarize(simulate(one_f_one_b(3, 6), equal), facts).ranks
    assert [r.memory.activations_bytes for r in ranks] == [30, 20, 10]
    first = ranks[0].memory
    assert (first.peak_bytes, first.weights_bytes, first.gradients_bytes, first.optimizer_bytes) == (480, 100, 50, 300)
    assert first.capacity_bytes == 1000


def test_the_peak_is_the_top_of_the_curve_even_with_recomputation():
    """The workspace of recomputation is in both, counted among the activations."""
    facts = RunFacts(stage_memory=(replace(MEMORY, workspace_bytes=7),) * 3)
    trace = simulate(one_f_one_b(3, 6), equal)
    peaks = [rank.memory.peak_bytes for rank in summarize(trace, facts).ranks]
    assert peaks == [curve.peak for curve in memory_over_time(Iterations.of(trace, facts))] == [487, 477, 467]


def test_memory_that_nobody_stated_is_unknown_and_not_zero():
    trace = simulate(one_f_one_b(3, 6), equal)
    facts = RunFacts(stage_memory=(StageMemory(),) * 3, memory_bytes=(1000,) * 3)
    assert [rank.memory for rank in summarize(trace, facts).ranks] == [None] * 3
    assert memory_over_time(Iterations.of(trace, facts)) == ()


def test_memory_over_time_rises_with_f_and_falls_with_i_and_w():
    run = Iterations.of(simulate(split(gpipe(1, 2)), equal), RunFacts(stage_memory=(MEMORY,)))
    (held,) = memory_over_time(run)
    assert held.initial == 450
    assert (held.at_ns // MS).tolist() == [0, 10, 30, 40, 50, 60]
    assert held.value.tolist() == [460, 470, 464, 460, 454, 450]


def test_w_alone_frees_everything_as_stage_0_needs_no_i():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(10, 20, rank=0, stage=0, op=W, microbatch=0)
    (held,) = memory_over_time(Iterations.of(rows.trace(meta(1, 1)), RunFacts(stage_memory=(MEMORY,))))
    assert held.value.tolist() == [460, 450]


def test_every_stage_of_a_rank_counts_in_flight():
    rows = Rows()
    for stage in (0, 1):
        rows.add(10 * stage, 10 * stage + 10, rank=0, stage=stage, op=F, microbatch=0)
        rows.add(40 - 10 * stage, 50 - 10 * stage, rank=0, stage=stage, op=B, microbatch=0)
    (curve,) = in_flight(Iterations.of(rows.trace(meta(1, 1, rank_of_stage=(0, 0))), RunFacts()))
    assert curve.value.tolist() == [1, 2, 1, 0]


def test_stage_times_are_medians_per_op():
    summary = summarize(simulate(gpipe(2, 3), lambda a, k: TIMES[a.op] + MS * a.microbatch**2), RunFacts())
    assert (summary.stages[1].forward_ms, summary.stages[1].backward_ms) == (11, 21)
    assert summary.stages[1].weight_backward_ms is None


def test_a_rank_that_runs_nothing_idles_all_the_time():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    idle = summarize(rows.trace(meta(2, 1)), RunFacts()).ranks[1]
    assert (idle.utilization, idle.stage_span_ms, idle.in_flight_peak) == (0, 0, 0)


def test_json_has_the_same_bytes_for_the_same_run_and_no_nan():
    facts = RunFacts(stage_memory=(MEMORY,) * 2, memory_bytes=(1000, 1000), warmup_iterations=1)
    texts = {summarize(simulate(gpipe(2, 2), equal, iterations=3), facts).to_json() for _ in range(2)}
    (text,) = texts
    plain = json.loads(text, parse_constant=pytest.fail)
    assert plain == summarize(simulate(gpipe(2, 2), equal, iterations=3), facts).to_dict()


def test_a_measured_trace_without_messages_gets_the_same_bubble_as_one_with():
    trace = simulate(one_f_one_b(3, 5), equal, hop=2 * MS)
    bare = trace.where(trace.stream != Stream.MESSAGE)
    assert summarize(bare, RunFacts()).bubble == summarize(trace, RunFacts()).bubble


@pytest.mark.parametrize("seed", range(4))
def test_medians_of_groups_are_those_of_each_group(seed):
    rng = np.random.default_rng(seed)
    group, values = rng.integers(0, 5, 40), rng.integers(0, 10**12, 40)
    expected = [float(np.median(values[group == n])) if np.any(group == n) else np.nan for n in range(7)]
    np.testing.assert_array_equal(_medians(group, values, 7), expected)
