"""What ends at the same instant: which of the two is on the critical path, waited for, or called the ender."""

import numpy as np
from pipelines import B, F, Rows, meta

from hops.metrics.audit import audit
from hops.metrics.critical_path import PathTerm, Piece, critical_paths
from hops.metrics.inputs import inputs_from_elsewhere
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.metrics.waits import waits
from hops.program.action import Op


def of(rows, ranks, microbatches):
    return Iterations.of(rows.trace(meta(ranks, microbatches)), RunFacts())


def spent(run):
    paths = critical_paths(run)
    return {term: ns for term, ns in zip(paths.terms, paths.spent_ns[0].tolist(), strict=True) if ns}


def tied():
    """1F1's input, 0F1, ends at 20, and so does 1F0 before it on the same rank."""
    rows = Rows()
    rows.add(0, 8, rank=0, stage=0, microbatch=0, op=F)
    rows.add(8, 20, rank=0, stage=0, microbatch=1, op=F)
    rows.add(8, 20, rank=1, stage=1, microbatch=0, op=F)
    rows.add(20, 50, rank=1, stage=1, microbatch=1, op=F)
    return of(rows, 2, 2)


def test_the_path_stays_on_the_rank_where_input_and_rank_are_ready_at_once():
    """The input waited for the rank as much as the rank for it; so the path has no message of no length in it."""
    assert spent(tied()) == {PathTerm(Piece.COMPUTE, 0, 0, F): 8, PathTerm(Piece.COMPUTE, 1, 1, F): 12 + 30}
    named = {term.piece for term in critical_paths(tied()).terms if term.rank == 1}
    assert named == {Piece.COMPUTE, Piece.BETWEEN}


def test_nobody_waited_for_an_input_that_was_there_when_the_rank_was():
    gaps = {(gap.source, gap.target): gap.times.count for gap in audit(tied()).gaps}
    assert gaps == {(0, 0): 1, (0, 1): 1, (1, 1): 1}  # 1F0 waited for 0F0; 1F1 for nobody


def test_of_two_actions_that_end_the_pipeline_at_once_the_path_begins_with_the_first_rank():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=0, op=F)
    rows.add(10, 30, rank=1, stage=1, microbatch=0, op=F)
    rows.add(10, 30, rank=0, stage=0, microbatch=1, op=F)
    assert spent(of(rows, 2, 2)) == {PathTerm(Piece.COMPUTE, 0, 0, F): 10 + 20}


def test_the_first_action_of_a_rank_is_enabled_by_its_input_alone():
    """Nothing ran before it on its rank, in this iteration; what ran in the iteration before does not count."""
    rows = Rows()
    for k in (0, 1):
        rows.add(100 * k, 100 * k + 10, rank=0, stage=0, microbatch=0, op=F, iteration=k)
        rows.add(100 * k + 10, 100 * k + 95, rank=1, stage=1, microbatch=0, op=F, iteration=k)
        rows.add(100 * k + 95, 100 * k + 100, rank=1, op=Op.OPTIMIZER, iteration=k)
    assert spent(of(rows, 2, 1)) == {
        PathTerm(Piece.COMPUTE, 0, 0, F): 10,
        PathTerm(Piece.COMPUTE, 1, 1, F): 85,
        PathTerm(Piece.OPTIMIZER, 1, -1, Op.OPTIMIZER): 5,
    }


def test_a_pair_whose_inputs_were_made_at_once_takes_the_forwards():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=1, op=F)
    rows.add(0, 10, rank=2, stage=2, microbatch=0, op=B)
    rows.add(10, 20, rank=1, stage=1, microbatch=1, op=F, peer=1)
    rows.add(20, 30, rank=1, stage=1, microbatch=0, op=B, peer=1)
    run = of(rows, 3, 2)
    found = inputs_from_elsewhere(run)
    (first,) = np.flatnonzero((run.trace.stage == 1) & (run.trace.op == F))
    assert run.trace.stage[found.source[first]] == 0
    assert found.ready_ns[first] == 10


def test_a_path_that_comes_by_the_forward_of_a_pair_passes_its_backward_as_well():
    """2F1 takes what the pair's first action makes, and gets it when the second one has ended."""
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, microbatch=1, op=F)
    rows.add(10, 20, rank=1, stage=1, microbatch=1, op=F, peer=1)
    rows.add(20, 50, rank=1, stage=1, microbatch=0, op=B, peer=1)
    rows.add(53, 90, rank=2, stage=2, microbatch=1, op=F)
    assert spent(of(rows, 3, 2)) == {
        PathTerm(Piece.COMPUTE, 0, 0, F): 10,
        PathTerm(Piece.COMPUTE, 1, 1, F): 10,
        PathTerm(Piece.COMPUTE, 1, 1, B): 30,
        PathTerm(Piece.MESSAGE, 1, 1, F, 2): 3,
        PathTerm(Piece.COMPUTE, 2, 2, F): 37,
    }


def test_of_two_ranks_that_end_the_pipeline_at_once_the_others_wait_for_the_first():
    """Rank 0 waits 7 for a message before it ends at 50; rank 1 computes until 50; rank 2 has nothing left from 25."""
    rows = Rows()
    rows.add(0, 8, rank=0, stage=0, microbatch=0, op=F)
    rows.add(8, 10, rank=0, stage=0, microbatch=1, op=F)
    rows.add(8, 20, rank=1, stage=1, microbatch=0, op=F)
    rows.add(20, 25, rank=2, stage=2, microbatch=0, op=F)
    rows.add(20, 30, rank=1, stage=1, microbatch=0, op=B)
    rows.add(30, 50, rank=1, stage=1, microbatch=1, op=F)
    rows.add(37, 50, rank=0, stage=0, microbatch=0, op=B)
    assert waits(of(rows, 3, 2)).messages.tolist() == [[7, 0, 7]]
