"""Runs against closed forms, symmetries and conservation laws."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from engine_programs import one_f_one_b, program

from hops.cost.base import StepCosts
from hops.cost.table import TableCosts
from hops.distributions import LogNormal
from hops.engine.settings import P2P, RunSettings
from hops.engine.simulate import run_policy, run_program
from hops.errors import ProgramError, StalledError
from hops.hardware.network import Link, Network, RareDelay, Route
from hops.program.action import Action, Op
from hops.program.shape import Shape
from hops.schedules.base import Scheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

MS = 1_000_000


def costs(stages, f=1, i=1, w=1, **more):
    """Costs in milliseconds."""
    return TableCosts.of(
        forward_s=(f / 1e3,) * stages,
        input_backward_s=(i / 1e3,) * stages,
        weight_backward_s=(w / 1e3,) * stages,
        **more,
    )


def makespan_ms(trace):
    return trace.end_ns.max() / MS


@given(ranks=st.integers(1, 6), microbatches=st.integers(1, 9), f=st.integers(1, 9), b=st.integers(2, 18))
@settings(deadline=None, max_examples=40)
def test_1f1b_takes_m_plus_p_minus_1_times_f_plus_b(ranks, microbatches, f, b):
    trace = run_program(one_f_one_b(ranks, microbatches), costs(ranks, f=f, i=b - 1, w=1), Network.uniform(ranks))
    assert makespan_ms(trace) == (microbatches + ranks - 1) * (f + b)


@given(ranks=st.integers(2, 6), rounds=st.integers(1, 4), hop=st.integers(0, 1))
@settings(deadline=None, max_examples=40)
def test_latency_adds_its_closed_form_to_1f1b(ranks, rounds, hop):
    """published.md section 2: k = 2(p-1)m/p + 2(p-2) hops lie on the critical path when p divides m."""
    microbatches = ranks * rounds
    network = Network.uniform(ranks, latency_s=hop / 1e4)
    trace = run_program(one_f_one_b(ranks, microbatches), costs(ranks), network)
    hops = 2 * (ranks - 1) * microbatches // ranks + 2 * (ranks - 2)
    assert makespan_ms(trace) == pytest.approx((microbatches + ranks - 1) * 3 + hops * hop / 10, abs=1e-9)


def shared_link(bandwidth, *, latency_s=0.0):
    """Ranks 0 and 2 send to ranks 1 and 3 over one link."""
    route = Route(links=(0,), latency_s=latency_s)
    return Network(links=(Link(name="wire", bandwidth=bandwidth),), routes={(0, 1): route, (1, 0): route})


def test_two_equal_messages_on_one_link_finish_at_one_and_a_half_and_two_times_the_single_time():
    """The second starts when the first is half through."""
    two = program("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1", microbatches=2, rank_of_stage=(0, 1))
    trace = run_program(two, costs(2, f=0.5, bytes_per_message=1_000), shared_link(1e6)).of(Stream.MESSAGE)
    first, second = (trace.where((trace.op == Op.F) & (trace.microbatch == mb)) for mb in (0, 1))
    assert (second.start_ns[0] - first.start_ns[0]) / MS == 0.5
    assert first.duration_ns[0] / MS == 1.5
    assert (second.end_ns[0] - first.start_ns[0]) / MS == 2.0


@given(
    bandwidth=st.floats(1e4, 1e8), ranks=st.integers(2, 5), microbatches=st.integers(1, 6), size=st.integers(1, 10**6)
)
@settings(deadline=None, max_examples=40)
def test_a_link_never_carries_more_than_its_capacity(bandwidth, ranks, microbatches, size):
    """All messages of all ranks over one link: in any window from a start to an end, bytes <= capacity x time."""
    route = Route(links=(0,))
    pairs = {(a, b): route for a in range(ranks) for b in range(ranks) if a != b}
    network = Network(links=(Link(name="bus", bandwidth=bandwidth),), routes=pairs)
    trace = run_program(one_f_one_b(ranks, microbatches), costs(ranks, bytes_per_message=size), network)
    sent = trace.of(Stream.MESSAGE)
    assert len(sent) == 2 * (ranks - 1) * microbatches
    for start in np.unique(sent.start_ns):
        inside = sent.start_ns >= start
        for end in np.unique(sent.end_ns[inside]):
            total = int(sent.bytes[inside & (sent.end_ns <= end)].sum())
            assert total <= bandwidth * (end - start) / 1e9 * (1 + 1e-6) + bandwidth * 1e-9


def test_a_message_takes_bytes_over_bandwidth_plus_latency():
    two = program("0F0 0B0\n1F0 1B0", microbatches=1, rank_of_stage=(0, 1))
    network = shared_link(1e6, latency_s=0.25)
    trace = run_program(two, costs(2, bytes_per_message=5_000), network).of(Stream.MESSAGE)
    assert trace.duration_ns.tolist() == [255 * MS] * 2
    assert trace.bytes.tolist() == [5_000] * 2
    assert trace.peer.tolist() == [1, 0]


@given(scale=st.integers(2, 50), split=st.booleans(), mode=st.sampled_from([P2P.OVERLAPPED, P2P.BLOCKING_FUSED]))
@settings(deadline=None, max_examples=30)
def test_scaling_all_times_scales_every_row(scale, split, mode):
    work = one_f_one_b(4, 6, split=split)
    one = run_program(work, costs(4, 3, 2, 1), Network.uniform(4, latency_s=1e-4), RunSettings(p2p=mode))
    scaled = costs(4, 3 * scale, 2 * scale, scale)
    many = run_program(work, scaled, Network.uniform(4, latency_s=scale * 1e-4), RunSettings(p2p=mode))
    assert np.array_equal(one.start_ns * scale, many.start_ns)
    assert np.array_equal(one.end_ns * scale, many.end_ns)


@given(faster=st.integers(0, 3), factor=st.floats(0.1, 1.0))
@settings(deadline=None, max_examples=30)
def test_a_faster_device_never_slows_a_static_program_down(faster, factor):
    forward = [2e-3] * 4
    slow = TableCosts.of(forward_s=tuple(forward), input_backward_s=(2e-3,) * 4, weight_backward_s=(1e-3,) * 4)
    forward[faster] *= factor
    fast = TableCosts.of(forward_s=tuple(forward), input_backward_s=(2e-3,) * 4, weight_backward_s=(1e-3,) * 4)
    network = Network.uniform(4, latency_s=1e-4)
    work = one_f_one_b(4, 8)
    assert makespan_ms(run_program(work, fast, network)) <= makespan_ms(run_program(work, slow, network))


def test_every_action_runs_once_an_iteration_and_ranks_never_overlap():
    work = one_f_one_b(3, 5, split=True)
    trace = run_program(work, costs(3), Network.uniform(3), RunSettings(iterations=3)).of(Stream.COMPUTE)
    for iteration in range(3):
        part = trace.where(trace.iteration == iteration)
        rows = zip(part.stage.tolist(), part.op.tolist(), part.microbatch.tolist(), strict=True)
        ran = sorted(Action(stage, Op(op), mb) for stage, op, mb in rows)
        assert ran == sorted(action for rank in range(work.num_ranks) for action in work.actions(rank))
    for rank in range(3):
        mine = trace.where(trace.rank == rank)
        assert (mine.start_ns[1:] >= mine.end_ns[:-1]).all()


def test_stages_on_one_rank_exchange_nothing():
    v_shape = program("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0", microbatches=1, rank_of_stage=(0, 1, 1, 0))
    trace = run_program(v_shape, costs(4), Network.uniform(2, latency_s=1e-3))
    sent = trace.of(Stream.MESSAGE)
    assert len(sent) == 4
    assert makespan_ms(trace) == 4 * 3 + 4


class Greedy(Scheduler):
    """Backward first, forward otherwise: a policy without memory."""

    def configure(self, profile):
        self.profile = profile

    def next_actions(self, view):
        ready = [action for action in view.ready() if action.op is not Op.I]
        backward = [action for action in ready if action.op is Op.B]
        return (backward or ready)[:1]


class Follow(Scheduler):
    """A program, driven through the two-method interface."""

    def __init__(self, work):
        self.work = work

    def configure(self, profile):
        pass

    def next_actions(self, view):
        left = [action for action in self.work.actions(view.rank) if not view.done(action)]
        return left[:1]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("mode", [P2P.OVERLAPPED])
def test_a_program_driven_as_a_policy_gives_the_same_trace(split, mode):
    """The fast form for static schedules and the two-method interface are one behaviour."""
    work = one_f_one_b(4, 7, split=split)
    how = RunSettings(p2p=mode, iterations=2)
    network = Network.uniform(4, latency_s=1e-4)
    profile = StageCosts.uniform(work.shape)
    assert run_policy(Follow(work).placed(profile), costs(4), network, how) == run_program(work, costs(4), network, how)


@pytest.mark.parametrize("mode", list(P2P))
def test_a_policy_completes_in_every_mode_unless_rendezvous_forbids(mode):
    shape = Shape.loop(3, num_microbatches=4)
    how = RunSettings(p2p=mode, iterations=2)
    network = Network.uniform(3, latency_s=1e-4)
    if mode is P2P.BLOCKING:
        with pytest.raises(StalledError, match="try p2p: blocking_fused"):
            run_policy(Greedy().placed(StageCosts.uniform(shape)), costs(3), network, how)
        return
    trace = run_policy(Greedy().placed(StageCosts.uniform(shape)), costs(3), network, how)
    assert len(trace.of(Stream.COMPUTE)) == 2 * 3 * 4 * 2


class Stubborn(Greedy):
    """Returns something impossible."""

    def __init__(self, action):
        self.action = action

    def next_actions(self, view):
        return [self.action]


@pytest.mark.parametrize(
    ("ranks", "action", "message"),
    [
        (2, Action(7, Op.F, 0), "returned 7F0, but there are 2 stages and 2 microbatches"),
        (2, Action(1, Op.F, 0), "returned 1F0, which belongs to rank 1"),
        (1, Action(0, Op.F, 0), "returned 0F0 a second time"),
    ],
)
def test_a_policy_that_returns_nonsense_is_told_so(ranks, action, message):
    shape = Shape.loop(ranks, num_microbatches=2)
    with pytest.raises(ProgramError, match=message):
        run_policy(Stubborn(action).placed(StageCosts.uniform(shape)), costs(ranks), Network.uniform(ranks))


def test_a_policy_that_gives_up_stalls_with_a_message():
    class Lazy(Greedy):
        def next_actions(self, view):
            return []

    shape = Shape.loop(2, num_microbatches=2)
    with pytest.raises(StalledError, match="rank 0: its policy returned no action although work is left"):
        run_policy(Lazy().placed(StageCosts.uniform(shape)), costs(2), Network.uniform(2))


def test_rendezvous_makes_plain_1f1b_deadlock_and_fused_pairs_resolve_it():
    """Each rank of the chain sends before it receives: only posting both together gets through."""
    work = one_f_one_b(2, 3)
    network = Network.uniform(2, latency_s=1e-4)
    with pytest.raises(StalledError) as stalled:
        run_program(work, costs(2), network, RunSettings(p2p=P2P.BLOCKING))
    assert str(stalled.value) == (
        "the run stalled at 4.100 ms: nothing is left to happen, but ranks still wait\n"
        "  rank 0: waits to send the output of 0F1 to rank 1\n"
        "  rank 1: waits to send the output of 1B0 to rank 0\n"
        "with blocking messages this order cannot run; try p2p: blocking_fused (as Megatron-LM does), posted (as "
        "PyTorch does) or overlapped"
    )
    run_program(work, costs(2), network, RunSettings(p2p=P2P.BLOCKING_FUSED))


def test_blocking_messages_keep_both_ranks_busy():
    """One microbatch over two ranks: nothing overlaps anyway, so both modes agree; with two, blocking is slower."""
    network = Network.uniform(2, latency_s=1e-3)
    for microbatches, blocked_ms, overlapped_ms in ((1, 8, 8), (2, 12, 11)):
        work = one_f_one_b(2, microbatches)
        blocking = run_program(work, costs(2), network, RunSettings(p2p=P2P.BLOCKING_FUSED))
        overlapped = run_program(work, costs(2), network)
        assert makespan_ms(blocking) == blocked_ms
        assert makespan_ms(overlapped) == overlapped_ms


def test_without_message_time_all_modes_agree():
    work = one_f_one_b(4, 8)
    overlapped = run_program(work, costs(4), Network.uniform(4))
    fused = run_program(work, costs(4), Network.uniform(4), RunSettings(p2p=P2P.BLOCKING_FUSED))
    assert np.array_equal(overlapped.of(Stream.COMPUTE).start_ns, fused.of(Stream.COMPUTE).start_ns)


def test_a_wrong_order_stalls_and_says_what_each_rank_waits_for():
    wrong = program("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", microbatches=2, rank_of_stage=(0, 1))
    with pytest.raises(ProgramError) as refused:
        run_program(wrong, costs(2), Network.uniform(2))
    assert "rank 0 waits at 0B0 for 1B0, position 3 of rank 1" in str(refused.value)
    assert "rank 1 waits at 1F1 for 0F1, position 2 of rank 0" in str(refused.value)


STEP = StepCosts(
    tied_reduce_s=4e-3, grad_reduce_s=(1e-3, 2e-3, 3e-3), optimizer_s=(5e-3, 1e-3, 2e-3), host_s=1e-3, synchronized=True
)


def test_the_end_of_an_iteration_follows_megatrons_order():
    """Gradients, tied embeddings between first and last rank, a meeting, the optimizer, a meeting, the host."""
    trace = run_program(one_f_one_b(3, 3), costs(3, step_costs=STEP), Network.uniform(3), RunSettings(iterations=2))
    first = trace.where(trace.iteration == 0)

    def window(op, rank):
        row = first.where((first.op == op) & (first.rank == rank))
        return (row.start_ns[0] / MS, row.end_ns[0] / MS)

    last_backward = 5 * 3  # rank 0 ends last
    assert window(Op.GRAD_REDUCE, 0) == (last_backward, last_backward + 1)
    assert window(Op.GRAD_REDUCE, 2) == (last_backward - 4, last_backward - 1)
    assert window(Op.TIED_REDUCE, 0) == window(Op.TIED_REDUCE, 2) == (16, 20)
    assert window(Op.OPTIMIZER, 1) == (20, 21)
    assert window(Op.OPTIMIZER, 0) == (20, 25)
    assert {window(Op.HOST, rank) for rank in range(3)} == {(25, 26)}
    second = trace.where((trace.iteration == 1) & (trace.stream == Stream.COMPUTE))
    assert second.start_ns.min() / MS == 26


def test_without_synchronization_each_rank_goes_on_alone():
    """The next iteration overlaps the drain of the last one: an iteration costs the longest stage span."""
    alone = StepCosts(synchronized=False)
    trace = run_program(one_f_one_b(4, 8), costs(4, step_costs=alone), Network.uniform(4), RunSettings(iterations=6))
    compute = trace.of(Stream.COMPUTE)
    starts = [compute.start_ns[compute.iteration == k].min() / MS for k in range(6)]
    assert np.diff(starts).tolist() == [33] * 5  # rank 0's span: 1F1B leaves it no slack
    ends_last = compute.where(compute.rank == 3)
    assert (np.diff(ends_last.start_ns) >= 0).all()


def test_latency_draws_do_not_move_when_the_schedule_changes():
    route = Route(
        latency_s=1e-3,
        jitter=LogNormal(mean=1e-3, std=1e-3),
        stall=RareDelay(probability=0.2, extra=LogNormal(mean=1e-2, std=1e-2)),
    )
    network = Network(links=(), routes={(a, b): route for a in range(3) for b in range(3) if a != b})

    def messages(work):
        trace = run_program(work, costs(3), network, RunSettings(iterations=2, seed=5)).of(Stream.MESSAGE)
        rows = zip(trace.iteration, trace.stage, trace.op, trace.microbatch, trace.duration_ns, strict=True)
        gradient = {Op.I: Op.B, Op.B: Op.B, Op.F: Op.F}
        return {(it, stage, gradient[op], mb): length for it, stage, op, mb, length in rows}

    assert messages(one_f_one_b(3, 6)) == messages(one_f_one_b(3, 6, split=True))


def test_stalls_hit_with_their_probability():
    route = Route(stall=RareDelay(probability=0.25, extra=LogNormal(mean=1e-2, std=1e-2)))
    network = Network(links=(), routes={(0, 1): route, (1, 0): route})
    trace = run_program(one_f_one_b(2, 4000), costs(2), network).of(Stream.MESSAGE)
    hit = trace.duration_ns > 0
    assert hit.mean() == pytest.approx(0.25, abs=0.02)
    assert trace.duration_ns[hit].mean() / MS == pytest.approx(10, rel=0.05)


def test_progress_is_reported_once_an_iteration():
    seen = []
    run_program(one_f_one_b(2, 2), costs(2), Network.uniform(2), RunSettings(iterations=3, on_iteration=seen.append))
    assert seen == [0, 1, 2]
