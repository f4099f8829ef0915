"""The distribution of iteration times of one pipeline, and of the slowest of many alike."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = -8.0, 40.0  # knots reach from a probability of 3e-4 to all but 4e-18 of 1
_KNOTS = np.concatenate((np.exp(np.linspace(_LOWEST, 0.0, 100)), np.linspace(1.05, _HIGHEST, 400)))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Quantiles of simulated iteration times (ns): between samples by interpolation, beyond the largest as a normal.

    The slowest of n independent pipelines has the quantile p^(1/n) of one. Up to the largest of S samples that is
    theirs; beyond it the tail of a normal with their standard deviation goes on from it. Samples that are all the same
    give exactly that value.

    Attributes:
        mean_ns: of the samples.
        quantiles_ns: at the probabilities 1 - exp(-knot).
    """

    mean_ns: float
    quantiles_ns: Floats

    @classmethod
    def of(cls, samples_ns: Ints) -> "Spread":
        """From iteration times of at least one iteration."""
        ordered = np.sort(samples_ns).astype(np.float64)
        size = len(ordered)
        probabilities = -np.expm1(-_KNOTS)
        inner = np.interp(probabilities, (np.arange(size) + 0.5) / size, ordered)
        deviation = float(ordered.std(ddof=1)) if size > 1 else 0.0
        if deviation == 0.0:
            return cls(float(ordered[0]), inner)
        last = 1 - 0.5 / size
        beyond = probabilities > last
        normal = NormalDist()
        scores = np.asarray([-normal.inv_cdf(float(np.exp(-knot))) for knot in _KNOTS[beyond]])
        inner[beyond] = ordered[-1] + deviation * (scores - normal.inv_cdf(last))
        return cls(float(ordered.mean()), inner)

    @property
    def steady(self) -> bool:
        """Whether all iterations take the same time."""
        return bool(self.quantiles_ns[0] == self.quantiles_ns[-1])

    def longer(self, factor: float) -> "Spread":
        """The same shape, every time `factor` times as long."""
        return Spread(self.mean_ns * factor, self.quantiles_ns * factor)

    def slowest(self, uniforms: Floats, count: int) -> Floats:
        """Iteration times of the slowest of `count` pipelines, one per uniform draw from (0, 1)."""
        if self.steady:
            return np.full(len(uniforms), self.mean_ns)
        knots = -np.log(-np.expm1(np.log(uniforms) / count))
        found: Floats = np.interp(knots, _KNOTS, self.quantiles_ns)
        return found
