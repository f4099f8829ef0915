"""Costs by table: what a trace took is what a run by its table takes."""

from dataclasses import replace

import numpy as np
import pytest

from hops.cost.base import StepCosts
from hops.cost.stated import SplitBackward, StatedCosts
from hops.cost.table import TableCosts
from hops.distributions import Constant, LogNormal
from hops.engine.settings import RunSettings
from hops.engine.simulate import run_program
from hops.errors import UsageError
from hops.hardware.network import Network
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op
from hops.schedules.base import SCHEDULERS
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Stream

STEP = StepCosts(tied_reduce_s=3e-6, grad_reduce_s=(1e-6, 2e-6, 4e-6), optimizer_s=(5e-6, 6e-6, 7e-6), host_s=8e-6)


def program(name="1f1b", ranks=3, microbatches=5):
    scheduler = SCHEDULERS.get(name)()
    scheduler.configure(StageCosts.uniform(scheduler.shape(ranks, microbatches)))
    return scheduler.program


@pytest.mark.parametrize("schedule", ["1f1b", "zb_h1", "gpipe"])
def test_a_run_by_the_table_of_a_trace_is_that_trace(schedule):
    """Drawn times and the end of an iteration come back to the nanosecond."""
    work = program(schedule)
    time = LogNormal.with_cv(mean=1e-3, cv=0.4)
    drawn = StatedCosts(
        forward=(time,) * 3,
        backward=(SplitBackward(inputs=time, weights=time),) * 3,
        bytes_per_message=(0,) * 3,
        memories=(StageMemory(),) * 3,
    )
    first = run_program(work, drawn, Network.uniform(3, latency_s=1e-5), RunSettings(seed=4))
    table = replace(TableCosts.from_trace(first), step_costs=STEP)
    second = run_program(work, table, Network.uniform(3, latency_s=1e-5), RunSettings())
    third = run_program(work, TableCosts.from_trace(second), Network.uniform(3, latency_s=1e-5), RunSettings())
    actions = second.where((second.stream == Stream.COMPUTE) & (second.op <= Op.W))
    compute = first.where(first.stream == Stream.COMPUTE)
    assert (actions.start_ns == compute.start_ns).all()
    assert (actions.end_ns == compute.end_ns).all()
    assert third == second


def test_other_durations_stand_for_the_recorded_ones():
    work = program()
    trace = run_program(work, TableCosts.uniform(3, f=1e-3, i=1e-3, w=1e-3), Network.uniform(3), RunSettings())
    table = TableCosts.from_trace(trace, trace.duration_ns * 2)
    assert table.seconds(1, Op.F) == pytest.approx(2e-3)
    assert table.seconds(1, Op.B) == pytest.approx(4e-3)
    assert table.seconds(1, Op.W) == 0, "1F1B runs no W"


def test_a_table_of_another_models_messages_and_memory_changes_times_only():
    like = StatedCosts(
        forward=(Constant(value=1.0),) * 2,
        backward=(SplitBackward(inputs=Constant(value=1.0), weights=Constant(value=1.0)),) * 2,
        bytes_per_message=(5, 6),
        memories=(StageMemory(activation_bytes=3), StageMemory(activation_bytes=4)),
    )
    table = TableCosts.timed(like, np.arange(24.0).reshape(2, 4, 3), STEP)
    assert [[table.message_bytes(s, op) for op in ACTION_OPS] for s in range(2)] == [[5, 0, 0, 0], [0, 6, 6, 0]]
    assert [table.memory(stage).activation_bytes for stage in range(2)] == [3, 4]
    assert table.seconds(0, Op.B) == 4.0
    assert table.draw(0, 3, 0).tolist() == np.arange(24.0).reshape(2, 4, 3).tolist()
    assert table.step(7, 1) is STEP


def test_b_is_i_and_w_unless_it_is_stated():
    halves = {"forward_s": (1.0,), "input_backward_s": (2.0,), "weight_backward_s": (3.0,)}
    assert TableCosts.of(**halves).seconds(0, Op.B) == 5.0
    assert TableCosts.of(**halves, fused_backward_s=(4.0,)).seconds(0, Op.B) == 4.0
    assert TableCosts.of(**halves).memory(0) == StageMemory()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times_s": np.zeros((2, 3, 1))}, "times_s must have the shape (stages, 4, microbatches), but got (2, 3, 1)"),
        ({"times_s": np.zeros((2, 4))}, "times_s must have the shape (stages, 4, microbatches), but got (2, 4)"),
        ({"times_s": np.zeros((0, 4, 1))}, "times_s must have the shape (stages, 4, microbatches), but got (0, 4, 1)"),
        ({"sent_bytes": np.zeros((1, 4), dtype=int)}, "sent_bytes must have the shape (2, 4), but got (1, 4)"),
        ({"memories": (StageMemory(),)}, "memories must have one value per stage (2), but got 1"),
    ],
)
def test_a_table_of_another_shape_is_refused(change, message):
    with pytest.raises(UsageError) as caught:
        replace(TableCosts.uniform(2), **change)
    assert str(caught.value) == message
