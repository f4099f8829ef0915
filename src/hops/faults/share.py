"""Broken from the start and for good, with a probability: stragglers."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from hops.errors import UsageError
from hops.faults.base import FAULT_MODELS, FaultModel, Generators, Window


@FAULT_MODELS.register("share")
@dataclass(frozen=True, slots=True, kw_only=True)
class Share(FaultModel):
    """Each target is hit with probability `probability`, from time 0 on, for ever."""

    probability: float

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise UsageError(f"the share of what is hit must be between 0 and 1, but got {self.probability}")

    def windows(self, generator_of: Generators, horizon_s: float) -> Iterator[Window]:
        if generator_of("hit").random() < self.probability:
            yield 0.0, inf
