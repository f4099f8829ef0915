"""Both engines agree with a simulator that was written for this alone (2,000 cases: simulator_cases.py here)."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from simulator_cases import outcome

from hops.engine.settings import P2P
from hops.program.program import Program
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts


def built(name, ranks, microbatches):
    scheduler = SCHEDULERS.get(name)()
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


@pytest.mark.parametrize("chunk", range(5))
def test_random_programs_and_ways_to_send(chunk):
    assert "runs" in {outcome(seed) for seed in range(40 * chunk, 40 * chunk + 40)}


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_dualpipe_v_does_not_stall_where_times_vary_by_five_percent(ranks):
    """It did in half of all runs: a receive was posted for the first of a pair when only the second's was missing."""
    program = built("dualpipe_v", ranks, 2 * ranks + 2)
    ended = {outcome(seed, program=program, way=P2P.BLOCKING_FUSED, vary=0.05) for seed in range(20)}
    assert ended == {"runs"}


@pytest.mark.parametrize("name", ["1f1b", "dualpipe_v", "interleaved_1f1b", "zb_h1", "zb_v"])
def test_a_plain_rendezvous_stalls_where_neighbours_send_to_each_other(name):
    assert {outcome(seed, program=built(name, 4, 8), way=P2P.BLOCKING) for seed in range(3)} == {"stalls"}


def test_gpipe_is_what_a_plain_rendezvous_is_for():
    assert {outcome(seed, program=built("gpipe", 4, 8), way=P2P.BLOCKING) for seed in range(3)} == {"runs"}


def test_a_pair_takes_the_inputs_of_both_before_it_sends():
    """The first of the pair sends, but not before the gradient that the second takes is there."""
    text = "microbatches 3, rank of stage 0 1\n0F0 0F1 0F2+0B0 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2"
    ended = [outcome(seed, program=Program.parse(text), way=P2P.BLOCKING_FUSED) for seed in range(20)]
    assert ended == ["runs"] * 20
