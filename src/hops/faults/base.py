"""A fault model says when one thing breaks and for how long it stays broken; a registry knows the models by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import numpy as np

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
