"""Posted messages start once sent and received for; hosts take time between entries: by hand, and as expected times."""

import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from benchmarks.differential import random_program, random_work
from engine_programs import one_f_one_b, program

from hops.cost.table import TableCosts
from hops.cost.uneven import Uneven, uneven
from hops.engine.settings import P2P, RunSettings
from hops.engine.simulate import run_policy, run_program
from hops.hardware.network import Network
from hops.program.lowering import lower
from hops.program.postings import postings
from hops.schedules.base import SCHEDULERS
from hops.timing.longest_path import evaluate
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

MS = 1_000_000


def makespan(work, costs, how, *, latency_s=0.0):
    return int(run_program(work, costs, Network.uniform(work.num_ranks, latency_s=latency_s), how).end_ns.max())


def posted_texts(work):
    """By receive, in the order of posting: what is taken, and the action that the rank gets to then."""
    low = lower(work)
    found = postings(work, low)
    takers = {int(low.need[at]): str(work.action(at)) for at in range(work.num_actions) if low.need[at] >= 0}
    steps = [str(work.action(int(low.first[step]))) for step in found.step.tolist()]
    return [(takers[key], at) for key, at in zip(found.message.tolist(), steps, strict=True)]


# Where receives are posted


def test_receives_are_posted_one_entry_early():
    assert posted_texts(one_f_one_b(2, 3)) == [
        ("0B0", "0F1"), ("0B1", "0F2"), ("0B2", "0B1"),
        ("1F0", "1F0"), ("1F1", "1B0"), ("1F2", "1B1"),
    ]  # fmt: skip


def test_a_receive_is_posted_before_those_of_what_its_peer_sends_later():
    """Rank 1 takes 1F1 before 1F0, which rank 0 sends first: both are posted when it begins, 1F0 3 entries early."""
    work = program("0F0 0F1 0F2 0B1 0B0 0B2\n1F1 1B1 1F2 1F0 1B0 1B2", microbatches=3, rank_of_stage=(0, 1))
    assert posted_texts(work)[3:] == [("1F0", "1F1"), ("1F1", "1F1"), ("1F2", "1B1")]
    assert postings(work, lower(work)).early.tolist()[3:] == [3, 0, 1]


def test_messages_between_stages_of_a_rank_need_no_receive():
    work = program("0F0 1F0 1B0 0B0", microbatches=1, rank_of_stage=(0, 0))
    assert posted_texts(work) == []


# By hand


def test_a_message_waits_for_its_receive():
    """Rank 0 has sent F1 and F2 at 2 and 3 ms. Rank 1 computes F0 from 1.5 to 5.5 ms, with F1 posted, then F2.

    The message of F2 starts when rank 1 gets to F1, at 5.5 ms; overlapped it starts at 3.
    """
    work = program("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2", microbatches=3, rank_of_stage=(0, 1))
    costs = TableCosts.of(forward_s=(1e-3, 4e-3), input_backward_s=(1e-3, 1e-3), weight_backward_s=(0, 0))
    network = Network.uniform(2, latency_s=5e-4)
    trace = run_program(work, costs, network, RunSettings(p2p=P2P.POSTED))
    messages = trace.where((trace.stream == Stream.MESSAGE) & (trace.rank == 0))
    assert (messages.start_ns / MS).tolist() == [1.0, 2.0, 5.5]
    overlapped = run_program(work, costs, network, RunSettings())
    started = overlapped.start_ns[(overlapped.stream == Stream.MESSAGE) & (overlapped.rank == 0)]
    assert (started / MS).tolist() == [1.0, 2.0, 3.0]


def test_a_slow_link_makes_late_receives_cost_time():
    """GPipe on two stages, F = 1 and 2 ms, messages of 3 ms: from the third microbatch on, a receive is too late."""
    work = program("0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3", microbatches=4,
                   rank_of_stage=(0, 1))  # fmt: skip
    costs = TableCosts.of(forward_s=(1e-3, 2e-3), input_backward_s=(1e-3, 1e-3), weight_backward_s=(0, 0))
    ends = {}
    for way in (P2P.OVERLAPPED, P2P.POSTED):
        trace = run_program(work, costs, Network.uniform(2, latency_s=3e-3), RunSettings(p2p=way))
        forwards = trace.where((trace.stream == Stream.COMPUTE) & (trace.rank == 1) & (trace.op == 0))
        ends[way] = (forwards.start_ns / MS).tolist()
    assert ends[P2P.OVERLAPPED] == [4, 6, 8, 10]
    # F0 and F1 are posted at 0, F2 when F0 has ended (6), F3 when F1 has (8): + 3 ms
    assert ends[P2P.POSTED] == [4, 6, 9, 11]


def test_posted_is_overlapped_where_every_receive_is_early():
    for ranks, microbatches in ((1, 4), (2, 4), (4, 8)):
        work = one_f_one_b(ranks, microbatches)
        runs = [
            makespan(work, TableCosts.uniform(ranks, f=1e-3, i=1e-3, w=1e-3), RunSettings(p2p=way), latency_s=1e-4)
            for way in (P2P.OVERLAPPED, P2P.POSTED)
        ]
        assert runs[0] == runs[1]


def test_a_policy_has_all_receives_posted():
    """Nobody knows what it will ask for."""
    scheduler = SCHEDULERS.get("zb_h1")()
    placed = scheduler.placed(StageCosts.uniform(scheduler.shape(3, 6)))
    costs, network = TableCosts.uniform(3, f=1e-3, i=2e-3, w=1e-3), Network.uniform(3, latency_s=5e-4)
    runs = [run_policy(placed, costs, network, RunSettings(p2p=way)) for way in (P2P.POSTED, P2P.OVERLAPPED)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize(("microbatches", "host_ns"), [(1, 500), (4, 500), (4, 1_000_000)])
def test_the_host_takes_time_between_two_actions_and_not_after_the_last(microbatches, host_ns):
    work = program(
        " ".join(f"0F{mb}" for mb in range(microbatches)) + " " + " ".join(f"0B{mb}" for mb in range(microbatches)),
        microbatches=microbatches, rank_of_stage=(0,),
    )  # fmt: skip
    costs = TableCosts.uniform(1, f=1e-3, i=1e-3, w=1e-3)
    bare = makespan(work, costs, RunSettings())
    assert makespan(work, costs, RunSettings(host_per_action_ns=host_ns)) == bare + (2 * microbatches - 1) * host_ns


def test_a_pair_is_one_action_to_the_host():
    work = program("0F0 0F1+0B0 0B1", microbatches=2, rank_of_stage=(0,))
    costs = TableCosts.uniform(1, f=1e-3, i=1e-3, w=1e-3)
    assert makespan(work, costs, RunSettings(host_per_action_ns=7)) == makespan(work, costs, RunSettings()) + 2 * 7


def test_what_a_rank_waits_for_hides_its_host():
    """Rank 0 waits for its gradient for longer than its host takes; only rank 1's time from F0 to B0 counts."""
    work, costs = one_f_one_b(2, 1), TableCosts.uniform(2, f=1e-3, i=1e-3, w=1e-3)
    assert makespan(work, costs, RunSettings(host_per_action_ns=1000)) == 6 * MS + 1000


# As expected times


def case(seed):
    """A program, its costs in the engine, and what a scheduler knows of them; messages are latencies."""
    rng = Random(seed)
    work = random_program(rng)
    shape, stages = work.shape, work.shape.num_stages
    times = [tuple(rng.choice([1e-3, 1.5e-3, 2e-3]) for _ in range(stages)) for _ in range(3)]
    costs = TableCosts.of(forward_s=times[0], input_backward_s=times[1], weight_backward_s=times[2])
    factors = random_work(rng, shape.num_microbatches)
    hop, host, factor = rng.choice([0.0, 3e-4, 2e-3]), rng.choice([0, 20_000]), rng.choice([1.0, 0.8])
    uniform = StageCosts.uniform(shape, hop_s=hop)
    known = replace(
        uniform,
        forward_s=times[0],
        input_backward_s=times[1],
        weight_backward_s=times[2],
        fused_backward_s=tuple(i + w for i, w in zip(*times[1:], strict=True)),
        host_per_action_s=host / 1e9,
        microbatch_work=factors if isinstance(factors, tuple) else (),
        pair_factor=factor,
    )
    costs = uneven(costs, factors if isinstance(factors, tuple) else None)
    return work, costs, known, hop, RunSettings(host_per_action_ns=host, pair_factor=factor)


@given(seed=st.integers(0, 1 << 40))
@settings(deadline=None, max_examples=80)
def test_the_longest_path_is_what_the_engine_does(seed):
    work, costs, known, hop, how = case(seed)
    network = Network.uniform(work.num_ranks, latency_s=hop)
    ends = []
    for way in (P2P.OVERLAPPED, P2P.POSTED):
        trace = run_program(work, costs, network, replace(how, p2p=way))
        found = evaluate(work, replace(known, posted=way is P2P.POSTED))
        assert found.makespan_ns == trace.end_ns.max()
        rows = trace.where(trace.stream == Stream.COMPUTE)
        for rank in range(work.num_ranks):
            assert np.array_equal(np.sort(rows.start_ns[rows.rank == rank]), found.start_ns[rank])
        ends.append(found.makespan_ns)
    assert ends[0] <= ends[1]


def test_the_work_of_microbatches_is_the_same_on_all_stages():
    work, factors = one_f_one_b(3, 4), (2.0, 1.0, 0.5, 1.0)
    costs = Uneven(inner=TableCosts.uniform(3, f=1e-3, i=1e-3, w=1e-3, bytes_per_message=1001), factors=factors)
    trace = run_program(work, costs, Network.uniform(3))
    compute, sent = trace.where(trace.stream == Stream.COMPUTE), trace.where(trace.stream == Stream.MESSAGE)
    unit = np.where(compute.op == 0, 1, 2) * MS
    assert np.array_equal(compute.duration_ns, unit * np.array(factors)[compute.microbatch])
    assert np.array_equal(sent.bytes, np.rint(1001 * np.array(factors)[sent.microbatch]))
