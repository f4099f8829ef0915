"""A fault model says when one thing breaks and for how long it stays broken; a registry knows the models by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from hops.distributions import Distribution
from hops.errors import UsageError
from hops.registry import Registry

Window = tuple[float, float]  # broken from, until; seconds since the start of training; infinite: never repaired
Generators = Callable[[str], np.random.Generator]


class FaultModel(ABC):
    """When one target (a device, host, NIC, link or group) breaks."""

    @abstractmethod
    def windows(self, generator_of: Generators, horizon_s: float) -> Iterable[Window]:
        """The times at which the target is broken, in order, not overlapping, those that start before the horizon.

        Args:
            generator_of: gives the random generator of a purpose of the model's own, such as `repair`; each belongs to
                this model and target alone. A longer horizon must not move what comes before a shorter one, so draws
                for different purposes come from different generators.
            horizon_s: until when faults are wanted.
        """


FAULT_MODELS: Registry[FaultModel] = Registry(family="fault model", group="hops.faults")


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
