"""Our fault models pass the suite that anybody's have to; models that break its rules do not."""

import pytest

from hops.distributions import Constant, Exponential, Weibull
from hops.faults.models import FaultModel, Fixed, Renewal, Share
from hops.testing.recovery import FaultModelConformance


class TestRenewal(FaultModelConformance):
    def make(self):
        return Renewal(between=Exponential(mean=900.0), repair=Weibull(mean=50.0, shape=0.7))


class TestNeverRepaired(FaultModelConformance):
    def make(self):
        return Renewal(between=Exponential(mean=900.0))


class TestFixed(FaultModelConformance):
    def make(self):
        return Fixed(at=(5.0, 600.0, 601.0), repair=Constant(value=7.0))


class TestShare(FaultModelConformance):
    def make(self):
        return Share(probability=0.5)


class Fresh(FaultModel):
    """Draws as many as the horizon asks for, at once."""

    def windows(self, generator_of, horizon_s):
        count = int(horizon_s / 10)
        starts = sorted((generator_of("all").random(count) * horizon_s).tolist())
        return [(start, start) for start in starts]


class Overlapping(FaultModel):
    def windows(self, generator_of, horizon_s):
        return [(0.0, 9.0), (5.0, 20.0)]


class Late(FaultModel):
    def windows(self, generator_of, horizon_s):
        return [(5.0 * horizon_s, 6.0 * horizon_s)]


@pytest.mark.parametrize(
    ("model", "test", "message"),
    [
        (Fresh(), "test_a_longer_horizon_moves_nothing", "depend on the horizon"),
        (Overlapping(), "test_windows_are_in_order_and_do_not_overlap", "follows a window that ends at 9"),
        (Late(), "test_windows_start_before_the_horizon", "expected from 0 on and before 10"),
    ],
)
def test_models_that_break_the_rules_are_told(model, test, message):
    class Suite(FaultModelConformance):
        def make(self):
            return model

    with pytest.raises(AssertionError, match=message):
        getattr(Suite(), test)()
