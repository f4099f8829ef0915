"""The end of an iteration: reductions by closed forms, the optimizer by its bytes, stalls by their probability."""

from dataclasses import replace
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.cost.analytic import AnalyticCosts
from hops.cost.base import StepCosts
from hops.cost.collectives import reduced_bytes, reduction_seconds, ring_seconds, tied_reduce_seconds, tree_seconds
from hops.cost.iteration_end import StepModel, optimizer_seconds, optimizer_steps
from hops.cost.roofline import DeviceRates, Traffic
from hops.cost.table import TableCosts
from hops.distributions import Constant, Empirical, Exponential, Normal
from hops.errors import UsageError
from hops.hardware.network import RareDelay
from hops.model.implementation import Implementation, Microbatch, Optimizer
from hops.model.partition import Partition
from hops.model.transformer import get_model
from hops.model.workload import Workload

RATES = DeviceRates(peak_flop_per_s=300e12, memory_bandwidth=2e12)


@settings(deadline=None, max_examples=50)
@given(ranks=st.integers(1, 4096), size=st.floats(0, 1e12))
def test_ring_moves_2_n_minus_1_over_n_of_the_bytes_in_2_n_minus_1_messages(ranks, size):
    seconds = ring_seconds(size, ranks, bandwidth=1e9, latency_s=1e-6)
    assert seconds == pytest.approx(2 * (ranks - 1) / ranks * size / 1e9 + 2 * (ranks - 1) * 1e-6)


@pytest.mark.parametrize("ranks", [2, 8, 1024])
def test_tree_moves_the_bytes_twice_in_2_log2_n_messages(ranks):
    seconds = tree_seconds(1e9, ranks, bandwidth=1e9, latency_s=1e-3)
    assert seconds == pytest.approx(2 + 2 * log2(ranks) * 1e-3)


@pytest.mark.parametrize("algorithm", ["ring", "tree", "none"])
def test_a_single_rank_reduces_nothing(algorithm):
    assert reduction_seconds(algorithm, 1e9, 1, bandwidth=1e9, latency_s=1e-3) == 0


def test_trees_win_with_many_ranks_and_few_bytes_and_rings_with_few_ranks_and_many_bytes():
    def seconds(algorithm, size, ranks):
        return reduction_seconds(algorithm, size, ranks, bandwidth=1e10, latency_s=1e-5)

    assert seconds("tree", 1e5, 512) < seconds("ring", 1e5, 512)
    assert seconds("ring", 1e9, 4) < seconds("tree", 1e9, 4)
    assert seconds("none", 1e9, 4) == 0


def test_tied_embeddings_reduce_vocab_x_hidden_gradients_between_two():
    """2(n-1)/n = 1 for two ranks: every byte crosses once each way. 206 MB at hidden 1024 and 50304 rows."""
    seconds = tied_reduce_seconds(50304 * 1024, gradient_bytes=4, bandwidth=1e9, latency_s=1e-3)
    assert seconds == pytest.approx(206.0e6 / 1e9 + 2e-3, rel=1e-3)


def test_the_optimizer_moves_its_bytes_through_its_own_memory():
    adam = Optimizer.named("adam", element_bytes=2)
    seconds = optimizer_seconds(10**9, layers=0, bytes_per_parameter=adam.step_bytes(2), rates=RATES)
    assert seconds == pytest.approx(50e9 / (2e12 * 0.8))
    launched = optimizer_seconds(0, layers=3, bytes_per_parameter=50, rates=replace(RATES, optimizer_launch_s=2e-3))
    assert launched == 2e-3
    more = replace(RATES, traffic=Traffic(optimizer=1.5))
    assert optimizer_seconds(10**9, layers=0, bytes_per_parameter=50, rates=more) == pytest.approx(1.5 * seconds)


def test_the_optimizer_is_bound_by_its_bytes_or_by_its_dispatch():
    rates = replace(RATES, step_layer_s=1e-3)
    assert optimizer_seconds(100, layers=8, bytes_per_parameter=50, rates=rates) == 8e-3
    bound = optimizer_seconds(10**9, layers=8, bytes_per_parameter=50, rates=rates)
    assert bound == pytest.approx(50e9 / (2e12 * 0.8))


def test_every_rank_waits_for_the_gradient_norm_of_the_slowest():
    slow = replace(RATES, norm_layer_s=2e-3)
    steps = optimizer_steps([0, 0, 0], [4, 3, 9], bytes_per_parameter=50, rates=[RATES, slow, RATES])
    assert steps == (6e-3, 6e-3, 6e-3)


def test_expected_and_typical_iterations_are_those_of_many_draws():
    """A tenth of reductions stalls: the mean holds them, the median is a quantile of the others."""
    steps = StepModel(
        tied_reduce=Empirical.of(np.linspace(0.08, 0.12, 101)),
        tied_stall=RareDelay(probability=0.1, extra=Constant(value=0.2)),
        optimizer=(Constant(value=0.4),),
        host=Constant(value=0.1),
    )
    drawn = [steps.costs(iteration, 3).tied_reduce_s for iteration in range(4000)]
    assert steps.expected().costs(0, 1).tied_reduce_s == pytest.approx(np.mean(drawn), rel=0.01)
    assert steps.typical().costs(0, 1).tied_reduce_s == pytest.approx(np.median(drawn), rel=0.01)
    assert steps.expected().costs(0, 1).optimizer_s == (0.4,)


def test_constants_make_the_same_step_every_iteration():
    steps = StepModel(
        tied_reduce=Constant(value=0.1),
        grad_reduce=(Constant(value=0.2), Constant(value=0.3)),
        optimizer=(Constant(value=0.4), Constant(value=0.5)),
        host=Constant(value=0.6),
        synchronized=False,
    )
    expected = StepCosts(
        tied_reduce_s=0.1, grad_reduce_s=(0.2, 0.3), optimizer_s=(0.4, 0.5), host_s=0.6, synchronized=False
    )
    assert [steps.costs(iteration, 1) for iteration in range(3)] == [expected] * 3


def test_stalls_have_their_probability_and_size():
    steps = StepModel(
        tied_reduce=Constant(value=0.1), tied_stall=RareDelay(probability=0.125, extra=Normal(mean=0.17, std=0.01))
    )
    extra = np.array([steps.costs(iteration, 5).tied_reduce_s - 0.1 for iteration in range(4000)])
    stalled = extra > 1e-9
    assert stalled.mean() == pytest.approx(0.125, abs=0.02)
    assert extra[stalled].mean() == pytest.approx(0.17, rel=0.02)


def test_no_part_of_the_step_moves_the_draws_of_another():
    random = Exponential(mean=1.0)
    alone = StepModel(optimizer=(random, random)).costs(3, 42)
    together = StepModel(
        tied_reduce=random,
        tied_stall=RareDelay(probability=0.5, extra=random),
        grad_reduce=(random, random),
        optimizer=(random, random),
        host=random,
    ).costs(3, 42)
    assert together.optimizer_s == alone.optimizer_s
    drawn = (together.tied_reduce_s, *together.grad_reduce_s, *together.optimizer_s, together.host_s)
    assert len(set(drawn)) == 6


def test_the_analytic_model_ends_its_iterations_as_its_steps_say():
    steps = StepModel(host=Exponential(mean=1.0))
    model = AnalyticCosts.of(
        Workload(
            model=get_model("gpt2"),
            batch=Microbatch(sequence_length=128),
            how=Implementation(),
            optimizer=Optimizer.named("adam", element_bytes=2),
        ),
        Partition.even(12, 2),
        [RATES, RATES],
        steps=steps,
    )
    assert model.step(4, 7) == steps.costs(4, 7)


def test_fixed_costs_end_as_stated_or_not_at_all():
    assert TableCosts.uniform(2).step(0, 1) == StepCosts()
    stated = StepCosts(host_s=1.0)
    assert replace(TableCosts.uniform(2), step_costs=stated).step(0, 1) is stated


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: reduction_seconds("star", 1.0, 2, bandwidth=1.0),
            "unknown reduction 'star': known are ring, tree, none",
        ),
        (
            lambda: reduction_seconds("ring", 1.0, 0, bandwidth=1.0),
            "ranks of a reduction must be at least 1, but got 0",
        ),
    ],
)
def test_impossible_reductions_are_refused(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message


@settings(deadline=None, max_examples=50)
@given(ranks=st.integers(2, 4096), gradients=st.floats(0, 1e12), parameters=st.floats(0, 1e12))
def test_a_distributed_optimizer_scatters_gradients_and_gathers_parameters(ranks, gradients, parameters):
    """A ring's reduce-scatter and its all-gather each move (n-1)/n of their bytes in n-1 messages."""
    size = reduced_bytes(gradients, parameters, distributed=True)
    seconds = reduction_seconds("ring", size, ranks, bandwidth=1e9, latency_s=1e-6)
    steps = ranks - 1
    assert seconds == pytest.approx(steps / ranks * (gradients + parameters) / 1e9 + 2 * steps * 1e-6)
    assert reduced_bytes(gradients, parameters, distributed=False) == gradients
