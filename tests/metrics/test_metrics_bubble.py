"""The bubble: closed forms, conservation, and its causes against a second, slow reading of their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import B, F, I, Rows, W, gpipe, meta, one_f_one_b, simulate, split
from reference import causes

from hops.metrics.bubble import BubbleCause, bubbles
from hops.metrics.iterations import Iterations
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.metrics.waits import waits
from hops.trace.trace import Stream

TIMES = {F: 10, B: 20, I: 10, W: 10}
SHAPES = [(2, 2), (3, 5), (4, 8), (4, 4), (8, 8)]
ORDERS = {"gpipe": gpipe, "1f1b": one_f_one_b, "split": lambda p, m: split(one_f_one_b(p, m))}


def equal(action, iteration):
    return TIMES[action.op]


def found(trace, warmup=0):
    return bubbles(Iterations.of(trace, RunFacts(warmup_iterations=warmup)))


@st.composite
def traces(draw):
    """Any order, uneven jittered stages, a hop, several iterations with a step at their end, maybe a fault."""
    ranks, microbatches = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    orders = ORDERS[draw(st.sampled_from(sorted(ORDERS)))](ranks, microbatches)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    scale = rng.integers(1, 5, size=ranks)
    jitter = rng.integers(0, 4, size=(3, ranks, 4, microbatches))
    trace = simulate(
        orders,
        lambda a, k: int(scale[a.stage] * (1 + (a.op != F)) + jitter[k, a.stage, a.op, a.microbatch]),
        hop=draw(st.integers(0, 3)),
        iterations=draw(st.integers(1, 3)),
        step=draw(st.sampled_from([(0, 0, 0), (3, 2, 1)])),
    )
    rank, start = draw(st.integers(0, ranks - 1)), draw(st.integers(0, 40))
    columns = {name: getattr(trace, name).tolist() for name in trace.__slots__ if name != "meta"}
    if draw(st.booleans()):
        fault = {"iteration": 0, "rank": rank, "stream": Stream.FAULT, "start_ns": start, "end_ns": start + 15}
        for name, column in columns.items():
            column.append(fault.get(name, -1 if name != "op" else 0) if name != "bytes" else 0)
    return type(trace).from_columns(columns, trace.meta)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("orders", [gpipe, one_f_one_b])
def test_equal_stages_without_messages_have_bubble_p_minus_1_over_m_plus_p_minus_1_all_of_it_warm_up(orders, shape):
    p, m = shape
    idle = found(simulate(orders(p, m), equal)).pipeline
    assert idle.fraction() == pytest.approx((p - 1) / (m + p - 1), abs=1e-12)
    assert idle.fraction_of(BubbleCause.WARM_UP_COOL_DOWN) == pytest.approx(idle.fraction(), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(traces())
def test_busy_and_causes_sum_to_ranks_times_window_in_both_windows(trace):
    both = found(trace)
    for idle in (both.pipeline, both.iteration):
        assert idle.busy_ns.sum() + sum(ns.sum() for ns in idle.by_cause.values()) == idle.rank_time_ns
        assert all(np.all(ns >= 0) for ns in idle.by_cause.values())


@settings(deadline=None, max_examples=60)
@given(traces())
def test_every_rank_on_its_own_is_busy_or_idle_for_a_cause(trace):
    idle = found(trace).iteration
    assert np.all(idle.busy_ns + sum(idle.by_cause.values()) == idle.window_ns)


@settings(deadline=None, max_examples=40)
@given(traces())
def test_causes_agree_with_the_definition_read_nanosecond_by_nanosecond(trace):
    ours = waits(Iterations.of(trace, RunFacts()))
    for iteration in np.unique(trace.iteration).tolist():
        slow = causes(trace, iteration)
        for rank in range(trace.meta.num_ranks):
            assert ours.messages[iteration, rank] == slow.get((rank, "messages"), 0)
            assert ours.faults[iteration, rank] == slow.get((rank, "fault"), 0)


def test_waiting_for_a_message_is_found_through_ranks_that_wait_themselves():
    """The last rank's first input crosses three hops, and all three are its wait, as the three after its last."""
    ours = waits(Iterations.of(simulate(gpipe(4, 1), equal, hop=7), RunFacts()))
    assert ours.messages[0].tolist() == [6 * 7, 6 * 7, 6 * 7, 6 * 7]


@pytest.mark.parametrize("shape", [(2, 3), (3, 5), (4, 8), (8, 12)])  # the first rank is busy until the last one starts
def test_every_rank_of_gpipe_sees_p_minus_1_hops_while_the_other_ranks_compute_during_the_rest(shape):
    p, m = shape
    idle = found(simulate(gpipe(p, m), equal, hop=3)).pipeline
    assert idle.by_cause[BubbleCause.MESSAGES].tolist() == [(p - 1) * 3] * p
    assert idle.by_cause[BubbleCause.WARM_UP_COOL_DOWN].tolist() == [(p - 1) * (10 + 20 + 3)] * p


def test_a_fault_of_the_rank_that_ends_the_pipeline_explains_the_idling_of_those_that_are_done():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(10, 20, rank=1, stage=1, op=F, microbatch=0)
    rows.add(20, 30, rank=1, stage=1, op=B, microbatch=0)
    rows.add(30, 70, rank=0, stream=Stream.FAULT)
    rows.add(70, 80, rank=0, stage=0, op=B, microbatch=0)
    assert found(rows.trace(meta(2, 1))).pipeline.by_cause[BubbleCause.FAULT].tolist() == [40, 40]


def test_without_hops_nobody_waits_for_messages():
    assert found(simulate(one_f_one_b(4, 8), equal)).pipeline.fraction_of(BubbleCause.MESSAGES) == 0


def test_imbalance_is_how_much_longer_the_busiest_rank_works():
    trace = simulate(gpipe(3, 6), lambda a, k: TIMES[a.op] * (2 if a.stage == 1 else 1))
    assert found(trace).pipeline.by_cause[BubbleCause.IMBALANCE].tolist() == [180, 0, 180]


def test_a_fault_explains_the_idling_of_the_rank_it_stops_and_of_those_that_wait_for_it():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(10, 50, rank=1, stream=Stream.FAULT)  # rank 1 stops, then runs what had arrived at 10
    rows.add(50, 60, rank=1, stage=1, op=F, microbatch=0)
    rows.add(60, 70, rank=1, stage=1, op=B, microbatch=0)
    rows.add(70, 80, rank=0, stage=0, op=B, microbatch=0)
    by_cause = found(rows.trace(meta(2, 1))).pipeline.by_cause
    assert by_cause[BubbleCause.FAULT].tolist() == [40, 40]
    assert by_cause[BubbleCause.MESSAGES].tolist() == [0, 0]


def test_a_rank_that_idles_after_sending_with_its_input_at_hand_waits_for_its_own_message():
    """Blocking sends: stage 0 could run its next forward at once, but its send takes until 15."""
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(10, 15, rank=0, stage=0, op=F, microbatch=0, stream=Stream.MESSAGE, peer=1)
    rows.add(15, 25, rank=0, stage=0, op=F, microbatch=1)
    rows.add(15, 25, rank=1, stage=1, op=F, microbatch=0)
    by_cause = found(rows.trace(meta(2, 2))).pipeline.by_cause
    assert by_cause[BubbleCause.MESSAGES].tolist() == [5, 5]


def test_time_after_the_pipeline_is_the_cause_step_and_only_in_the_window_iteration():
    both = found(simulate(gpipe(2, 2), equal, step=(30, 8, 4)))
    assert both.pipeline.fraction_of(BubbleCause.STEP) == 0
    assert both.iteration.by_cause[BubbleCause.STEP].tolist() == [34, 34]
    assert both.iteration.window_ns == both.pipeline.window_ns + 42


def test_ranks_whose_clocks_make_rows_overlap_are_never_more_than_fully_busy():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(8, 20, rank=0, stage=0, op=B, microbatch=0)
    both = found(rows.trace(meta(1, 1)))
    assert both.pipeline.fraction() == both.iteration.fraction() == 0


def test_renaming_devices_and_hosts_changes_no_number():
    one = simulate(gpipe(3, 4), equal, hop=2)
    other = simulate(gpipe(3, 4), equal, hop=2, devices=("x", "y", "z"), hosts=("x", "x", "x"))
    named = [(r.device, r.host) for r in summarize(other, RunFacts()).ranks]
    assert named == [("x", "x"), ("y", "x"), ("z", "x")]
    assert summarize(one, RunFacts()).bubble == summarize(other, RunFacts()).bubble


def test_scaling_all_times_scales_times_and_leaves_fractions():
    one = summarize(simulate(one_f_one_b(4, 6), equal, hop=3, iterations=2, step=(9, 5, 1)), RunFacts())
    ten = summarize(
        simulate(one_f_one_b(4, 6), lambda a, k: 10 * TIMES[a.op], hop=30, iterations=2, step=(90, 50, 10)), RunFacts()
    )
    scaled = _scaled(one.to_dict(), 10)
    assert _close(scaled, ten.to_dict())


def _scaled(value, factor, key=""):
    if isinstance(value, dict):
        inner = key if key.endswith("_ms") else ""
        return {name: _scaled(part, factor, inner or name) for name, part in value.items()}
    if isinstance(value, list):
        return [_scaled(part, factor, key) for part in value]
    if isinstance(value, float):
        return value * factor if key.endswith("_ms") else value / factor if key.endswith("_per_s") else value
    return value


def _close(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_close, one, other))
    return one == pytest.approx(other) if isinstance(one, float) else one == other
