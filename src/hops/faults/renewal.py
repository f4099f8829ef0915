"""Breaks and repairs in turn: both times are drawn, so availability tends to MTBF / (MTBF + MTTR)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from hops.draws import Distribution
from hops.errors import UsageError
from hops.faults.base import FAULT_MODELS, FaultModel, Generators, Window

_AT_ONCE = 16  # draws; fixed, so that a longer horizon draws the same and goes on


@FAULT_MODELS.register("renewal")
@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal(FaultModel):
    """An alternating renewal process.

    Attributes:
        between: seconds from the start, or from the last repair, to the next failure: exponential (constant hazard,
            Poisson failures), Weibull, lognormal, empirical, constant ...
        repair: seconds until it works again; None: never.
    """

    between: Distribution
    repair: Distribution | None = None

    def __post_init__(self) -> None:
        if not self.between.mean > 0:
            raise UsageError(f"the mean time between failures must be more than 0, but got {self.between.mean:g} s")

    def windows(self, generator_of: Generators, horizon_s: float) -> Iterator[Window]:
        up = _stream(self.between, generator_of, "between")
        down: Iterator[float] | None = None
        now = next(up)
        while now < horizon_s:
            if self.repair is None:
                yield now, inf
                return
            down = down or _stream(self.repair, generator_of, "repair")
            repaired = now + next(down)
            yield now, repaired
            now = repaired + next(up)


def _stream(distribution: Distribution, generator_of: Generators, purpose: str) -> Iterator[float]:
    rng = generator_of(purpose)
    while True:
        yield from distribution.sample(rng, _AT_ONCE).tolist()
