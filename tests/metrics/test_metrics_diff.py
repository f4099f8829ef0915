"""The terms of a difference sum to the difference, whatever the runs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from pipelines import gpipe, one_f_one_b, simulate

from hops.metrics.audit import audit
from hops.metrics.critical_path import PathTerm, Piece
from hops.metrics.difference import break_down, difference
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.program.action import Op

MS = 1_000_000


def broken_down(seconds, *, ranks=3, microbatches=4, order=one_f_one_b, iterations=8, hop=MS, step=(5 * MS,) * 3):
    trace = simulate(order(ranks, microbatches), seconds, hop=hop, iterations=iterations, step=step)
    return break_down(audit(Iterations.of(trace, RunFacts())))


def fixed(action, iteration):
    return (2 if action.op is Op.F else 4) * MS


SHAPE = st.tuples(
    st.integers(1, 4), st.integers(1, 5), st.sampled_from([gpipe, one_f_one_b]), st.integers(0, 2**32 - 1)
)


@settings(max_examples=30, deadline=None)
@given(SHAPE, SHAPE, st.booleans())
def test_terms_sum_to_the_difference(first, second, stalls):
    sides = []
    for ranks, microbatches, order, seed in (first, second):
        generator = np.random.default_rng(seed)

        def seconds(action, number, generator=generator):
            late = stalls and number == 3 and action == (0, Op.F, 0)
            return int(generator.integers(MS, 2 * MS)) + (100 * MS if late else 0)

        sides.append(broken_down(seconds, ranks=ranks, microbatches=microbatches, order=order))
    found = difference(*sides)
    assert sum(change.change_ms for change in found.changes) == pytest.approx(found.total_ms, abs=1e-6)
    assert sum(b - a for _, a, b in found.by_piece()) == pytest.approx(found.total_ms, abs=1e-6)
    for side in sides:
        assert sum(side.terms_ms.values()) + side.stalls_ms == pytest.approx(side.iteration_ms)


def test_a_run_does_not_differ_from_itself():
    side = broken_down(fixed)
    found = difference(side, side)
    assert found.total_ms == 0
    assert {change.change_ms for change in found.changes} == {0}


def test_swapping_the_runs_turns_every_sign():
    one, two = broken_down(fixed), broken_down(lambda a, n: fixed(a, n) + a.stage * MS)
    there, back = ({c.term: c.change_ms for c in difference(*pair).changes} for pair in ((one, two), (two, one)))
    assert there == {term: -change for term, change in back.items()}


def test_one_slower_op_is_the_whole_difference():
    """On the slowest stage, where the critical path runs in both."""

    def slowest(by):
        return broken_down(lambda a, n: fixed(a, n) + (by * MS if (a.stage, a.op) == (2, Op.B) else 0))

    found = difference(slowest(2), slowest(3))
    assert found.changes[0].term == PathTerm(Piece.COMPUTE, 2, 2, Op.B)
    assert found.changes[0].change_ms == pytest.approx(found.total_ms) == pytest.approx(4)


def test_slower_messages_show_as_messages_by_link():
    found = difference(broken_down(fixed), broken_down(fixed, hop=2 * MS))
    changed = {change.term: change.change_ms for change in found.changes if change.change_ms}
    assert {term.piece for term in changed} == {Piece.MESSAGE}
    assert {(term.rank, term.peer) for term in changed} == {(0, 1), (1, 2), (2, 1), (1, 0)}


def test_what_stalls_cost_is_a_term_of_its_own():
    stalled = broken_down(lambda a, n: fixed(a, n) + (80 * MS if n == 3 and a == (0, Op.F, 0) else 0))
    found = difference(broken_down(fixed), stalled)
    assert (found.second.stalled, found.second.iterations) == (1, 8)
    assert str(found.changes[0]) == "stalls"
    assert found.changes[0].change_ms == pytest.approx(found.total_ms) == pytest.approx(10)


def test_runs_of_different_depth_can_be_set_against_each_other():
    found = difference(broken_down(fixed, ranks=2), broken_down(fixed, ranks=4))
    assert PathTerm(Piece.COMPUTE, 3, 3, Op.F) in {change.term for change in found.changes}
    json.dumps(found.to_dict(), allow_nan=False)
