"""The picture of two runs says, rank by rank, where their iterations differ, to the nanosecond."""

from contextlib import contextmanager

import numpy as np
import pytest
from viz_layout import artists, drawn_texts, outside, overlapping
from viz_traces import MS, facts_of, one_f_one_b, trace_of

from hops.metrics.iterations import Iterations
from hops.metrics.throughput import iteration_times_ns
from hops.program.action import Op
from hops.viz.canvas import blank
from hops.viz.difference import compare, difference_of, draw_diff, steps_of


def pair(ranks, microbatches, **options):
    """A run, and one whose messages take longer."""
    traces = [trace_of(one_f_one_b(ranks, microbatches), iterations=3, hop_ms=hop) for hop in (0.15, 0.5)]
    other = trace_of(one_f_one_b(ranks, microbatches), iterations=3, hop_ms=0.5, source="measured", **options)
    return ("simulated", traces[0], facts_of(traces[0])), ("measured", other, facts_of(other, warmup=1))


@contextmanager
def difference(first, second):
    found = compare(first, second)
    with blank(width_in=found.sheet.width_in, height_in=found.sheet.height_in) as figure:
        found.paint(figure)
        yield figure


@pytest.mark.parametrize("ranks", [1, 4, 64])
@pytest.mark.parametrize("stretch", [1.0, 0.5, 1e5])
def test_no_text_overlaps_another_or_leaves_the_sheet(ranks, stretch):
    with difference(*pair(ranks, 8, stretch=stretch)) as figure:
        texts = drawn_texts(figure)
    assert overlapping(texts) == []
    assert outside(texts, figure) == []


def test_the_parts_of_every_rank_sum_to_the_difference_of_the_iterations():
    (_, one, one_facts), (_, two, two_facts) = pair(4, 8, stretch=1.1)
    runs = Iterations.of(one, one_facts), Iterations.of(two, two_facts)
    found = difference_of(*runs)
    assert found.iteration_ns == iteration_times_ns(runs[1]).mean() - iteration_times_ns(runs[0]).mean()
    assert sum(found.parts.values()) == pytest.approx(np.full(4, found.iteration_ns))
    forward = one.duration_ns[(one.iteration == 0) & (one.op == Op.F) & (one.stream == 0) & (one.rank == 0)].sum()
    assert found.parts[Op.F][0] == pytest.approx(0.1 * forward, rel=1e-6)


def test_a_run_does_not_differ_from_itself():
    one, _ = pair(4, 8)
    with difference(one, one) as figure:
        heights = [np.ptp(path.vertices[:, 1]) for bars in artists(figure, "bar-") for path in bars.get_paths()]
        assert max(heights) == 0
        assert "mean iteration of simulated: as that of simulated" in dict(drawn_texts(figure))


def test_runs_with_slower_messages_differ_by_idle_time_alone_and_swapping_them_mirrors_the_bars():
    one, two = pair(4, 8)
    found = compare(one, two).by_rank
    assert list(found.parts) == [None]
    assert found.iteration_ns > 0
    assert compare(two, one).by_rank.parts[None] == pytest.approx(-found.parts[None])


def test_the_iteration_nearest_to_the_median_is_shown():
    one, _ = pair(2, 2)
    trace = one[1]
    late = trace.start_ns + np.where(trace.iteration == 2, 5 * MS, 0)  # iteration 1 takes 5 ms longer
    columns = {name: getattr(trace, name) for name in ("iteration", "rank", "stream", "stage", "op", "microbatch")}
    columns |= {"peer": trace.peer, "bytes": trace.bytes, "start_ns": late, "end_ns": late + trace.duration_ns}
    slow = type(trace).from_columns(columns, trace.meta)
    blocks = compare(one, ("slow", slow, facts_of(slow, warmup=1))).blocks
    assert blocks[1].window.iterations in {(1,), (2,)}
    blocks = compare(one, ("slow", slow, facts_of(slow))).blocks
    assert blocks[1].window.iterations == (0,)


def test_the_same_runs_give_the_same_bytes(tmp_path):
    one, two = pair(4, 8)
    for name in ("a.svg", "b.svg"):
        draw_diff(one, two, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_runs_of_different_ranks_are_compared_along_their_paths_alone():
    with difference(pair(2, 2)[0], pair(4, 2)[1]) as figure:
        texts = drawn_texts(figure)
        assert overlapping(texts) == []
        assert artists(figure, "bar-") == []
        assert "What the difference consists of, along the critical paths of both" in dict(texts)


def test_the_steps_lead_from_one_mean_iteration_to_the_other():
    """All steps together are the difference, however many are folded into one."""
    for ranks in (2, 16):
        found = compare(*pair(ranks, 8, stretch=1.1)).along_paths
        steps = steps_of(found)
        assert steps[0].start_ms == found.first.iteration_ms
        assert steps[-1].end_ms == pytest.approx(found.second.iteration_ms)
        assert len(steps) <= 13
        sizes = [abs(step.change_ms) for step in steps if "others" not in step.name]
        assert sizes == sorted(sizes, reverse=True)
