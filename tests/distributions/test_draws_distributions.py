"""Distributions keep the mean they state, whatever the noise."""

from math import exp, gamma, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hops.distributions import Constant, Empirical, Exponential, LogNormal, Normal, Pareto, Poisson, Weibull, generator
from hops.errors import UsageError

# distribution, its standard deviation by the textbook formula
KNOWN = [
    (Constant(value=3.0), 0.0),
    (Normal(mean=10.0, std=1.0), 1.0),
    (Normal(mean=4.0, std=0.0), 0.0),
    (LogNormal(mean=2.0, std=0.5), 0.5),
    (LogNormal.with_cv(mean=4.0, cv=0.25), 1.0),
    (Pareto(mean=3.0, alpha=5.0), 3.0 * 4 / 5 * sqrt(5 / (4**2 * 3))),
    (Poisson(mean=0.020), sqrt(0.020 * 1e-3)),
    (Exponential(mean=7.0), 7.0),
    (Weibull(mean=7.0, shape=1.0), 7.0),
    (Weibull(mean=1.0, shape=2.0), sqrt(gamma(2.0) / gamma(1.5) ** 2 - 1)),
    (Empirical.of([1.0, 2.0, 6.0]), sqrt(14 / 3)),
]
ALL = [distribution for distribution, _ in KNOWN] + [Normal(mean=1.0, std=2.0), Pareto(mean=1.0, alpha=1.5)]


def draws(distribution, size=200_000, purpose="test"):
    return distribution.sample(generator(42, purpose), size)


@pytest.mark.parametrize(("distribution", "std"), KNOWN, ids=str)
def test_mean_and_standard_deviation_of_many_draws_are_the_stated_ones(distribution, std):
    sample = draws(distribution)
    error = 5 * std / sqrt(len(sample))
    assert sample.mean() == pytest.approx(distribution.mean, abs=error + 1e-12)
    assert sample.std() == pytest.approx(std, rel=0.03, abs=1e-12)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0])
def test_truncation_at_zero_does_not_move_the_mean_of_a_normal(ratio):
    sample = draws(Normal(mean=1.0, std=ratio))
    assert sample.min() >= 0
    assert sample.mean() == pytest.approx(1.0, abs=5 * ratio / sqrt(len(sample)))


def test_a_narrow_normal_is_not_moved_at_all():
    assert Normal(mean=5.0, std=0.5).location == pytest.approx(5.0, abs=1e-15)


def test_the_half_normal_is_a_normal_truncated_at_its_own_location():
    """N(0, 1) given that it is positive has mean sqrt(2/pi)."""
    assert Normal(mean=sqrt(2 / np.pi), std=1.0).location == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.5])
def test_pareto_has_its_tail(alpha):
    """P(X > 10 minimum) = 10^-alpha."""
    distribution = Pareto(mean=1.0, alpha=alpha)
    sample = draws(distribution)
    share = np.mean(sample > 10 * distribution.minimum)
    assert sample.min() >= distribution.minimum
    assert share == pytest.approx(10**-alpha, rel=0.1)


def test_poisson_draws_whole_units():
    sample = draws(Poisson(mean=3.5, unit=0.5), size=100)
    assert np.array_equal(sample, np.round(sample / 0.5) * 0.5)


def test_weibull_of_shape_one_is_exponential():
    """P(X > mean) = 1/e for both."""
    for distribution in (Exponential(mean=2.0), Weibull(mean=2.0, shape=1.0)):
        assert np.mean(draws(distribution) > 2.0) == pytest.approx(exp(-1), abs=0.005)


def test_empirical_draws_nothing_but_its_samples_each_as_often():
    values, counts = np.unique(draws(Empirical.of([0.1, 0.4, 0.2])), return_counts=True)
    assert list(values) == [0.1, 0.2, 0.4]
    assert counts / counts.sum() == pytest.approx([1 / 3] * 3, abs=0.01)


@pytest.mark.parametrize("distribution", ALL, ids=str)
@pytest.mark.parametrize("factor", [1e-3, 1.0, 7.0])
def test_scaling_scales_mean_and_every_draw(distribution, factor):
    scaled = distribution.scaled(factor)
    assert scaled.mean == pytest.approx(factor * distribution.mean)
    assert draws(scaled, 500) == pytest.approx(factor * draws(distribution, 500))


@pytest.mark.parametrize("distribution", ALL, ids=str)
def test_more_draws_begin_with_the_same_draws(distribution):
    """So a longer iteration does not move the jitter of the microbatches that a shorter one has too."""
    few, many = draws(distribution, 7), draws(distribution, 300)
    assert np.array_equal(few, many[:7])
    assert few.shape == (7,)
    assert few.dtype == np.float64


@pytest.mark.parametrize("distribution", ALL, ids=str)
def test_no_draws_are_an_empty_array(distribution):
    assert draws(distribution, 0).shape == (0,)


@settings(deadline=None, max_examples=60)
@given(
    mean=st.floats(1e-9, 1e9),
    ratio=st.floats(0, 2),
    seed=st.integers(0, 2**32),
)
def test_draws_are_finite_and_never_negative(mean, ratio, seed):
    members = [
        Normal(mean=mean, std=ratio * mean),
        LogNormal.with_cv(mean=mean, cv=ratio),
        Pareto(mean=mean, alpha=1.1 + ratio),
        Poisson(mean=mean, unit=mean / 3),
        Weibull(mean=mean, shape=0.2 + ratio),
    ]
    for member in members:
        sample = member.sample(generator(seed, "property"), 20)
        assert np.all(np.isfinite(sample))
        assert np.all(sample >= 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(value=-1.0), "value of Constant must be a number of at least 0, but got -1.0"),
        (lambda: Constant(value=float("nan")), "value of Constant must be a number of at least 0, but got nan"),
        (lambda: Normal(mean=0.0, std=1.0), "mean of Normal must be a positive number, but got 0.0"),
        (lambda: Normal(mean=1.0, std=-1.0), "std of Normal must be a number of at least 0, but got -1.0"),
        (
            lambda: Normal(mean=1.0, std=2.5),
            "std of Normal must be at most twice the mean (1.0), but got 2.5; for wider noise use LogNormal or Pareto",
        ),
        (lambda: LogNormal(mean=float("inf"), std=1.0), "mean of LogNormal must be a positive number, but got inf"),
        (
            lambda: Pareto(mean=1.0, alpha=1.0),
            "alpha of Pareto must be above 1, but got 1.0; with a smaller one the mean is infinite",
        ),
        (lambda: Poisson(mean=1.0, unit=0.0), "unit of Poisson must be a positive number, but got 0.0"),
        (
            lambda: Poisson(mean=1e9, unit=1e-9),
            "mean of Poisson must be below 1e15 units, but got 1000000000.0; choose a larger unit",
        ),
        (lambda: Exponential(mean=-2.0), "mean of Exponential must be a positive number, but got -2.0"),
        (lambda: Weibull(mean=1.0, shape=0.0), "shape of Weibull must be at least 0.05, but got 0.0"),
        (lambda: Empirical.of([]), "samples of Empirical must be at least one number, but got ()"),
        (
            lambda: Empirical.of([1.0, -0.5]),
            "every sample of Empirical must be a number of at least 0, but got -0.5",
        ),
        (lambda: Exponential(mean=1.0).scaled(-1), "mean of Exponential must be a positive number, but got -1.0"),
    ],
)
def test_wrong_parameters_are_refused_with_what_was_expected_and_got(make, message):
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value) == message
