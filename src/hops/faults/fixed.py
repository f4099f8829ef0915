"""Breaks at stated times."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from hops.draws import Distribution
from hops.errors import UsageError
from hops.faults.base import FAULT_MODELS, FaultModel, Generators, Window


@FAULT_MODELS.register("fixed")
@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(FaultModel):
    """Breaks at these times; one that comes before the repair of the last is part of it.

    Attributes:
        at: seconds since the start of training, rising, each >= 0.
        repair: seconds until it works again; None: never.
    """

    at: tuple[float, ...]
    repair: Distribution | None = None

    def __post_init__(self) -> None:
        if list(self.at) != sorted(set(self.at)) or min(self.at, default=0.0) < 0:
            raise UsageError(f"times of faults must rise from 0 on, but got {list(self.at)}; put them in order")

    def windows(self, generator_of: Generators, horizon_s: float) -> Iterator[Window]:
        lengths = [inf] * len(self.at)
        if self.repair is not None:
            lengths = self.repair.sample(generator_of("repair"), len(self.at)).tolist()
        free_from = 0.0
        for start, length in zip(self.at, lengths, strict=True):
            if free_from <= start < horizon_s:
                free_from = start + length
                yield start, free_from
