"""An audit's figures are those that were put in; an iteration's parts and its critical path fill its time exactly."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from pipelines import gpipe, one_f_one_b, simulate, split

from hops.metrics.audit import audit
from hops.metrics.critical_path import PathTerm, Piece, critical_paths
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.metrics.throughput import iteration_times_ns
from hops.program.action import Op

MS = 1_000_000
ORDERS = {"gpipe": gpipe, "1f1b": one_f_one_b}


def run_of(trace, warmup=0):
    return Iterations.of(trace, RunFacts(warmup_iterations=warmup))


def fixed(action, iteration):
    return {Op.F: 2, Op.B: 4, Op.I: 2, Op.W: 2}[action.op] * MS + action.stage * MS


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(list(ORDERS)),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 3 * MS),
    st.tuples(st.integers(0, 9 * MS), st.integers(0, 9 * MS), st.integers(0, 9 * MS)),
    st.integers(0, 2**32 - 1),
)
def test_a_critical_path_fills_every_iteration_to_the_nanosecond(
    order, ranks, microbatches, iterations, splits, hop, step, seed
):
    generator = np.random.default_rng(seed)
    orders = ORDERS[order](ranks, microbatches)
    trace = simulate(
        split(orders) if splits else orders,
        lambda action, number: int(generator.integers(1, 5 * MS)),
        hop=hop,
        iterations=iterations,
        step=step,
    )
    run = run_of(trace)
    paths = critical_paths(run)
    np.testing.assert_array_equal(paths.spent_ns.sum(axis=1), iteration_times_ns(run))
    assert (paths.spent_ns >= 0).all()


def test_the_critical_path_of_1f1b_by_hand():
    """2 ranks, 2 microbatches, rank 1 slower: F0, message, then all of rank 1, message back, last backward."""
    trace = simulate(one_f_one_b(2, 2), fixed, hop=MS // 2, iterations=2, step=(10 * MS, 3 * MS, MS))
    paths = critical_paths(run_of(trace))
    found = {term: ns for term, ns in zip(paths.terms, paths.spent_ns[0].tolist(), strict=True) if ns}
    assert found == {
        PathTerm(Piece.COMPUTE, 0, 0, Op.F): 2 * MS,
        PathTerm(Piece.MESSAGE, 0, 0, Op.F, 1): MS // 2,
        PathTerm(Piece.COMPUTE, 1, 1, Op.F): 2 * 3 * MS,
        PathTerm(Piece.COMPUTE, 1, 1, Op.B): 2 * 5 * MS,
        PathTerm(Piece.MESSAGE, 1, 1, Op.B, 0): MS // 2,
        PathTerm(Piece.COMPUTE, 0, 0, Op.B): 4 * MS,
        PathTerm(Piece.REDUCE): 10 * MS,
        PathTerm(Piece.OPTIMIZER, 0, -1, Op.OPTIMIZER): 3 * MS,
        PathTerm(Piece.HOST): MS,
    }


def test_an_audit_gives_back_what_was_put_in():
    trace = simulate(one_f_one_b(3, 5), fixed, hop=MS // 2, iterations=4, step=(10 * MS, 3 * MS, MS))
    found = audit(run_of(trace, warmup=1))
    assert found.iterations == (1, 2, 3)
    assert found.warmup_iterations == 1
    ops = {(each.stage, each.op, each.rank): each.times.median_ms for each in found.ops}
    expected = {(s, op, s): base + s for s in range(3) for op, base in (("F", 2), ("B", 4))}
    assert ops == expected | {(-1, "OPTIMIZER", rank): 3.0 for rank in range(3)}
    assert {(gap.source, gap.target, gap.op): gap.times.median_ms for gap in found.gaps if gap.op} == {
        (0, 1, "F"): 0.5,
        (1, 2, "F"): 0.5,
        (1, 0, "B"): 0.5,
        (2, 1, "B"): 0.5,
    }
    assert {gap.times.median_ms for gap in found.gaps if not gap.op} == {0.0}
    parts = found.parts
    assert (parts.reduce.median_ms, parts.optimizer.median_ms, parts.host.median_ms) == (10, 3, 1)
    assert parts.host.count == 2  # after the last one nothing follows
    whole = sum(each.median_ms for each in (parts.pipeline, parts.reduce, parts.optimizer, parts.host))
    assert whole == pytest.approx(found.wall.median_ms)
    assert found.stalls == ()


def test_without_optimizer_steps_the_parts_after_the_pipeline_are_unknown():
    parts = audit(run_of(simulate(gpipe(2, 3), fixed, iterations=2))).parts
    assert (parts.reduce, parts.optimizer, parts.host) == (None, None, None)
    assert parts.pipeline.count == 2


def test_scaling_all_times_scales_the_audit():
    def audited(scale):
        trace = simulate(
            one_f_one_b(3, 4), lambda a, n: scale * fixed(a, n), hop=scale * MS, iterations=2, step=(scale * MS,) * 3
        )
        return audit(run_of(trace))

    one, two = audited(1), audited(2)
    np.testing.assert_array_equal(2 * one.paths.spent_ns, two.paths.spent_ns)
    assert 2 * one.wall.median_ms == two.wall.median_ms


def test_an_audit_is_plain_json():
    found = audit(run_of(simulate(one_f_one_b(2, 3), fixed, iterations=3, step=(MS, MS, MS))))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"iterations", "wall", "parts", "ops", "gaps", "stalls", "critical_path"} <= set(plain)
    assert sum(term["mean_ms"] for term in plain["critical_path"]) == pytest.approx(np.mean(found.walls_ms))
