"""Which action made what another one takes."""

from hops.program.action import Op
from hops.trace.order import producer_rows
from hops.trace.trace import Stream, Trace, TraceMeta

META = TraceMeta(
    source="simulated", num_microbatches=2, rank_of_stage=(0, 1), devices=("", ""), hosts=("", ""), routes={}
)


def names_of_producers(*rows, iterations=None):
    columns = {
        "iteration": iterations or [0] * len(rows),
        "rank": [row[1] for row in rows],
        "stream": [row[0] for row in rows],
        "stage": [row[1] for row in rows],
        "op": [row[2] for row in rows],
        "microbatch": [row[3] for row in rows],
        "peer": [-1] * len(rows),
        "start_ns": list(range(len(rows))),
        "end_ns": [n + 1 for n in range(len(rows))],
        "bytes": [0] * len(rows),
    }
    return producer_rows(Trace.from_columns(columns, META)).tolist()


C, M = Stream.COMPUTE, Stream.MESSAGE


def test_forward_takes_from_the_stage_before_and_backward_from_the_stage_after():
    assert names_of_producers((C, 0, Op.F, 0), (C, 1, Op.F, 0), (C, 1, Op.B, 0), (C, 0, Op.B, 0)) == [-1, 0, -1, 2]


def test_a_fused_backward_may_feed_a_split_one_and_the_other_way_round():
    assert names_of_producers((C, 1, Op.I, 0), (C, 0, Op.B, 0), (C, 1, Op.B, 1), (C, 0, Op.I, 1)) == [-1, 0, -1, 2]


def test_weight_backwards_take_nothing_from_elsewhere():
    assert names_of_producers((C, 1, Op.I, 0), (C, 0, Op.I, 0), (C, 0, Op.W, 0)) == [-1, 0, -1]


def test_a_message_comes_from_the_action_that_it_bears():
    assert names_of_producers((C, 0, Op.F, 0), (M, 0, Op.F, 0)) == [-1, 0]


def test_microbatches_and_iterations_do_not_mix():
    rows = ((C, 0, Op.F, 0), (C, 1, Op.F, 1), (C, 1, Op.F, 0))
    assert names_of_producers(*rows) == [-1, -1, 0]
    assert names_of_producers(*rows, iterations=[0, 0, 7]) == [-1, -1, -1]


def test_of_two_runs_of_one_action_the_later_counts():
    assert names_of_producers((C, 0, Op.F, 0), (C, 0, Op.F, 0), (C, 1, Op.F, 0)) == [-1, -1, 1]
