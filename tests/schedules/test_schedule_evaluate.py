"""The evaluator's times and memory equal independent recomputations, by hand and by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.cost.table import TableCosts
from hops.engine.settings import P2P, RunSettings
from hops.engine.simulate import run_program
from hops.errors import ProgramError
from hops.hardware.network import Network
from hops.program.action import Op, Pair
from hops.program.lowering import lower
from hops.program.program import Program
from hops.program.shape import Shape
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import ActionTimes, evaluate, longest_path
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

NS = 1_000_000_000
NAMES = ["gpipe", "1f1b", "zb_h1", "zb_h2", "zb_v", "v_half", "dualpipe_v", "zero_bubble"]


def profile_of(shape, rng):
    stages, ranks = shape.num_stages, shape.rank_of_stage
    draw = lambda: tuple(rng.uniform(0.1, 3.0, stages).round(3).tolist())
    kept = rng.integers(1, 50, stages)
    hops = tuple(float(rng.uniform(0, 2)) if ranks[s] != ranks[s + 1] else 0.0 for s in range(stages - 1))
    return replace(
        StageCosts.uniform(shape),
        forward_s=draw(),
        input_backward_s=draw(),
        weight_backward_s=draw(),
        fused_backward_s=draw(),
        hop_s=hops,
        activation_bytes=tuple((kept + rng.integers(0, 50, stages)).tolist()),
        kept_for_weight_bytes=tuple(kept.tolist()),
    )


def seconds(profile, action):
    columns = {
        Op.F: profile.forward_s,
        Op.B: profile.fused_backward_s,
        Op.I: profile.input_backward_s,
        Op.W: profile.weight_backward_s,
    }
    return columns[action.op][action.stage]


def brute_force(program, profile):
    """Ends by relaxing start >= every reason to wait until nothing moves. Pairs: both wait for both, both end late."""
    last = program.shape.num_stages - 1
    blocks = [
        [entry if isinstance(entry, Pair) else (entry,) for entry in program.rank(rank)]
        for rank in range(program.num_ranks)
    ]
    sent = {}
    changed = True
    start = {}
    while changed:
        changed = False
        for row in blocks:
            now = 0
            for block in row:
                for stage, op, microbatch in block:
                    if op is Op.F and stage > 0:
                        now = max(now, sent.get(("F", stage - 1, microbatch), 0) + hop(profile, stage - 1))
                    if op in {Op.B, Op.I} and stage < last:
                        now = max(now, sent.get(("B", stage + 1, microbatch), 0) + hop(profile, stage))
                for action in block:
                    if start.get(action) != now:
                        start[action], changed = now, True
                    now += round(seconds(profile, action) * NS)
                for stage, op, microbatch in block:
                    if op is not Op.W:
                        sent["F" if op is Op.F else "B", stage, microbatch] = now
    return start


def hop(profile, stage):
    return round(profile.hop_s[stage] * NS)


def replay_memory(program, profile, evaluation, rank):
    """Peaks from a time line of allocations and frees, frees first at one instant."""
    events = []
    rows = zip(program.actions(rank), evaluation.start_ns[rank], evaluation.end_ns[rank], strict=True)
    for (stage, op, _), start, end in rows:
        whole, kept = profile.activation_bytes[stage], profile.kept_for_weight_bytes[stage]
        if op is Op.F:
            events.append((start, 1, 1, whole))
        else:
            freed = {Op.B: (1, whole), Op.I: (0, whole - kept), Op.W: (1, kept)}[op]
            events.append((end, 0, -freed[0], -freed[1]))
    held = np.cumsum([event[2:] for event in sorted(events)], axis=0)
    return held.max(axis=0).tolist()


@settings(deadline=None, max_examples=40)
@given(name=st.sampled_from(NAMES), ranks=st.integers(1, 5), extra=st.integers(0, 6), seed=st.integers(0, 10_000))
def test_times_and_peaks_equal_a_brute_force_recomputation(name, ranks, extra, seed):
    scheduler = SCHEDULERS.get(name)()
    shape = scheduler.shape(ranks, 2 * ranks + extra)
    profile = profile_of(shape, np.random.default_rng(seed))
    program = scheduler.build(profile)
    evaluation = evaluate(program, profile)
    expected = brute_force(program, profile)
    for rank in range(program.num_ranks):
        row = program.actions(rank)
        assert evaluation.start_ns[rank].tolist() == [expected[action] for action in row]
        peak = [evaluation.peak_in_flight[rank], evaluation.peak_bytes[rank]]
        assert peak == replay_memory(program, profile, evaluation, rank)


def test_two_stages_by_hand():
    """F 2, B 3, hop 1: the second stage starts at 3; its backward is back at 9."""
    profile = StageCosts.uniform(Shape.loop(2, num_microbatches=1), f=2.0, i=1.0, w=2.0, hop_s=1.0)
    evaluation = evaluate(SCHEDULERS.get("1f1b")().build(profile), profile)
    assert [row.tolist() for row in evaluation.start_ns] == [[0, 9 * NS], [3 * NS, 5 * NS]]
    assert [row.tolist() for row in evaluation.end_ns] == [[2 * NS, 12 * NS], [5 * NS, 8 * NS]]
    assert evaluation.makespan_ns == 12 * NS
    assert evaluation.span_ns == (12 * NS, 5 * NS)
    assert evaluation.busy_ns == (5 * NS, 5 * NS)
    assert evaluation.bubble_fraction == pytest.approx(1 - 10 / 24)


def test_blocking_messages_keep_sender_and_receiver_busy():
    """Hop 1: the sender's second F waits for its first message, as the receiver's first F does."""
    program = Program.parse("microbatches 2, rank of stage 0 1\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    profile = replace(StageCosts.uniform(program.shape, f=2.0, hop_s=1.0), blocking=True)
    starts = [(row / NS).tolist() for row in evaluate(program, profile).start_ns]
    assert starts == [[0, 3, 8, 13], [3, 5, 8, 10]]


def test_a_send_and_the_receive_after_it_run_at_once():
    """Rank 1 sends its backward from 7 to 8 and receives the second forward, ready at 5, in the same second."""
    program = Program.parse("microbatches 2, rank of stage 0 1\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1")
    profile = replace(StageCosts.uniform(program.shape, f=2.0, hop_s=1.0), blocking=True)
    evaluation = evaluate(program, profile)
    assert evaluation.start_ns[1][2] - evaluation.end_ns[1][1] == NS


@settings(deadline=None, max_examples=25)
@given(ranks=st.integers(2, 5), size=st.integers(1, 9), hop=st.floats(0.01, 2.0))
def test_blocking_is_never_faster_than_overlapped(ranks, size, hop):
    profile = StageCosts.uniform(Shape.loop(ranks, num_microbatches=size), hop_s=hop)
    program = SCHEDULERS.get("1f1b")().build(profile)
    blocking = evaluate(program, replace(profile, blocking=True))
    assert blocking.makespan_ns >= evaluate(program, profile).makespan_ns


def engine_makespan(program, profile):
    costs = TableCosts.of(
        forward_s=profile.forward_s,
        input_backward_s=profile.input_backward_s,
        weight_backward_s=profile.weight_backward_s,
        fused_backward_s=profile.fused_backward_s,
    )
    network = Network.uniform(profile.shape.num_ranks, latency_s=profile.hop_s[0])
    trace = run_program(program, costs, network, RunSettings(p2p=P2P.BLOCKING_FUSED))
    return trace.of(Stream.COMPUTE).end_ns.max()


@settings(deadline=None, max_examples=25)
@given(ranks=st.integers(2, 6), size=st.integers(1, 15), hop=st.floats(0.01, 1.0), seed=st.integers(0, 1000))
def test_blocking_1f1b_is_the_engine_s_on_equal_stages_and_a_lower_bound_on_others(ranks, size, hop, seed):
    equal = replace(StageCosts.uniform(Shape.loop(ranks, num_microbatches=size), f=2.0, hop_s=hop), blocking=True)
    program = SCHEDULERS.get("1f1b")().build(equal)
    assert evaluate(program, equal).makespan_ns == engine_makespan(program, equal)
    others = profile_of(equal.shape, np.random.default_rng(seed))
    unequal = replace(others, hop_s=equal.hop_s, blocking=True)
    assert evaluate(program, unequal).makespan_ns <= engine_makespan(program, unequal)


@pytest.mark.parametrize("name", NAMES)
def test_scaling_all_times_scales_all_times(name):
    scheduler = SCHEDULERS.get(name)()
    shape = scheduler.shape(4, 12)
    one, three = (StageCosts.uniform(shape, f=1.0 * k, i=2.0 * k, w=0.5 * k, hop_s=0.25 * k) for k in (1, 3))
    first, second = (evaluate(scheduler.build(profile), profile) for profile in (one, three))
    assert all((3 * a == b).all() for a, b in zip(first.end_ns, second.end_ns, strict=True))


def test_a_program_that_deadlocks_is_refused_with_the_checker_s_message():
    program = Program.parse("microbatches 2, rank of stage 0 1\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1")
    with pytest.raises(ProgramError, match="the program deadlocks"):
        evaluate(program, StageCosts.uniform(program.shape))


def test_compiled_and_plain_give_the_same_starts():
    pytest.importorskip("numba")
    scheduler = SCHEDULERS.get("dualpipe_v")()
    profile = profile_of(scheduler.shape(4, 11), np.random.default_rng(0))
    program = scheduler.build(profile)
    durations = np.arange(1, 1 + 4 * program.shape.num_stages)
    hops = np.arange(program.shape.num_stages - 1)
    low = lower(program)
    for blocking in (False, True):
        times = ActionTimes.of_kinds(program, durations, hops, blocking=blocking)
        starts = []
        for form in (longest_path.function, longest_path.fast):
            free, start = np.zeros(4, dtype=np.int64), np.zeros(program.num_actions, dtype=np.int64)
            starts.append([form(low, times, free, start), *start.tolist(), *free.tolist()])
        assert starts[0] == starts[1]
