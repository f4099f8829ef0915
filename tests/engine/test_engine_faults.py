"""What one fault does to a run: lost, waited for, done again; each against its closed form."""

import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from engine_faults import MS, broken, costs, end_ms, link_down, link_slow, lost, rows, run, slow, stop
from engine_programs import one_f_one_b, program

from hops.cost.base import StepCosts
from hops.cost.table import TableCosts
from hops.engine.fault_windows import Pace, end_of
from hops.engine.settings import P2P, RunSettings
from hops.engine.simulate import run_program, run_program_until_stop
from hops.errors import JobFailedError, ProgramError, StalledError
from hops.faults.plan import FaultPlan
from hops.hardware.network import Link, Network, Route
from hops.trace.trace import Stream

MODES = [P2P.OVERLAPPED, P2P.BLOCKING_FUSED]
ONE = program("0F0 0I0 0W0", microbatches=1, rank_of_stage=(0,))
ONE_FUSED = program("0F0 0B0", microbatches=1, rank_of_stage=(0,))
TWO = program("0F0 0B0\n1F0 1B0", microbatches=1, rank_of_stage=(0, 1))
ALONE = Network.uniform(1)
STEP = StepCosts(
    tied_reduce_s=4e-3, grad_reduce_s=(1e-3, 2e-3, 3e-3), optimizer_s=(5e-3, 1e-3, 2e-3), host_s=1e-3, synchronized=True
)


def wire(bandwidth=1e6, *, latency_s=0.0):
    """Ranks 0 and 1 with one link per direction; 1e6 bytes/s carry 1,000 bytes in 1 ms."""
    there, back = (Route(links=(link,), latency_s=latency_s) for link in (0, 1))
    return Network(
        links=(Link(name="down", bandwidth=bandwidth), Link(name="up", bandwidth=bandwidth)),
        routes={(0, 1): there, (1, 0): back},
    )


# Faults that change nothing


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "faults",
    [(), (stop(0, 1e6, 2e6),), (stop(7, 0, None),), (link_down("elsewhere", 0, None),), (slow(2, 1e6, None, 3.0),)],
    ids=["empty", "later", "another device", "another link", "slow later"],
)
def test_faults_that_do_not_hit_change_no_row(mode, faults):
    work, network = one_f_one_b(3, 4), Network.uniform(3, latency_s=1e-4)
    whole = costs(3, step_costs=STEP, bytes_per_message=5)
    assert run(work, whole, network, *faults, iterations=2, p2p=mode) == run_program(
        work, whole, network, RunSettings(iterations=2, p2p=mode)
    )


# Slow devices


def test_work_in_a_slow_window_takes_the_factor_longer():
    """10 ms, twice as slow from 4 to 8: 4 + 2 are done at 8, the last 4 take until 12."""
    trace = run(ONE_FUSED, costs(1, f=10), ALONE, slow(0, 4, 8, 2.0))
    assert rows(trace, Stream.COMPUTE) == [("0F0", 0, -1, 0, 12), ("0B0", 0, -1, 12, 14)]
    assert rows(trace, Stream.FAULT) == [("HOST", 0, -1, 4, 8)]


def test_overlapping_slow_faults_multiply():
    """3 times from 0, 2 times from 6 to 12: 2 + 1 are done at 12, the last 7 take 21."""
    trace = run(ONE_FUSED, costs(1, f=10), ALONE, slow(0, 0, None, 3.0), slow(0, 6, 12, 2.0))
    assert rows(trace, Stream.COMPUTE)[0] == ("0F0", 0, -1, 0, 33)


@given(
    windows=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30), st.integers(2, 9)), max_size=5),
    start=st.integers(0, 40),
    length=st.integers(0, 100),
)
@settings(deadline=None, max_examples=200)
def test_the_integral_of_speed_over_the_work_is_its_length(windows, start, length):
    """Against exact fractions, nanosecond by nanosecond."""
    paces = []
    for begin, width, factor in windows:
        paces.append(Pace((0, begin, begin + width) if begin else (0, width), (1.0,) * bool(begin) + (factor, 1.0)))
    end = end_of(start, length, paces or [Pace()])
    done, now = Fraction(0), start
    factors = [max((pace.at(t)[0] for pace in paces), default=1.0) for t in range(start, start + 10 * length + 2)]
    while done + Fraction(1, int(factors[now - start])) <= length:
        done += Fraction(1, int(factors[now - start]))
        now += 1
    exact = now + (length - done) * int(factors[now - start])
    assert abs(end - exact) <= Fraction(1, 2)


@given(rank=st.integers(0, 2), start=st.integers(0, 30), width=st.integers(1, 30), factor=st.floats(1.1, 5))
@settings(deadline=None, max_examples=60)
def test_a_slow_device_never_speeds_a_static_program_up(rank, start, width, factor):
    work, network = one_f_one_b(3, 5), Network.uniform(3, latency_s=1e-4)
    without, mild, severe = (
        end_ms(run(work, costs(3, step_costs=STEP), network, *faults))
        for faults in ((), (slow(rank, start, start + width, factor),), (slow(rank, start, start + width, 2 * factor),))
    )
    assert without <= mild <= severe


def test_a_device_that_is_slow_for_good_runs_like_one_with_longer_times():
    work, network = one_f_one_b(3, 5), Network.uniform(3, latency_s=1e-4)
    slowed = run(work, costs(3), network, *(slow(rank, 0, None, 1.5) for rank in range(3)))
    longer = run_program(work, costs(3, f=1.5, i=1.5, w=1.5), network)
    assert slowed.where(slowed.stream != Stream.FAULT) == longer


# A stop during each kind of work


@pytest.mark.parametrize(
    ("work", "at", "name", "began"),
    [(ONE, 1, "0F0", 0), (ONE, 4, "0I0", 3), (ONE, 7, "0W0", 6), (ONE_FUSED, 5, "0B0", 3)],
)
def test_a_stop_loses_the_action_in_progress_which_is_done_again_from_its_start(work, at, name, began):
    trace = run(work, costs(1, 3, 3, 3), ALONE, stop(0, at, at + 10))
    assert lost(trace) == [(name, 0, -1, began, at)]
    names = [row[0] for row in rows(trace, Stream.COMPUTE)]
    assert names == [str(action) for action in work.actions(0)]
    redone = next(row for row in rows(trace, Stream.COMPUTE) if row[0] == name)
    assert redone[3] == at + 10
    assert end_ms(trace) == 9 + (at - began) + 10


def test_a_stop_between_actions_loses_nothing_and_holds_the_next_one_up():
    trace = run(ONE, costs(1, 3, 3, 3), ALONE, stop(0, 3, 5))
    assert lost(trace) == []
    assert rows(trace, Stream.COMPUTE)[1] == ("0I0", 0, -1, 5, 8)


def test_a_stop_at_time_0_lets_nothing_start():
    trace = run(ONE, costs(1), ALONE, stop(0, 0, 5))
    assert lost(trace) == []
    assert rows(trace, Stream.COMPUTE)[0] == ("0F0", 0, -1, 5, 6)


def test_the_second_of_a_pair_is_done_again_and_the_first_is_kept():
    text = "0F0 0F1 0B0 0B1\n1F0 1F1+1B0 1B1\n2F0 2B0 2F1 2B1"
    pair = program(text, microbatches=2, rank_of_stage=(0, 1, 2))
    trace = run(pair, costs(3, f=2), Network.uniform(3), stop(1, 11, 13))
    assert lost(trace) == [("1B0", 1, -1, 10, 11)]
    kept = [row for row in rows(trace, Stream.COMPUTE) if row[0] in {"1F1", "1B0"}]
    assert kept == [("1F1", 1, 1, 8, 10), ("1B0", 1, 1, 13, 15)]
    sent = {row[0]: row[3] for row in rows(trace, Stream.MESSAGE)}
    assert (sent["1F1"], sent["1B0"]) == (15, 15)  # both outputs leave with the second's end


def test_work_is_lost_as_often_as_it_is_hit():
    trace = run(ONE_FUSED, costs(1, f=10), ALONE, stop(0, 3, 4), stop(0, 9, 11), slow(0, 0, 20, 2.0))
    assert lost(trace) == [("0F0", 0, -1, 0, 3), ("0F0", 0, -1, 4, 9)]
    assert rows(trace, Stream.COMPUTE)[0] == ("0F0", 0, -1, 11, 25.5)  # 4.5 of 10 are done at 20


def test_stops_that_overlap_or_touch_are_one():
    trace = run(ONE_FUSED, costs(1, f=10), ALONE, stop(0, 3, 6), stop(0, 5, 9), stop(0, 9, 12), stop(0, 4, 5))
    assert lost(trace) == [("0F0", 0, -1, 0, 3)]
    assert rows(trace, Stream.COMPUTE)[0][3] == 12


# The end of an iteration: STEP runs GRAD_REDUCE from 15 (rank 0), TIED_REDUCE 16 to 20, OPTIMIZER 20 to 25, HOST to 26


def step_run(*faults, **more):
    return run(one_f_one_b(3, 3), costs(3, step_costs=STEP), Network.uniform(3), *faults, iterations=2, **more)


@pytest.mark.parametrize(
    ("rank", "at", "expected", "delay"),
    [
        (0, 15.5, [("GRAD_REDUCE", 0, -1, 15, 15.5)], 0.5 + 2),
        (0, 17, [("TIED_REDUCE", 0, -1, 16, 17), ("TIED_REDUCE", 2, -1, 16, 17)], 1 + 2),
        (2, 19, [("TIED_REDUCE", 0, -1, 16, 19), ("TIED_REDUCE", 2, -1, 16, 19)], 3 + 2),
        (1, 18, [], 0),  # it waits, and is back before the meeting
        (0, 24, [("OPTIMIZER", 0, -1, 20, 24)], 4 + 2),
        (1, 20.5, [("OPTIMIZER", 1, -1, 20, 20.5)], 0),  # it has 4 ms of slack, and takes 0.5 + 2 longer
        (1, 22, [], 0),  # its optimizer has ended
        (1, 25.5, [("HOST", 1, -1, 25, 25.5)], 2.5),
    ],
)
def test_a_stop_at_the_end_of_an_iteration_loses_what_the_rank_was_at(rank, at, expected, delay):
    """For two milliseconds. The second iteration starts on the hit rank `delay` later than the 26 ms it is due at."""
    trace = step_run(stop(rank, at, at + 2))
    assert lost(trace) == expected
    second = trace.where((trace.iteration == 1) & (trace.stream == Stream.COMPUTE) & (trace.rank == 0))
    start_of_all = 26 + (delay if expected[:1] and expected[0][0] != "HOST" else 0)
    assert second.start_ns.min() / MS == start_of_all
    counts = [row[0] for row in rows(trace, Stream.COMPUTE, Stream.COLLECTIVE, Stream.HOST)]
    assert {name: counts.count(name) for name in ("GRAD_REDUCE", "TIED_REDUCE", "OPTIMIZER", "HOST")} == {
        "GRAD_REDUCE": 6,
        "TIED_REDUCE": 4,
        "OPTIMIZER": 6,
        "HOST": 6,
    }


def test_a_slow_end_slows_the_tied_reduction_of_both():
    trace = step_run(slow(2, 16, 18, 2.0))
    tied = [row[3:] for row in rows(trace, Stream.COLLECTIVE) if row[0] == "TIED_REDUCE"]
    assert tied[:2] == [(16, 21)] * 2


def test_a_link_that_reductions_cross_holds_them_up():
    crossed = (("nic",), (), ())
    down = step_run(link_down("nic", 15.5, 16), reduction_links=crossed)
    assert lost(down) == [("GRAD_REDUCE", 0, -1, 15, 15.5)]
    half = step_run(link_slow("nic", 15, 16, 0.5), reduction_links=crossed)
    assert ("GRAD_REDUCE", 0, -1, 15, 16.5) in rows(half, Stream.COLLECTIVE)
    assert rows(half, Stream.FAULT) == [("HOST", 0, 0, 15, 16)]
    assert step_run(link_down("nic", 15.5, 16)) == step_run()


def test_a_link_for_reductions_that_there_are_not_hits_nobody():
    trace = run(TWO, costs(2), wire(), link_down("nic", 0, 5), reduction_links=(("nic",), ("nic",)))
    assert rows(trace, Stream.FAULT) == []


def test_tied_embeddings_wait_for_the_links_between_their_ends():
    tied = StepCosts(tied_reduce_s=4e-3, synchronized=True)
    trace = run(TWO, costs(2, step_costs=tied), wire(), link_down("up", 7, 9))
    assert lost(trace) == [("TIED_REDUCE", 0, -1, 6, 7), ("TIED_REDUCE", 1, -1, 6, 7)]
    assert end_ms(trace) == 13


# Messages: 0F0 ends at 1, its 5,000 bytes take 5 ms, then latency


@pytest.mark.parametrize("mode", [*MODES, P2P.BLOCKING])
@pytest.mark.parametrize("at", [3, 6.5], ids=["while its bytes move", "in its latency"])
@pytest.mark.parametrize("hit", [stop(0, 0, 1), stop(1, 0, 1), link_down("down", 0, 1)], ids=["from", "to", "over"])
def test_a_message_under_way_is_lost_and_sent_again(mode, at, hit):
    fault = type(hit)(kind=hit.kind, target=hit.target, start_ns=round(at * MS), end_ns=20 * MS)
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(latency_s=1e-3), fault, p2p=mode)
    assert lost(trace) == [("0F0", 0, 1, 1, at)]
    assert trace.of(Stream.LOST).bytes.tolist() == [5_000]
    assert rows(trace, Stream.MESSAGE) == [("0F0", 0, 1, 20, 26), ("1B0", 1, 0, 29, 35)]
    assert end_ms(trace) == 37


@pytest.mark.parametrize("hit", [stop(1, 0, 20), link_down("down", 0, 20)], ids=["receiver", "link"])
def test_a_message_waits_for_what_is_down_without_being_lost(hit):
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(), hit)
    assert lost(trace) == []
    assert rows(trace, Stream.MESSAGE)[0] == ("0F0", 0, 1, 20, 25)


def test_a_link_without_finite_bandwidth_goes_down_too():
    trace = run(TWO, costs(2), wire(float("inf"), latency_s=1e-3), link_down("down", 1.5, 4))
    assert lost(trace) == [("0F0", 0, 1, 1, 1.5)]
    assert rows(trace, Stream.MESSAGE)[0] == ("0F0", 0, 1, 4, 5)


def test_a_message_that_stays_gets_the_bandwidth_of_one_that_is_lost():
    """On one bus: 0F1's 4,000 bytes alone from 8, with 1F0's from 9; rank 2 stops at 11; 2,000 left take 2 ms."""
    route = Route(links=(0,))
    pairs = {(a, b): route for a in range(3) for b in range(3) if a != b}
    bus = Network(links=(Link(name="bus", bandwidth=1e6),), routes=pairs)
    times = TableCosts.of(
        forward_s=(4e-3, 1e-3, 1e-3),
        input_backward_s=(1e-3,) * 3,
        weight_backward_s=(1e-3,) * 3,
        bytes_per_message=4_000,
    )
    trace = run(one_f_one_b(3, 2), times, bus, stop(2, 11, 90))
    assert lost(trace) == [("1F0", 1, 2, 9, 11)]
    assert ("0F1", 0, 1, 8, 13) in rows(trace, Stream.MESSAGE)


def test_a_slow_link_carries_what_its_factor_leaves():
    """5,000 bytes from 1 on; from 3 to 7 a quarter: 2 + 1 ms of it are carried at 7, the rest takes 2 more."""
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(), link_slow("down", 3, 7, 0.25))
    assert rows(trace, Stream.MESSAGE)[0] == ("0F0", 0, 1, 1, 9)
    assert rows(trace, Stream.FAULT) == [("HOST", 0, 1, 3, 7)]
    assert lost(trace) == []


def test_slow_links_multiply():
    trace = run(
        TWO, costs(2, bytes_per_message=5_000), wire(), link_slow("down", 0, None, 0.5), link_slow("down", 0, None, 0.2)
    )
    assert rows(trace, Stream.MESSAGE)[0] == ("0F0", 0, 1, 1, 51)


# Several at once


def test_two_devices_at_once_lose_both_actions():
    work = one_f_one_b(2, 4)
    trace = run(work, costs(2, f=3), Network.uniform(2), stop(0, 5, 8), stop(1, 5, 9))
    assert lost(trace) == [("0F1", 0, -1, 3, 5), ("1F0", 1, -1, 3, 5)]
    assert len(trace.of(Stream.COMPUTE)) == 16


def test_what_hangs_between_two_devices_waits_for_the_later_one():
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(), stop(0, 3, 8), stop(1, 4, 30), link_down("down", 7, 35))
    assert lost(trace) == [("0F0", 0, 1, 1, 3)]
    assert rows(trace, Stream.MESSAGE)[0][3] == 35


def test_a_host_takes_a_whole_group_of_stages():
    """Ranks 1 and 2, and the message between them."""
    trace = run(one_f_one_b(4, 4), costs(4), Network.uniform(4, latency_s=1e-3), stop(1, 3.5, 9), stop(2, 3.5, 9))
    hit = {row[1] for row in lost(trace)} | {row[2] for row in lost(trace)} - {-1}
    assert hit & {1, 2}
    for what, rank, peer, start, end in rows(trace, Stream.COMPUTE, Stream.MESSAGE):
        assert not ({rank, peer} & {1, 2} and start < 9 and end > 3.5), what
    assert len(trace.of(Stream.COMPUTE)) == 4 * 4 * 2


# What is never repaired


def test_a_stop_for_ever_stalls_the_run_and_is_named():
    with pytest.raises(StalledError) as stalled:
        run(one_f_one_b(3, 4), costs(3), Network.uniform(3), stop(1, 1.5, None, cause="host b"))
    assert str(stalled.value) == (
        "the run stalled at 3.000 ms: nothing is left to happen, but ranks still wait\n"
        "  rank 0: next is 0B0, which waits for the gradient of 1B0 from rank 1\n"
        "  rank 1: its device rank1 is down\n"
        "  rank 2: next is 2F0, which waits for 1F0 from rank 1\n"
        "never repaired: stop of rank1 since 1.500 ms (host b); give it an end, or a recovery policy that does "
        "without it"
    )


def test_a_stop_for_ever_at_the_end_of_the_last_iteration_stalls_the_run_too():
    with pytest.raises(StalledError, match=r"never repaired: stop of rank1 since 48\.500 ms; give it an end"):
        step_run(stop(1, 48.5, None))


def test_a_link_that_is_down_for_ever_stalls_the_run_and_is_named():
    with pytest.raises(StalledError, match=r"never repaired: link-down of down since 0\.500 ms; give it an end"):
        run(TWO, costs(2), wire(), link_down("down", 0.5, None))


def test_a_wrong_order_is_refused_before_anything_breaks():
    wrong = program("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", microbatches=2, rank_of_stage=(0, 1))
    with pytest.raises(ProgramError, match="the program deadlocks"):
        run(wrong, costs(2), Network.uniform(2), slow(0, 0, 1, 2.0))


# The transport gives up


def test_the_job_fails_when_a_message_waits_for_a_link_longer_than_the_transport_does():
    with pytest.raises(JobFailedError) as failed:
        run(TWO, costs(2, bytes_per_message=5_000), wire(), link_down("down", 3, 20), timeout_ms=10)
    assert str(failed.value) == (
        "the job failed at 13.000 ms: the output of 0F0 from rank 0 to rank 1 waited 10.000 ms for the link down, down "
        "since 3.000 ms, and the transport timed out; raise the timeout, or let messages wait"
    )


def test_a_link_that_returns_in_time_fails_nothing():
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(), link_down("down", 3, 13), timeout_ms=10)
    assert rows(trace, Stream.MESSAGE)[0] == ("0F0", 0, 1, 13, 18)


def test_the_transport_waits_anew_after_every_return_and_not_for_devices():
    faults = (link_down("down", 3, 9), link_down("down", 10, 17), stop(1, 17.5, 40))
    trace = run(TWO, costs(2, bytes_per_message=5_000), wire(), *faults, timeout_ms=8)
    assert lost(trace) == [("0F0", 0, 1, 1, 3), ("0F0", 0, 1, 9, 10), ("0F0", 0, 1, 17, 17.5)]


def test_a_message_that_waits_for_a_device_times_out_on_its_link():
    """From the moment at which the link goes down."""
    with pytest.raises(JobFailedError, match=r"failed at 25\.000 ms: the output of 0F0"):
        run(TWO, costs(2), wire(), stop(1, 0, 50), link_down("down", 20, 40), timeout_ms=5)


def test_a_reduction_times_out_too():
    with pytest.raises(JobFailedError, match=r"failed at 20\.500 ms: GRAD_REDUCE of rank 0 waited 5\.000 ms"):
        step_run(link_down("nic", 15.5, 30), reduction_links=(("nic",), (), ()), timeout_ms=5)


# To the first stop


def test_a_run_to_its_first_stop_ends_there():
    how = broken((stop(1, 6.5, 30), stop(0, 6.5, 40, cause="rack"), stop(2, 9, 10), slow(2, 0, 2, 1.5)), iterations=2)
    outcome = run_program_until_stop(one_f_one_b(3, 3), costs(3, step_costs=STEP), Network.uniform(3), how)
    found = outcome.interruption
    assert (found.at_ns, found.ranks, found.completed_iterations) == (6_500_000, (0, 1), 0)
    assert [(fault.target, fault.cause) for fault in found.faults] == [("rank0", "rack"), ("rank1", "")]
    assert found.message == "stopped at 6.500 ms: rank0, rank1"
    assert outcome.trace.end_ns.max() == 6_500_000


@given(at=st.integers(1, 60_000), mode=st.sampled_from(MODES), synchronized=st.booleans())
@settings(deadline=None, max_examples=60)
def test_what_is_done_before_the_first_stop_is_what_an_undisturbed_run_had_done_by_then(at, mode, synchronized):
    """And what is lost is what that run had started and not ended, on all ranks."""
    step = StepCosts(grad_reduce_s=(1e-3,) * 3, tied_reduce_s=2e-3, optimizer_s=(2e-3,) * 3, synchronized=synchronized)
    work, network = one_f_one_b(3, 4), Network.uniform(3, latency_s=3e-4)
    whole = costs(3, step_costs=step)
    base = run_program(work, whole, network, RunSettings(iterations=2, p2p=mode))
    outcome = run_program_until_stop(work, whole, network, broken((stop(1, at / 1e3, None),), iterations=2, p2p=mode))
    done = (Stream.COMPUTE, Stream.MESSAGE, Stream.COLLECTIVE, Stream.HOST)
    before = [row for row in rows(base, *done) if row[4] <= at / 1e3]
    assert sorted(rows(outcome.trace, *done)) == sorted(before)
    cut = [(*row[:4], at / 1e3) for row in rows(base, *done) if row[3] < at / 1e3 < row[4]]
    assert sorted(lost(outcome.trace)) == sorted(cut)
    assert (outcome.interruption is None) == (base.end_ns.max() <= at * 1e3)


def test_without_a_stop_a_run_to_the_first_stop_is_the_run():
    work = one_f_one_b(3, 3)
    whole, network = costs(3, step_costs=STEP), Network.uniform(3)
    for faults in ((), (slow(0, 2, 5, 2.0),)):
        outcome = run_program_until_stop(work, whole, network, broken(faults))
        assert outcome.interruption is None
        assert outcome.trace == run(work, whole, network, *faults)


def test_a_transport_that_gives_up_is_a_stop():
    how = broken((link_down("down", 3, 20),), timeout_ms=10)
    outcome = run_program_until_stop(TWO, costs(2, bytes_per_message=5_000), wire(), how)
    assert outcome.interruption.at_ns == 13 * MS
    assert outcome.interruption.ranks == (0, 1)
    assert [fault.target for fault in outcome.interruption.faults] == ["down"]


def test_completed_iterations_are_those_that_all_ranks_have_ended():
    how = broken((stop(0, 60, 70),), iterations=5)
    work = one_f_one_b(3, 3)
    outcome = run_program_until_stop(work, costs(3, step_costs=STEP), Network.uniform(3), how)
    assert outcome.interruption.completed_iterations == 2  # 26 ms each


def test_a_plan_seen_from_later_on_disturbs_what_is_left():
    """A stop from 6 to 9, seen from 5 on, is one from 1 to 4; what is over is left out."""
    plan = FaultPlan.of((stop(0, 6, 9), stop(0, 1, 4), stop(1, 2, None)))
    assert plan.from_now(5 * MS) == FaultPlan.of((stop(0, 1, 4), stop(1, 0, None)))
    assert plan.during(4 * MS, 6 * MS) == FaultPlan.of((stop(1, 2, None),))
