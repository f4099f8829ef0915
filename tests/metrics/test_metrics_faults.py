"""Faults in metrics: their cause nanosecond by nanosecond, what is lost, and that done work alone counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipelines import F, Rows, meta
from reference import causes

from hops.cost.table import TableCosts
from hops.engine.settings import P2P, Faults, RunSettings
from hops.engine.simulate import run_program
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.hardware.network import Link, Network, Route
from hops.metrics.bubble import BubbleCause, bubbles
from hops.metrics.iterations import Iterations
from hops.metrics.losses import losses
from hops.metrics.summarize import summarize
from hops.metrics.summary import RunFacts
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream


def simulated(schedule, ranks, microbatches, faults, *, p2p=P2P.OVERLAPPED, iterations=2):
    """Stages of a few nanoseconds, so that each can be looked at."""
    scheduler = SCHEDULERS.get(schedule)()
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    costs = TableCosts.uniform(ranks, f=4e-9, i=3e-9, w=2e-9, bytes_per_message=3)
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    network = Network(
        links=tuple(Link(name=f"{a}->{b}", bandwidth=1e9) for a, b in pairs),
        routes={pair: Route(links=(number,), latency_s=1e-9) for number, pair in enumerate(pairs)},
    )
    how = RunSettings(iterations=iterations, p2p=p2p, faults=Faults(plan=FaultPlan.of(faults)))
    return run_program(scheduler.program, costs, network, how)


@st.composite
def fault_lists(draw):
    def fault():
        kind = draw(st.sampled_from(list(FaultKind)))
        rank, start, length = draw(st.integers(0, 2)), draw(st.integers(0, 90)), draw(st.integers(1, 30))
        target = f"{rank}->{(rank + 1) % 3}" if kind.of_link else f"rank{rank}"
        factor = {FaultKind.SLOW: 2.0, FaultKind.LINK_SLOW: 0.5}.get(kind, 1.0)
        return Fault(kind=kind, target=target, start_ns=start, end_ns=start + length, factor=factor)

    return [fault() for _ in range(draw(st.integers(1, 4)))]


@given(
    faults=fault_lists(),
    schedule=st.sampled_from(["1f1b", "zb_h1"]),
    mode=st.sampled_from(["overlapped", "blocking_fused"]),
)
@settings(deadline=None, max_examples=40)
def test_causes_match_their_definition_nanosecond_by_nanosecond(faults, schedule, mode):
    trace = simulated(schedule, 3, 3, faults, p2p=P2P(mode), iterations=1)
    idle = bubbles(Iterations.of(trace, RunFacts())).pipeline
    slowly = causes(trace)
    for rank in range(3):
        for cause in ("fault", "messages"):
            assert idle.by_cause[BubbleCause(cause)][rank] == slowly.get((rank, cause), 0), cause


@given(faults=fault_lists())
@settings(deadline=None, max_examples=30)
def test_busy_and_causes_fill_the_window_with_faults_too(faults):
    both = bubbles(Iterations.of(simulated("1f1b", 3, 3, faults), RunFacts()))
    for idle in (both.pipeline, both.iteration):
        assert np.all(idle.busy_ns + sum(idle.by_cause.values()) == idle.window_ns)
        assert all(np.all(ns >= 0) for ns in idle.by_cause.values())


def test_lost_work_is_no_work_and_its_time_is_the_faults():
    """Rank 0 runs 0 to 10, loses that at 6, is back at 8 and runs until 18; rank 1 waits for it."""
    rows = Rows()
    rows.add(0, 6, rank=0, stage=0, microbatch=0, stream=Stream.LOST)
    rows.add(6, 8, rank=0, stream=Stream.FAULT)
    rows.add(8, 18, rank=0, stage=0, microbatch=0)
    rows.add(0, 2, rank=1, stage=1, microbatch=1)
    rows.add(18, 20, rank=1, stage=1, microbatch=0, op=F)
    idle = bubbles(Iterations.of(rows.trace(meta(2, 2)), RunFacts())).pipeline
    assert idle.window_ns == 20
    assert idle.busy_ns.tolist() == [10, 4]


def test_a_lost_message_makes_its_receivers_wait_the_faults():
    rows = Rows()
    rows.add(0, 5, rank=0, stage=0, microbatch=0)
    rows.add(5, 8, rank=0, peer=1, stage=0, microbatch=0, stream=Stream.LOST)
    rows.add(8, 10, rank=0, peer=1, stream=Stream.FAULT)
    rows.add(10, 14, rank=0, peer=1, stage=0, microbatch=0, stream=Stream.MESSAGE)
    rows.add(14, 20, rank=1, stage=1, microbatch=0)
    by_cause = bubbles(Iterations.of(rows.trace(meta(2, 1)), RunFacts())).pipeline.by_cause
    assert by_cause[BubbleCause.FAULT].tolist()[1] == 5
    assert by_cause[BubbleCause.MESSAGES].tolist()[1] == 4


def stop(rank, start, end):
    return Fault(kind=FaultKind.STOP, target=f"rank{rank}", start_ns=start, end_ns=end)


def test_losses_are_counted_by_rank():
    """Rank 0 loses 0F1 after 2 ns and then the first 3 ns of the repeat; its message of 0F0 is lost, too."""
    trace = simulated("1f1b", 2, 2, [stop(0, 6, 10), stop(0, 13, 20)], iterations=1)
    found = losses(trace)
    assert found.work_ns.tolist() == [5, 0]
    assert found.pieces_of_work == 2
    assert found.messages == 2
    assert found.down_ns.tolist() == [11, 0]
    assert not losses(simulated("1f1b", 2, 2, [])).any


def test_a_summary_of_a_run_with_faults_counts_what_was_done():
    without = summarize(simulated("1f1b", 2, 4, []), RunFacts())
    with_stop = summarize(simulated("1f1b", 2, 4, [stop(0, 6, 60)]), RunFacts())
    assert with_stop.ranks[0].busy_ms == without.ranks[0].busy_ms
    assert with_stop.iteration_time.values_ms[0] == pytest.approx(
        without.iteration_time.values_ms[0] + (2 + 54) / 1e6, abs=1e-5
    )
    assert with_stop.bubble.iteration.by_cause.fault > 0 == without.bubble.iteration.by_cause.fault
