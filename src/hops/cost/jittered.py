"""Jitter: a transform of any cost model's draws, which leaves what is expected alone."""

from dataclasses import dataclass
from math import isclose

import numpy as np

from hops.cost.base import WrappedCosts
from hops.distributions import Distribution, FloatArray, generators
from hops.errors import UsageError
from hops.program.action import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Jittered(WrappedCosts):
    """Another model's costs, each draw of F, I and W times a factor of its own; expected times stay.

    B takes the factors of its I and W, so that I + W = B sample by sample wherever it held before.

    Attributes:
        inner: the model whose draws are multiplied.
        factors: distribution of the factor, with mean 1.
    """

    factors: Distribution

    def __post_init__(self) -> None:
        mean = self.factors.mean
        if not isclose(mean, 1.0, rel_tol=1e-9):
            raise UsageError(f"the mean of jitter factors must be 1, but got {mean!r}; state the noise around 1")

    def draw(self, iteration: int, num_microbatches: int, seed: int) -> FloatArray:
        times = np.array(self.inner.draw(iteration, num_microbatches, seed))
        split = times[:, Op.I] + times[:, Op.W]
        drawn = [(stage, int(op)) for stage in range(self.num_stages) for op in (Op.F, Op.I, Op.W)]
        rngs = generators(seed, "jitter", [(iteration, *each) for each in drawn])
        for each, rng in zip(drawn, rngs, strict=True):
            times[each] *= self.factors.sample(rng, num_microbatches)
        jittered = times[:, Op.I] + times[:, Op.W]
        ratio = np.divide(times[:, Op.B], split, out=np.zeros_like(split), where=split > 0)
        times[:, Op.B] = np.where(split > 0, jittered * ratio, times[:, Op.B])  # exactly I + W where the ratio is 1
        return times
