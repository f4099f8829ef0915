"""Gap by gap: the gaps are the idle time, their causes sum to the bubble's, and their holders were computing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from pipelines import B, F, Rows, gpipe, meta, one_f_one_b, simulate
from test_metrics_bubble import equal, traces

from hops.metrics.bubble import bubbles
from hops.metrics.critical_path import critical_paths, critical_steps
from hops.metrics.gaps import idle_gaps
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts


def of(trace):
    return Iterations.of(trace, RunFacts())


def per_rank(run, rank, values):
    return np.bincount(rank, weights=values, minlength=run.num_ranks)


@settings(deadline=None, max_examples=60)
@given(traces())
def test_gaps_of_a_rank_sum_to_its_bubble_cause_by_cause(trace):
    run = of(trace)
    gaps, idle = idle_gaps(run), bubbles(run).iteration
    for cause, ns in idle.by_cause.items():
        assert per_rank(run, gaps.rank, gaps.by_cause[cause]) == pytest.approx(ns, abs=1e-6), cause
        assert np.all(gaps.by_cause[cause] >= 0)


@settings(deadline=None, max_examples=60)
@given(traces())
def test_gaps_do_not_overlap_each_other_nor_what_the_rank_computes(trace):
    run = of(trace)
    gaps = idle_gaps(run)
    start = gaps.start_ns + gaps.rank * run.span
    end = gaps.end_ns + gaps.rank * run.span
    assert np.all(end > start)
    assert np.all(start[1:] >= end[:-1])
    assert not run.compute().within(start, end).any()
    assert sum(gaps.by_cause.values()) == pytest.approx(end - start, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(traces())
def test_whoever_holds_a_gap_computes_for_as_long_within_it(trace):
    run = of(trace)
    gaps = idle_gaps(run)
    held = gaps.holder >= 0
    shift = gaps.holder[held] * run.span
    computes = run.compute().within(gaps.start_ns[held] + shift, gaps.end_ns[held] + shift)
    assert np.all(gaps.held_ns[held] <= computes)
    assert np.all(gaps.held_ns[held] > 0)
    assert np.all(gaps.holder[held] != gaps.rank[held])


def test_a_gap_names_the_action_it_lies_before_what_that_takes_and_the_rank_that_computes_meanwhile():
    """The last of three ranks waits for two F and two hops; then for nothing."""
    run = of(simulate(one_f_one_b(3, 1), equal, hop=7))
    gaps, rows = idle_gaps(run), run.trace
    mine = np.flatnonzero(gaps.rank == 2)
    first = mine[0]
    assert (gaps.start_ns[first], gaps.end_ns[first], gaps.ready_ns[first]) == (0, 34, 27)
    assert (rows.op[gaps.row[first]], rows.stage[gaps.row[first]]) == (F, 2)
    assert (rows.op[gaps.source[first]], rows.stage[gaps.source[first]]) == (F, 1)
    assert (gaps.holder[first], gaps.held_ns[first]) == (0, 10)  # as long as rank 1, and before it
    assert gaps.row[mine[-1]] == -1  # after its last action
    assert (gaps.holder[mine[-1]], gaps.held_ns[mine[-1]]) == (0, 20)


def test_a_longer_stage_holds_those_that_wait_for_it():
    run = of(simulate(gpipe(3, 4), lambda a, _: 50 if a.stage == 1 else 10))
    gaps = idle_gaps(run)
    total = np.bincount(gaps.holder[gaps.holder >= 0], weights=gaps.held_ns[gaps.holder >= 0], minlength=3)
    assert total.argmax() == 1


@settings(deadline=None, max_examples=60)
@given(traces())
def test_steps_of_the_critical_path_follow_each_other_through_the_iteration(trace):
    run = of(trace)
    paths = critical_paths(run)
    for index, steps in enumerate(critical_steps(run)):
        assert steps[0].start_ns == run.start_ns[index]
        assert steps[-1].end_ns == run.end_ns[index]
        assert all(one.end_ns == two.start_ns for one, two in pairwise(steps))
        for column, term in enumerate(paths.terms):
            spent = sum(step.end_ns - step.start_ns for step in steps if step.term == term)
            assert spent == paths.spent_ns[index, column]


def test_steps_name_their_rows():
    rows = Rows()
    rows.add(0, 10, rank=0, stage=0, op=F, microbatch=0)
    rows.add(12, 20, rank=1, stage=1, op=F, microbatch=0)
    rows.add(20, 30, rank=1, stage=1, op=B, microbatch=0)
    rows.add(33, 50, rank=0, stage=0, op=B, microbatch=0)
    (steps,) = critical_steps(of(rows.trace(meta(2, 1))))
    assert [step.row for step in steps if step.row >= 0 or step.end_ns > step.start_ns] == [0, -1, 1, 2, -1, 3]
