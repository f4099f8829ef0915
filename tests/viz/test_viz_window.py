"""Which stretch of time a timeline shows."""

import numpy as np
import pytest
from viz_traces import facts_of, one_f_one_b, trace_of

from hops.errors import UsageError
from hops.program.action import Op
from hops.trace.trace import COLUMNS, Stream, Trace
from hops.viz.window import TimeUnit, choose_window

MS = 1e-3


@pytest.fixture(scope="module")
def trace():
    return trace_of(one_f_one_b(2, 4), iterations=5)


def test_the_narrowest_boxes_decide_how_many_iterations_can_be_read(trace):
    columns = {name: getattr(trace, name) for name in COLUMNS}
    uneven = np.where((trace.rank == 0) & (trace.op <= Op.W) & (trace.stream == Stream.COMPUTE), 30, 1)
    narrow = Trace.from_columns(columns | {"end_ns": trace.start_ns + trace.duration_ns // uneven}, trace.meta)
    assert choose_window(narrow, facts_of(narrow)).iterations == (0,)


def test_by_default_three_iterations_after_warm_up_are_shown(trace):
    window = choose_window(trace, facts_of(trace, warmup=1))
    assert window.iterations == (1, 2, 3)
    assert window.start_ns == trace.start_ns[trace.iteration == 1].min()
    assert window.end_ns == trace.end_ns[trace.iteration == 3].max()


def test_fewer_iterations_are_shown_where_more_could_not_be_read():
    long = trace_of(one_f_one_b(2, 200), iterations=3)
    assert choose_window(long, facts_of(long)).iterations == (0,)


def test_iterations_asked_for_are_shown_with_those_between_them(trace):
    assert choose_window(trace, facts_of(trace), iterations=[3, 1]).iterations == (1, 2, 3)


def test_a_time_window_names_the_iterations_that_begin_in_it(trace):
    starts = [int(trace.start_ns[trace.iteration == i].min()) for i in range(5)]
    window = choose_window(trace, facts_of(trace), window_s=(starts[1] * 1e-9 + 2 * MS, starts[3] * 1e-9 + 2 * MS))
    assert window.iterations == (2, 3)
    assert window.starts_ns == (starts[2], starts[3])


def test_rows_overlap_a_window_if_any_part_of_them_lies_inside(trace):
    window = choose_window(trace, facts_of(trace), window_s=(0.0005, 0.0015))
    rows = trace.where(window.overlaps(trace))
    assert np.all(rows.start_ns < 1_500_000)
    assert np.all(rows.end_ns > 500_000)
    assert [int(m) for m in rows.microbatch[(rows.rank == 0) & (rows.stream == 0)]] == [0, 1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"iterations": [0, 7, 9]}, "cannot show iteration 7, 9: the trace has iterations 0 to 4"),
        ({"iterations": []}, "cannot show iteration (none given): the trace has iterations 0 to 4"),
        ({"window_s": (2.0, 1.0)}, "cannot show 2 s to 1 s: expected start before end, inside the trace's 0 s to "),
        ({"window_s": (50.0, 51.0)}, "cannot show 50 s to 51 s: expected start before end, inside the trace's 0 s to "),
        (
            {"iterations": [0], "window_s": (0.0, 1.0)},
            "both iterations and a time window were asked for; expected one of them: leave one out",
        ),
    ],
)
def test_what_is_not_in_the_trace_cannot_be_shown(trace, asked, message):
    with pytest.raises(UsageError) as error:
        choose_window(trace, facts_of(trace), **asked)
    assert str(error.value).startswith(message)


def test_an_empty_trace_cannot_be_shown(trace):
    with pytest.raises(UsageError, match="nothing to draw: the trace has no rows; expected at least one action"):
        choose_window(trace.where(trace.rank < 0), facts_of(trace))


@pytest.mark.parametrize(
    ("ns", "unit"), [(5, "ns"), (5_000, "µs"), (2_000_000, "ms"), (9_000_000_000, "ms"), (10_000_000_000, "s")]
)
def test_axes_count_in_the_unit_that_fits(ns, unit):
    assert TimeUnit.fit(ns).name == unit
