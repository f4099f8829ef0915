"""What every cost model has to do: inherit CostModelConformance in a test class and give it `make`."""

from abc import ABC, abstractmethod
from dataclasses import astuple
from itertools import product
from typing import ClassVar

import numpy as np

from hops.cost.base import CostModel
from hops.program.action import ACTION_OPS, Op

SEED, ITERATION, MICROBATCHES = 42, 3, 6


class CostModelConformance(ABC):
    """The tests that every cost model passes, whether its times are random or not.

    Name the subclass `Test...` so that pytest finds it.
    """

    mean_tolerance: ClassVar[float] = 0.05
    """How far (relative) the mean of 4000 draws may be from the expected time."""

    @abstractmethod
    def make(self, num_stages: int) -> CostModel:
        """A model of so many stages (2 to 4)."""

    def test_expected_times_are_finite_and_not_negative(self) -> None:
        model = self.make(3)
        for stage, op in product(range(3), ACTION_OPS):
            seconds = model.seconds(stage, op)
            assert np.isfinite(seconds), f"{op.name} of stage {stage} takes {seconds} s"
            assert seconds >= 0, f"{op.name} of stage {stage} takes {seconds} s"

    def test_draws_have_a_time_for_every_action(self) -> None:
        draws = self.make(3).draw(ITERATION, MICROBATCHES, SEED)
        assert draws.shape == (3, len(ACTION_OPS), MICROBATCHES)
        assert np.all(np.isfinite(draws))
        assert np.all(draws >= 0)

    def test_draws_have_the_expected_mean(self) -> None:
        model = self.make(2)
        means = model.draw(ITERATION, 4000, SEED).mean(axis=2)
        for stage, op in product(range(2), ACTION_OPS):
            expected = model.seconds(stage, op)
            assert abs(means[stage, op] - expected) <= self.mean_tolerance * expected, (stage, op.name)

    def test_draws_repeat_themselves(self) -> None:
        model = self.make(3)
        first = np.array(model.draw(ITERATION, MICROBATCHES, SEED))
        model.draw(0, 2 * MICROBATCHES, SEED + 1)
        assert np.array_equal(model.draw(ITERATION, MICROBATCHES, SEED), first)
        assert np.array_equal(self.make(3).draw(ITERATION, MICROBATCHES, SEED), first)

    def test_more_microbatches_leave_the_draws_of_the_first(self) -> None:
        model = self.make(3)
        few, many = (model.draw(ITERATION, count, SEED) for count in (MICROBATCHES, 5 * MICROBATCHES))
        assert np.array_equal(few, many[:, :, :MICROBATCHES])

    def test_messages_go_to_neighbouring_stages_only(self) -> None:
        model = self.make(3)
        for op in ACTION_OPS:
            assert all(model.message_bytes(stage, op) >= 0 for stage in range(3))
        assert model.message_bytes(2, Op.F) == 0, "there is no stage after the last"
        assert model.message_bytes(0, Op.B) == model.message_bytes(0, Op.I) == 0, "there is no stage before the first"
        assert all(model.message_bytes(stage, Op.W) == 0 for stage in range(3)), "W sends nothing"
        for stage in (1, 2):
            assert model.message_bytes(stage, Op.B) == model.message_bytes(stage, Op.I), "B and I send the same"

    def test_memory_is_not_negative(self) -> None:
        model = self.make(3)
        for stage in range(3):
            assert min(astuple(model.memory(stage))) >= 0

    def test_the_end_of_an_iteration_repeats_itself(self) -> None:
        model = self.make(3)
        assert model.step(ITERATION, SEED) == model.step(ITERATION, SEED)
