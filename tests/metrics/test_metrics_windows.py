"""Where iterations end when the trace does not say, and what follows the pipeline: parts, faults, reductions."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pipelines import B, F, Rows, gpipe, meta, one_f_one_b, simulate

from hops.metrics.audit import audit
from hops.metrics.bubble import BubbleCause, bubbles
from hops.metrics.difference import break_down, difference
from hops.metrics.iterations import Iterations
from hops.metrics.links import link_uses
from hops.metrics.stalls import find_warmup
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.metrics.throughput import iteration_times_ns
from hops.program.action import Op
from hops.trace.trace import COLUMNS, LinkMeta, Stream, Trace

MS = 1_000_000


def actions_only(iterations, *, apart=100, work=40, source="measured"):
    """One rank that computes `work` ms every `apart` ms; what it does in between is not recorded."""
    rows = Rows()
    for k in range(iterations):
        begin = apart * k * MS
        rows.add(begin, begin + work * MS // 4, rank=0, stage=0, microbatch=0, op=F, iteration=k)
        rows.add(begin + work * MS // 4, begin + work * MS, rank=0, stage=0, microbatch=0, op=B, iteration=k)
    return rows.trace(meta(1, 1, source=source))


def of(trace, warmup=0):
    return Iterations.of(trace, RunFacts(warmup_iterations=warmup))


def test_the_last_iteration_of_actions_alone_ends_at_nobody_knows_what_time():
    """Three iterations 100 ms apart with 40 ms of work last 100 ms, not 80 on the mean."""
    summary = summarize(actions_only(3), RunFacts())
    assert summary.iteration_time.values_ms == (100, 100)
    assert summary.throughput.microbatches_per_s == pytest.approx(10)
    assert summary.bubble.iteration.fraction == pytest.approx(0.6)
    found = audit(of(actions_only(3)))
    assert (found.iterations, found.cut_iterations) == ((0, 1), (2,))
    assert found.to_dict()["cut_iterations"] == [2]


@pytest.mark.parametrize(("iterations", "expected"), [(1, (40,)), (2, (100,))])
def test_a_single_iteration_ends_with_its_last_row_for_want_of_better(iterations, expected):
    assert summarize(actions_only(iterations), RunFacts()).iteration_time.values_ms == expected


def test_a_simulated_trace_holds_all_there_is():
    assert summarize(actions_only(3, source="simulated"), RunFacts()).iteration_time.values_ms == (100, 100, 40)


def test_iterations_that_follow_without_a_gap_all_count():
    assert summarize(actions_only(3, apart=40), RunFacts()).iteration_time.values_ms == (40, 40, 40)


def test_warm_up_is_found_among_all_iterations_recorded():
    """One of three is warm-up; of the first two alone neither would be."""
    trace = actions_only(3)
    columns = {name: getattr(trace, name) for name in COLUMNS}
    slower = {"end_ns": trace.end_ns + 10 * MS * ((trace.iteration < 1) & (trace.op == B))}
    assert find_warmup(Trace.from_columns(columns | slower, trace.meta)) == 1


def test_two_recordings_of_one_run_do_not_differ_by_how_long_they_are():
    """The difference of a run with itself, recorded for longer, is nothing; not a share of an interval."""
    sides = [break_down(audit(of(actions_only(count)))) for count in (3, 10)]
    assert difference(*sides).total_ms == 0
    assert all(change.change_ms == 0 for change in difference(*sides).changes)


def overlapping(iterations):
    """Two ranks without a barrier: rank 0 goes on while rank 1 still drains; 100 ms apart, 160 ms from end to end."""
    rows = Rows()
    for k in range(iterations):
        begin = 100 * k * MS
        rows.add(begin, begin + 50 * MS, rank=0, stage=0, microbatch=0, op=F, iteration=k)
        rows.add(begin + 50 * MS, begin + 90 * MS, rank=1, stage=1, microbatch=0, op=F, iteration=k)
        rows.add(begin + 90 * MS, begin + 140 * MS, rank=1, stage=1, microbatch=0, op=B, iteration=k)
        rows.add(begin + 140 * MS, begin + 160 * MS, rank=1, op=Op.OPTIMIZER, iteration=k)
    return rows.trace(meta(2, 1, source="simulated"))


@pytest.mark.parametrize("iterations", [2, 3, 50])
def test_overlapping_iterations_take_the_same_mean_however_many_are_recorded(iterations):
    summary = summarize(overlapping(iterations), RunFacts())
    assert set(summary.iteration_time.values_ms) == {100}
    assert summary.iterations == iterations - 1


@pytest.mark.parametrize("iterations", [2, 4])
def test_causes_fill_windows_of_overlapping_iterations_exactly(iterations):
    found = bubbles(of(overlapping(iterations)))
    for idle in (found.pipeline, found.iteration):
        assert np.all(idle.busy_ns + sum(idle.by_cause.values()) == idle.window_ns)
        assert all(np.all(ns >= 0) for ns in idle.by_cause.values())


def unsynchronised():
    """Rank 0 steps 60 ms before rank 1 has ended the pipeline; the steps end 5 ms before the next iteration."""
    rows = Rows()
    for k in range(3):
        begin = 200 * k * MS
        rows.add(begin, begin + 20 * MS, rank=0, stage=0, microbatch=0, op=F, iteration=k)
        rows.add(begin + 20 * MS, begin + 50 * MS, rank=0, stage=0, microbatch=0, op=B, iteration=k)
        rows.add(begin + 20 * MS, begin + 60 * MS, rank=1, stage=1, microbatch=0, op=F, iteration=k)
        rows.add(begin + 60 * MS, begin + 120 * MS, rank=1, stage=1, microbatch=0, op=B, iteration=k)
        rows.add(begin + 60 * MS, begin + 90 * MS, rank=0, op=Op.OPTIMIZER, iteration=k)
        rows.add(begin + 130 * MS, begin + 195 * MS, rank=1, op=Op.OPTIMIZER, iteration=k)
    return rows.trace(meta(2, 1, source="measured"))


def test_parts_of_an_iteration_are_never_negative_and_fill_it():
    parts = audit(of(unsynchronised())).parts
    assert [each.median_ms for each in (parts.pipeline, parts.reduce, parts.optimizer, parts.host)] == [120, 0, 75, 5]


def test_parts_do_not_reach_into_the_next_iteration():
    """One rank's step ends 60 ms after the other rank has begun its next iteration: that time is the next one's."""
    parts = audit(of(overlapping(3))).parts
    assert [each.median_ms for each in (parts.pipeline, parts.reduce, parts.optimizer, parts.host)] == [100, 0, 0, 0]


def reduced(*, hit, rank=0, peer=-1, source="simulated"):
    """Two ranks compute 0 to 30; rank 0 reduces 30 to 60 (again after a fault), rank 1 to 40; the step is 60 to 70."""
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=0, op=F)
    rows.add(10, 15, rank=1, stage=1, microbatch=0, op=F)
    rows.add(15, 20, rank=1, stage=1, microbatch=0, op=B)
    rows.add(20, 30, rank=0, stage=0, microbatch=0, op=B)
    rows.add(30, 60, rank=0, op=Op.GRAD_REDUCE, stream=Stream.COLLECTIVE)
    rows.add(30, 40, rank=1, op=Op.GRAD_REDUCE, stream=Stream.COLLECTIVE)
    rows.add(60, 70, rank=0, op=Op.OPTIMIZER)
    rows.add(60, 70, rank=1, op=Op.OPTIMIZER)
    rows.add(70, 80, rank=0, op=Op.HOST, stream=Stream.HOST)
    rows.add(*hit, rank=rank, stream=Stream.FAULT, peer=peer)
    links = (LinkMeta(name="a.nic.out", bandwidth=1e9), LinkMeta(name="b.nic.in", bandwidth=1e9))
    links += (LinkMeta(name="b.nic.out", bandwidth=1e9), LinkMeta(name="a.nic.in", bandwidth=1e9))
    routes = {(0, 1): (0, 1), (1, 0): (2, 3)}
    return rows.trace(meta(2, 1, source=source, links=links, routes=routes))


@pytest.mark.parametrize(
    ("hit", "rank", "peer", "expected"),
    [
        ((35, 55), 0, -1, [20, 15]),  # the slow device itself; the other rank from 40 on, when it waits for it
        ((35, 55), 0, 0, [20, 15]),  # the link that only its reduction crosses
        (
            (35, 55),
            1,
            -1,
            [0, 20],
        ),  # rank 0 reduces: the fault of rank 1, which still has its step to do, delays it not
        ((62, 75), 0, -1, [5, 5]),  # during the step nobody idles; after it rank 1 waits for rank 0's host
        ((71, 75), 1, -1, [0, 0]),  # nothing is left for rank 1 to do
    ],
)
def test_a_fault_in_what_follows_the_pipeline_is_a_fault(hit, rank, peer, expected):
    run = of(reduced(hit=hit, rank=rank, peer=peer))
    found = bubbles(run)
    assert found.iteration.by_cause[BubbleCause.FAULT].tolist() == expected
    after = 80 - 30 - 10 - np.array(expected)
    assert found.iteration.by_cause[BubbleCause.STEP].tolist() == after.tolist()
    assert not found.pipeline.by_cause[BubbleCause.FAULT].any()


def test_reductions_are_on_the_links_that_would_hold_them_up():
    uses = {use.link.name: use for use in link_uses(of(reduced(hit=(90, 91))))}
    assert {name: use.reducing_ns for name, use in uses.items()} == {
        "a.nic.out": 30, "b.nic.in": 10, "b.nic.out": 10, "a.nic.in": 30,
    }  # fmt: skip
    assert uses["a.nic.out"].busy_share == pytest.approx(30 / 80)
    assert {use.messages for use in uses.values()} == {0}


def test_links_inside_a_host_carry_no_gradient_reduction():
    """Copies of a rank are on other hosts."""
    trace = reduced(hit=(90, 91))
    inside = replace(trace, meta=replace(trace.meta, hosts=("one", "one")))
    assert {use.reducing_ns for use in link_uses(of(inside))} == {0}


def test_messages_and_reductions_on_a_link_count_once_where_they_overlap():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=0, op=F)
    rows.add(10, 30, rank=0, stage=0, microbatch=0, op=F, stream=Stream.MESSAGE, peer=1, bytes=5)
    rows.add(20, 50, rank=0, op=Op.TIED_REDUCE, stream=Stream.COLLECTIVE)
    rows.add(20, 50, rank=1, op=Op.TIED_REDUCE, stream=Stream.COLLECTIVE)
    rows.add(30, 100, rank=1, stage=1, microbatch=0, op=F)
    both = {(0, 1): (0,), (1, 0): (1,)}
    wires = tuple(LinkMeta(name=name, bandwidth=1e9) for name in ("there", "back"))
    there, back = link_uses(of(rows.trace(meta(2, 1, links=wires, routes=both, hosts=("one", "one")))))
    assert (there.busy_ns, there.reducing_ns, there.contended_ns) == (40, 30, 0)
    assert (back.busy_ns, back.reducing_ns, back.messages) == (30, 30, 0)


def test_a_summary_of_overlapping_iterations_is_plain_json():
    assert json.loads(summarize(overlapping(3), RunFacts()).to_json())["iterations"] == 2


def test_iterations_without_a_cut_are_those_recorded():
    trace = simulate(one_f_one_b(2, 3), lambda action, k: MS, iterations=3, step=(MS, MS, MS))
    whole = Iterations.recorded(trace, RunFacts())
    assert of(trace).cut == ()
    np.testing.assert_array_equal(iteration_times_ns(of(trace)), iteration_times_ns(whole))
    assert simulate(gpipe(1, 1), lambda action, k: MS).num_iterations == 1
