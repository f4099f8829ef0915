"""A draw comes from a distribution fed by a generator that belongs to one purpose.

A generator is made from the run's seed, a purpose and indices (iteration, stage, op ...), so that
switching one part on, or changing the schedule, never moves the draws of another part.
"""

from abc import ABC, abstractmethod
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def generator(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """The generator of one purpose, the same in every process and on every platform.

    Args:
        seed: the run's one seed, >= 0.
        purpose: what it is for, such as `compute` or `message`.
        indices: what within the purpose it is for, each >= 0.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()), *indices))
    return np.random.Generator(np.random.PCG64(sequence))


class Distribution(ABC):
    """A distribution of non-negative times (seconds) or factors.

    Members are frozen and check their parameters when made (UsageError). From generators in the same state, the first
    n of m > n draws are the n draws, so that a longer iteration does not move the draws of a shorter one.
    """

    @property
    @abstractmethod
    def mean(self) -> float:
        """Expected value of one draw."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw `size` values, shape (size,)."""

    @abstractmethod
    def scaled(self, factor: float) -> "Distribution":
        """The distribution of `factor` (> 0) times a draw; from the same generator it draws `factor` times the same."""
