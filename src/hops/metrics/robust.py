"""Robust statistics: a middle and a spread that stragglers do not move."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

MAD_TO_SIGMA = 1.4826  # of a normal distribution: 1 / Phi^-1(3/4); Rousseeuw and Croux 1993, section 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """Of `count` values: their median, and the standard deviation that a normal distribution of their MAD has."""

    count: int
    median: float
    spread: float

    @classmethod
    def of(cls, values: ArrayLike) -> "Robust":
        """Of at least one value."""
        array = np.asarray(values, dtype=np.float64)
        median = float(np.median(array))
        spread = MAD_TO_SIGMA * float(np.median(np.abs(array - median)))
        return cls(count=len(array), median=median, spread=spread)

    def outlying(self, *, floor: float) -> float:
        """The value above which one is no noise: 5 spreads above the median, and at least `floor` above it."""
        return self.median + max(OUTLYING_SPREADS * self.spread, floor)


# The median and spread of 17 normal values take one of them for an outlier in 1 of 90 runs (20,000 drawn runs).
OUTLYING_SPREADS = 5.0
