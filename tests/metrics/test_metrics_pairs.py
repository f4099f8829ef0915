"""A pair is one piece of work: it waits for both inputs, sends when both are done, and is passed as a whole."""

import numpy as np
import pytest
from pipelines import B, F, Rows, meta

from hops.cost.table import TableCosts
from hops.engine.simulate import run_program
from hops.hardware.network import Network
from hops.metrics.audit import audit
from hops.metrics.bubble import BubbleCause, bubbles
from hops.metrics.critical_path import PathTerm, Piece, critical_paths
from hops.metrics.inputs import inputs_from_elsewhere
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts


def run(*, hop=0):
    """Three ranks. Rank 1 runs the pair 1F1+1B0 once 0F1 (made at 20) and 2B0 (made at 60) are there.

    Rank 2 takes 1F1, and rank 0 takes 1B0, when the pair has ended, and not when 1F1 has.
    """
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=0, op=F)
    rows.add(10, 20, rank=0, stage=0, microbatch=1, op=F)
    rows.add(10, 30, rank=1, stage=1, microbatch=0, op=F)
    rows.add(30, 40, rank=2, stage=2, microbatch=0, op=F)
    rows.add(40, 60, rank=2, stage=2, microbatch=0, op=B)
    pair = 60 + hop
    rows.add(pair, pair + 20, rank=1, stage=1, microbatch=1, op=F, peer=1)
    rows.add(pair + 20, pair + 50, rank=1, stage=1, microbatch=0, op=B, peer=1)
    rows.add(pair + 50, pair + 60, rank=2, stage=2, microbatch=1, op=F)
    rows.add(pair + 50, pair + 70, rank=0, stage=0, microbatch=0, op=B)
    return Iterations.of(rows.trace(meta(3, 2)), RunFacts())


def causes(found):
    return {cause.value: ns.tolist() for cause, ns in found.pipeline.by_cause.items() if ns.any()}


def test_pairs_without_messages_wait_for_none():
    assert "messages" not in causes(bubbles(run()))


def test_a_message_to_a_pair_is_what_lies_between_the_later_input_and_its_start():
    """All three ranks wait for the one message of 7 ns: rank 1 itself, and those that wait for rank 1."""
    assert causes(bubbles(run(hop=7)))[BubbleCause.MESSAGES] == [7, 7, 7]


def test_the_critical_path_passes_a_pair_as_a_whole():
    paths = critical_paths(run(hop=7))
    spent = {term: ns for term, ns in zip(paths.terms, paths.spent_ns[0].tolist(), strict=True) if ns}
    assert spent == {
        PathTerm(Piece.COMPUTE, 0, 0, F): 10,
        PathTerm(Piece.COMPUTE, 1, 1, F): 20 + 20,
        PathTerm(Piece.COMPUTE, 2, 2, F): 10,
        PathTerm(Piece.COMPUTE, 2, 2, B): 20,
        PathTerm(Piece.MESSAGE, 2, 2, B, 1): 7,
        PathTerm(Piece.COMPUTE, 1, 1, B): 30,
        PathTerm(Piece.COMPUTE, 0, 0, B): 20,
    }


def test_gaps_of_an_audit_are_those_of_whole_pairs():
    found = {(gap.source, gap.target, gap.op): gap.times for gap in audit(run(hop=7)).gaps}
    assert {key: times.median_ms * 1e6 for key, times in found.items()} == pytest.approx({
        (0, 0, ""): 0, (0, 1, "F"): 0, (1, 2, "F"): 0, (2, 2, ""): 0, (2, 1, "B"): 7, (1, 0, "B"): 0,
    })  # fmt: skip
    assert found[1, 2, "F"].count == 2


def test_inputs_of_a_pair_are_the_later_of_its_two():
    found = inputs_from_elsewhere(run())
    trace = run().trace
    named = [f"{s}{'FBIW'[o]}{m}" for s, o, m in zip(trace.stage, trace.op, trace.microbatch, strict=True)]
    taken = {name: (named[s] if s >= 0 else "", int(t)) for name, s, t in zip(named, *found[:2], strict=True)}
    assert taken["1F1"] == ("2B0", 60)
    assert taken["1B0"] == ("", 0)
    assert taken["2F1"] == ("1F1", 110)
    assert taken["0B0"] == ("1B0", 110)
    assert [named[row] for row in np.flatnonzero(found.closes)] == ["1B0"]


def test_simulated_pairs_without_messages_wait_for_none():
    """DualPipeV with messages of no bytes and no latency: 2.7 points of the bubble were called messages."""
    program = SCHEDULERS.get("dualpipe_v")()
    program.configure(StageCosts.uniform(program.shape(4, 16)))
    costs = TableCosts.uniform(8, f=1e-3, i=1e-3, w=1e-3)
    trace = run_program(program.program, costs, Network.uniform(4))
    assert (trace.peer == trace.rank).any()
    assert "messages" not in causes(bubbles(Iterations.of(trace, RunFacts())))
    spent = audit(Iterations.of(trace, RunFacts())).paths.spent_ns.sum()
    assert spent == trace.end_ns.max()
