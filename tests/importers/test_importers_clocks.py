"""Offsets between clocks are found where order determines them, with bounds that hold the truth, and are said."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "metrics"))

from megatron_files import lines_of, simulated, write_run
from pipelines import B, F, gpipe, one_f_one_b, simulate

from hops.errors import TraceError
from hops.importers.base import read_trace
from hops.importers.clocks import Order, aligned, clock_offsets
from hops.importers.megatron.trace import read_run
from hops.metrics.iterations import is_action
from hops.trace.files import write_events
from hops.trace.order import producer_rows
from hops.trace.trace import COLUMNS, Trace

MS = 1_000_000


def shifted(trace, ahead_ns):
    """What ranks whose clocks are ahead by so much would have recorded."""
    columns = {name: getattr(trace, name) for name in COLUMNS}
    shift = np.asarray(ahead_ns)[trace.rank] - min(ahead_ns)
    return Trace.from_columns(
        columns | {"start_ns": trace.start_ns + shift, "end_ns": trace.end_ns + shift}, trace.meta
    )


def seconds(action, iteration):
    return {F: 2, B: 4}[action.op] * MS


def order_of(**columns):
    return Order(**{name: np.asarray(values) for name, values in columns.items()})


def causal(trace):
    source = producer_rows(trace)
    takes = is_action(trace) & (source >= 0)
    return bool(np.all(trace.start_ns[takes] >= trace.end_ns[source[takes]]))


def test_messages_that_take_equally_long_both_ways_give_the_offset_exactly():
    """Half a millisecond each way: the bounds are half a millisecond to both sides of the truth."""
    trace = simulate(one_f_one_b(3, 4), seconds, hop=MS // 2, iterations=2)
    found, notes = aligned(shifted(trace, [0, 7 * MS, -20 * MS]))
    assert found == trace
    assert notes[0] == (
        "clock of host1 set back by 7.000 ms, which is off by 0.500 ms at most: order alone allows 6.500 to 7.500 ms "
        "ahead of that of host0"
    )
    assert notes[1].startswith("clock of host2 set back by -20.000 ms, which is off by 1.000 ms at most: ")


@given(
    st.integers(2, 5),
    st.integers(1, 5),
    st.sampled_from([gpipe, one_f_one_b]),
    st.integers(0, 2 * MS),
    st.lists(st.integers(-50 * MS, 50 * MS), min_size=5, max_size=5),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=60)
def test_bounds_hold_the_truth_and_the_estimate_keeps_all_order(ranks, microbatches, order, hop, ahead, seed):
    draw = np.random.default_rng(seed)
    trace = simulate(order(ranks, microbatches), lambda action, k: int(draw.integers(1, 4 * MS)), hop=hop, iterations=2)
    off = shifted(trace, ahead[:ranks])
    rows = np.flatnonzero(is_action(off) & (producer_rows(off) >= 0))
    source = producer_rows(off)[rows]
    links = Order(before=off.rank[source], end_ns=off.end_ns[source], after=off.rank[rows], start_ns=off.start_ns[rows])
    found = clock_offsets(links, [f"host{rank}" for rank in range(ranks)])
    truth = np.asarray(ahead[:ranks]) - ahead[0]
    assert np.all((found.least_ns <= truth) & (truth <= found.most_ns))
    assert np.all(np.abs(found.ahead_ns - truth) <= (found.most_ns - found.least_ns + 1) // 2)
    slack = (
        off.start_ns[rows] - found.ahead_ns[off.rank[rows]] - (off.end_ns[source] - found.ahead_ns[off.rank[source]])
    )
    assert slack.min() >= -1  # halves of odd numbers
    again, _ = aligned(aligned(off)[0])
    np.testing.assert_allclose(again.start_ns, aligned(off)[0].start_ns, atol=ranks)


def test_ranks_of_one_host_share_its_clock():
    trace = simulate(one_f_one_b(4, 4), seconds, hop=MS)
    trace = replace(trace, meta=replace(trace.meta, hosts=("a", "a", "b", "b")))
    found, notes = aligned(shifted(trace, [0, 0, 30 * MS, 30 * MS]))
    assert found == trace
    assert len(notes) == 1
    alone = replace(trace, meta=replace(trace.meta, hosts=("a",) * 4))
    assert aligned(alone) == (alone, ())


def test_clocks_that_drift_are_refused_with_how_much_is_missing():
    order = order_of(before=(0, 1), end_ns=(0, 0), after=(1, 0), start_ns=(-3 * MS, MS))
    with pytest.raises(TraceError, match=r"no offset .* on the way from b around and back 2\.000 ms are missing"):
        clock_offsets(order, ["a", "b"])


def test_a_clock_that_only_one_direction_holds_is_refused():
    order = order_of(before=(0,), end_ns=(0,), after=(1,), start_ns=(MS,))
    with pytest.raises(TraceError, match="nothing holds the clock of b from both sides; expected forwards and"):
        clock_offsets(order, ["a", "b"])


def test_a_run_whose_clocks_contradict_causality_is_read_with_its_clocks_set_back(tmp_path):
    """Rank 1 is 50 ms ahead: refused, told about --align-clocks, and then read as if its clock had been right."""
    lines = lines_of(simulated(3, 4, 5))
    right = write_run(tmp_path / "right", lines)
    for line in lines[1]:
        line["start_wall_ns"] += 50 * MS
        line["end_wall_ns"] += 50 * MS
    wrong = write_run(tmp_path / "wrong", lines)
    with pytest.raises(TraceError, match=r"clocks contradict causality: .* estimate their offsets with --align-clocks"):
        read_run(wrong)
    found, truth = read_run(wrong, align_clocks=True), read_run(right, align_clocks=True)
    assert found.trace == truth.trace
    assert causal(found.trace)
    assert len(found.notes) == 2
    assert found.notes[0].startswith("clock of ")


def test_own_events_and_csv_are_set_back_as_well(tmp_path):
    trace = simulate(one_f_one_b(2, 3), seconds, hop=MS, source="measured")
    write_events(shifted(trace, [0, 9 * MS]), tmp_path / "off.csv")
    found = read_trace(tmp_path / "off.csv", align_clocks=True)
    assert found.trace == trace
    assert len(found.notes) == 1
    simple = tmp_path / "simple.csv"
    rows = [
        "iteration,stage,op,microbatch,start_ms,end_ms",
        "0,0,F,0,0,10",
        "0,1,F,0,115,125",
        "0,1,B,0,125,145",
        "0,0,B,0,50,70",
    ]
    simple.write_text("\n".join(rows) + "\n")
    with pytest.raises(TraceError, match="contradict causality"):
        read_trace(simple)
    starts = read_trace(simple, align_clocks=True).trace.start_ns
    assert starts.tolist() == [0, 15 * MS, 25 * MS, 50 * MS]  # 5 ms each way
