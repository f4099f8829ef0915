"""What every fault model has to do: inherit FaultModelConformance in a test class and give it `make`."""

from abc import ABC, abstractmethod

import numpy as np

from hops.draws import generator
from hops.faults import FaultModel
from hops.faults.base import Window

HORIZONS_S = (10.0, 1_000.0, 100_000.0)
SEEDS = range(5)


class FaultModelConformance(ABC):
    """The tests that every fault model passes. Name the subclass `Test...` so that pytest finds it."""

    @abstractmethod
    def make(self) -> FaultModel:
        """A model, whose faults come some times in 100,000 seconds."""

    def test_breaks_before_the_longest_horizon(self) -> None:
        """Or the other tests would say nothing."""
        assert any(self._windows(HORIZONS_S[-1], seed) for seed in SEEDS), f"no fault in {HORIZONS_S[-1]:g} s"

    def test_windows_are_in_order_and_do_not_overlap(self) -> None:
        for seed in SEEDS:
            free_from = 0.0
            for start, end in self._windows(HORIZONS_S[-1], seed):
                assert free_from <= start <= end, f"({start}, {end}) follows a window that ends at {free_from}"
                free_from = end

    def test_windows_start_before_the_horizon(self) -> None:
        for horizon_s in HORIZONS_S:
            late = [start for start, _ in self._windows(horizon_s, 0) if not 0 <= start < horizon_s]
            assert not late, f"windows start at {late}, expected from 0 on and before {horizon_s:g}"

    def test_the_same_generators_give_the_same_windows(self) -> None:
        assert self._windows(HORIZONS_S[-1], 3) == self._windows(HORIZONS_S[-1], 3)

    def test_a_longer_horizon_moves_nothing(self) -> None:
        for seed in SEEDS:
            whole = self._windows(HORIZONS_S[-1], seed)
            for horizon_s in HORIZONS_S[:-1]:
                few = self._windows(horizon_s, seed)
                assert whole[: len(few)] == few, f"windows before {horizon_s:g} s depend on the horizon"
                assert len(few) == sum(start < horizon_s for start, _ in whole), f"windows before {horizon_s:g} s lack"

    def _windows(self, horizon_s: float, seed: int) -> list[Window]:
        def generator_of(purpose: str) -> np.random.Generator:
            return generator(seed, purpose)

        return list(self.make().windows(generator_of, horizon_s))
