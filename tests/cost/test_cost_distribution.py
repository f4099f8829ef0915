"""Stated and jittered costs: right means, B = I + W sample by sample, and draws that nothing else moves."""

from itertools import product

import numpy as np
import pytest

from hops.cost.jittered import Jittered
from hops.cost.stated import FusedBackward, MeasuredBackward, SplitBackward, StatedCosts
from hops.cost.table import TableCosts
from hops.distributions import Constant, Exponential, LogNormal, Normal
from hops.errors import UsageError
from hops.model.memory import StageMemory
from hops.program.action import ACTION_OPS, Op

F = Normal(mean=10e-3, std=1e-3)
SPLIT = SplitBackward(inputs=LogNormal.with_cv(mean=8e-3, cv=0.2), weights=Normal(mean=6e-3, std=2e-3))
FUSED = FusedBackward(whole=Normal(mean=14e-3, std=2e-3))
MEASURED = MeasuredBackward(
    whole=Normal(mean=14e-3, std=2e-3), inputs=Constant(value=8e-3), weights=Normal(mean=7e-3, std=1e-3)
)


def stated(*backward, forward=F):
    return StatedCosts(
        forward=(forward,) * len(backward),
        backward=backward,
        bytes_per_message=(1000,) * len(backward),
        memories=(StageMemory(activation_bytes=5),) * len(backward),
    )


@pytest.mark.parametrize("backward", [SPLIT, FUSED, MEASURED], ids=lambda value: type(value).__name__)
def test_means_of_many_draws_are_the_expected_seconds(backward):
    model = stated(backward)
    draws = model.draw(0, 50_000, 1)
    for op in ACTION_OPS:
        assert draws[0, op].mean() == pytest.approx(model.seconds(0, op), rel=0.01)


@pytest.mark.parametrize("backward", [SPLIT, FUSED], ids=lambda value: type(value).__name__)
def test_i_plus_w_is_b_sample_by_sample(backward):
    draws = stated(backward).draw(2, 100, 7)[0]
    assert np.array_equal(draws[Op.I] + draws[Op.W], draws[Op.B])
    assert np.ptp(draws[Op.B]) > 0


@pytest.mark.parametrize("overhead", [1.0, 1.25])
def test_i_plus_w_is_split_overhead_times_b_sample_by_sample(overhead):
    split = SplitBackward(inputs=SPLIT.inputs, weights=SPLIT.weights, split_overhead=overhead)
    fused = FusedBackward(whole=FUSED.whole, split_overhead=overhead)
    model = stated(split, fused)
    draws = model.draw(0, 100, 7)
    assert draws[:, Op.I] + draws[:, Op.W] == pytest.approx(overhead * draws[:, Op.B])
    assert model.seconds(0, Op.B) == pytest.approx(14e-3 / overhead)
    assert model.seconds(1, Op.I) == pytest.approx(7e-3 * overhead)


def test_measured_backward_times_are_drawn_each_for_itself():
    draws = stated(MEASURED).draw(0, 1000, 7)[0]
    assert np.all(draws[Op.I] == 8e-3)
    assert abs(np.corrcoef(draws[Op.B], draws[Op.W])[0, 1]) < 0.15


def test_constants_are_not_random():
    constant = SplitBackward(inputs=Constant(value=2.0), weights=Constant(value=3.0))
    draws = stated(constant, forward=Constant(value=1.0)).draw(0, 4, 0)
    assert draws[0].tolist() == [[1.0] * 4, [5.0] * 4, [2.0] * 4, [3.0] * 4]


def test_messages_and_memory_are_the_stated_ones():
    model = stated(SPLIT, SPLIT)
    assert [model.message_bytes(stage, Op.F) for stage in (0, 1)] == [1000, 0]
    assert [model.message_bytes(stage, Op.B) for stage in (0, 1)] == [0, 1000]
    assert model.memory(1) == StageMemory(activation_bytes=5)


MODELS = {
    "stated": lambda stages: stated(*[SPLIT, FUSED, MEASURED][:stages]),
    "jittered": lambda stages: Jittered(inner=TableCosts.uniform(stages), factors=Normal(mean=1.0, std=0.1)),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_draws_of_an_action_depend_on_nothing_but_its_own_numbers(make):
    """Not on the number of stages or microbatches, other iterations, or how often one asks."""
    all_stages = make(3)
    whole = all_stages.draw(4, 10, 42)
    assert np.array_equal(all_stages.draw(4, 10, 42), whole)
    assert np.array_equal(make(2).draw(4, 10, 42), whole[:2])
    assert np.array_equal(all_stages.draw(4, 3, 42), whole[:, :, :3])
    all_stages.draw(0, 100, 42)
    assert np.array_equal(all_stages.draw(4, 10, 42), whole)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_seed_iteration_stage_op_and_microbatch_each_change_the_draw(make):
    base = make(3).draw(0, 4, 42)
    assert not np.any(base[:, Op.F] == make(3).draw(0, 4, 43)[:, Op.F])
    assert not np.any(base[:, Op.F] == make(3).draw(1, 4, 42)[:, Op.F])
    assert len(np.unique(base[:, Op.F])) == 12
    assert len(np.unique(base[0, [Op.F, Op.I, Op.W]])) == 12


# Jitter


def jittered(inner, factors=None):
    return Jittered(inner=inner, factors=LogNormal.with_cv(mean=1.0, cv=0.2) if factors is None else factors)


def test_jitter_multiplies_every_draw_and_keeps_every_mean():
    inner = TableCosts.uniform(2, f=1.0, i=2.0, w=3.0)
    model = jittered(inner)
    draws = model.draw(0, 50_000, 1)
    for stage, op in product(range(2), ACTION_OPS):
        assert model.seconds(stage, op) == inner.seconds(stage, op)
        assert draws[stage, op].mean() == pytest.approx(inner.seconds(stage, op), rel=0.01)
    assert draws[0, Op.F].std() == pytest.approx(0.2, rel=0.05)


def test_jitter_keeps_i_plus_w_equal_to_b_where_it_was():
    draws = jittered(stated(SPLIT, FUSED)).draw(0, 200, 3)
    assert np.array_equal(draws[:, Op.I] + draws[:, Op.W], draws[:, Op.B])


def test_jitter_keeps_the_ratio_of_a_split_overhead():
    inner = TableCosts.of(forward_s=(1.0,), input_backward_s=(2.0,), weight_backward_s=(3.0,), fused_backward_s=(4.0,))
    draws = jittered(inner).draw(0, 200, 3)[0]
    assert draws[Op.B] * 1.25 == pytest.approx(draws[Op.I] + draws[Op.W])


def test_jitter_of_a_backward_stated_without_parts_leaves_it():
    inner = TableCosts.of(forward_s=(1.0,), input_backward_s=(0.0,), weight_backward_s=(0.0,), fused_backward_s=(4.0,))
    assert np.all(jittered(inner).draw(0, 3, 3)[0, Op.B] == 4.0)


def test_factors_of_one_change_nothing():
    inner = stated(SPLIT, MEASURED)
    assert np.allclose(jittered(inner, Constant(value=1.0)).draw(0, 20, 5), inner.draw(0, 20, 5), rtol=1e-14, atol=0)


def test_jitter_passes_on_messages_memory_and_the_end_of_an_iteration():
    inner = stated(SPLIT, SPLIT)
    model = jittered(inner)
    assert model.num_stages == 2
    assert model.message_bytes(0, Op.F) == inner.message_bytes(0, Op.F)
    assert model.memory(0) == inner.memory(0)
    assert model.step(0, 1) == inner.step(0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: jittered(TableCosts.uniform(1), Exponential(mean=2.0)),
            "the mean of jitter factors must be 1, but got 2.0; state the noise around 1",
        ),
        (
            lambda: StatedCosts(forward=(F, F), backward=(SPLIT,), bytes_per_message=(0,), memories=(StageMemory(),)),
            "forward, backward, bytes_per_message and memories must have one value per stage, but got 2, 1, 1, 1",
        ),
        (
            lambda: StatedCosts(forward=(F,), backward=(SPLIT,), bytes_per_message=(-1,), memories=(StageMemory(),)),
            "bytes_per_message must be at least 0, but got -1",
        ),
        (
            lambda: FusedBackward(whole=F, split_overhead=0.5),
            "split_overhead must be at least 1, but got 0.5",
        ),
    ],
)
def test_impossible_costs_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message
