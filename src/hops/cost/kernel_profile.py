"""A kernel profile: what kernels reach on devices, fitted on published measurements, as plain data in a file.

A spec names one by `hardware.profile`, as it does a profile of measured run folders (form 1); this is form 2. Devices
that it does not know keep the catalog's figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hops.cost.efficiency import KernelFit
from hops.cost.fitted import catalog_rates
from hops.cost.profile import HardwareProfile, plain, read_profile, write_form
from hops.cost.roofline import DeviceRates, Traffic
from hops.decode.decode import opened, read
from hops.decode.quantities import Instant, Number, Positive
from hops.errors import CatalogError
from hops.hardware.devices import DeviceKind
from hops.model.implementation import HostOperations
from hops.model.transient import NO_TRANSIENTS, Transients

FORMAT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKernels:
    """One kind of device.

    Attributes:
        kernels: what they reach, by shape.
        operation_s: of its host, to dispatch one operation of the framework.
        runtime_bytes: that libraries hold there all the time.
    """

    kernels: KernelFit
    operation_s: Number
    runtime_bytes: Instant = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """All of it.

    Attributes:
        devices: by catalog name.
        traffic: bytes moved over bytes counted, a property of the framework's code.
        cache_speedup: how much faster a pass over a tensor in the cache is.
        collectives: measured over modelled seconds, by the term that a collective belongs to (tensor, data, ...).
        transients: what the framework holds in memory besides tensors.
        learned: what was fitted on, for readers: sources with their rows.
        report: errors of the fit.
    """

    devices: Mapping[str, DeviceKernels]
    traffic: Traffic = field(default_factory=Traffic)
    cache_speedup: Number = 2.0
    collectives: Mapping[str, Positive] = field(default_factory=dict)
    transients: Transients = NO_TRANSIENTS
    learned: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def transients_on(self, device: str) -> Transients:
        """What the framework holds on a device of that catalog name."""
        own = self.devices[device].runtime_bytes if device in self.devices else 0
        return replace(self.transients, runtime_bytes=self.transients.runtime_bytes + own)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfileFile(KernelProfile):
    """A profile with the number of the form that it is written in."""

    format: Literal[2]

    def profile(self) -> KernelProfile:
        """The profile alone."""
        return KernelProfile(**{each.name: getattr(self, each.name) for each in fields(KernelProfile)})


def write_kernel_profile(profile: KernelProfile, path: Path) -> None:
    """Write a profile; the same profile gives the same bytes."""
    write_form({"format": FORMAT, **plain(profile)}, path)


def read_any_profile(path: Path) -> HardwareProfile | KernelProfile:
    """A profile of either form, as its `format` says. Raises CatalogError with all that is wrong."""
    path = Path(path)
    return _read_any(path, path.stat().st_mtime_ns if path.is_file() else 0)


@cache
def _read_any(path: Path, _changed_ns: int) -> HardwareProfile | KernelProfile:
    data, _ = opened(path, error=CatalogError, expected="a profile written by `hops calibrate`")
    if isinstance(data, dict) and data.get("format") == FORMAT:
        return read(
            KernelProfileFile, path, error=CatalogError, expected="a profile written by `hops calibrate`"
        ).profile()
    return read_profile(path)


def kernel_rates(kind: DeviceKind, precision: str, operations: HostOperations, profile: KernelProfile) -> DeviceRates:
    """What a device attains by the profile; by the catalog alone if the profile does not know it."""
    if kind.name not in profile.devices:
        return catalog_rates(kind, precision, operations)
    known = profile.devices[kind.name]
    host = replace(kind, operation_s=known.operation_s) if kind.layer_s is None else kind
    return replace(
        catalog_rates(host, precision, operations),
        kernels=known.kernels,
        memory_efficiency=known.kernels.memory,
        traffic=profile.traffic,
        cache_speedup=profile.cache_speedup,
    )
