"""Fits a framework's profile on whole jobs: how far kernels, traffic, host and collectives are from what they reach
alone, per kind of device; by Gauss-Newton on the logarithms of step times, cross-validated over (source, model).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from hops.calibrate.parameters import Parameter
from hops.cost.efficiency import KernelFit
from hops.cost.kernel_profile import DeviceKernels, KernelProfile, write_kernel_profile
from hops.cost.roofline import Traffic
from hops.errors import HopsError
from hops.hardware.catalog import Catalog
from hops.published.job import Job
from hops.published.predict import predict_job
from hops.published.units import measured_seconds

Floats = NDArray[np.float64]
ROUNDS, FOLDS = 3, 5
PULL, SOFT = 0.15, 0.1  # of beliefs; relative errors beyond a tenth count linearly
STEP = 0.1  # of finite differences, in logarithms

DEVICE_PARAMETERS = (
    Parameter(name="sustained", start=0.0, low=-1.2, high=0.25, belief=0.3),
    Parameter(name="attention_forward", start=0.0, low=-2.0, high=0.5, belief=0.4),
    Parameter(name="attention_backward", start=0.0, low=-2.0, high=0.5, belief=0.4),
    Parameter(name="memory", start=0.0, low=-1.0, high=0.2, belief=0.3),
    Parameter(name="operation", start=0.0, low=-2.0, high=1.5, belief=0.7),
)
SHARED_PARAMETERS = (
    Parameter(name="elementwise", start=0.0, low=-1.5, high=1.5, belief=0.5),
    Parameter(name="scores", start=0.0, low=-1.5, high=1.0, belief=0.5),
    Parameter(name="logits", start=0.0, low=-1.5, high=1.0, belief=0.5),
    Parameter(name="optimizer", start=0.0, low=-1.5, high=1.5, belief=0.5),
    Parameter(name="tensor", start=0.0, low=-1.5, high=1.5, belief=0.4),
    Parameter(name="data", start=0.0, low=-1.5, high=1.5, belief=0.4),
    Parameter(name="expert", start=0.0, low=-1.5, high=1.5, belief=0.4),
    Parameter(name="context", start=0.0, low=-1.5, high=1.5, belief=0.4),
    Parameter(name="pipeline", start=0.0, low=-1.5, high=1.5, belief=0.4),
)
"""Logarithms of factors on what the kernels alone and the counts say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """A job with what was measured of it; jobs of one group are left out together."""

    job: Job
    seconds: float
    group: str


def timed(jobs: Sequence[Job]) -> list[TimedJob]:
    """The jobs whose step time was measured."""
    found = []
    for job in jobs:
        seconds = measured_seconds(job.row, job)
        if seconds is not None:
            found.append(TimedJob(job=job, seconds=seconds, group=f"{job.row.source}/{job.row.model}"))
    return found


def names_of(jobs: Sequence[TimedJob]) -> list[Parameter]:
    """All parameters: those of each kind of device, by family, and the shared ones."""
    families = sorted({family(each.job.sizes.device) for each in jobs})
    own = [
        replace(each, name=f"{each.name}.{name}")
        for name in families
        for each in DEVICE_PARAMETERS
    ]
    return [*own, *SHARED_PARAMETERS]


def family(device: str) -> str:
    """Devices of one chip share their factors: `a100-sxm-80` and `a100-pcie-40` are a100."""
    return device.split("-")[0]


def profile_of(
    values: Mapping[str, float], kernels: Mapping[str, KernelFit], learned: Mapping[str, str] | None = None
) -> KernelProfile:
    """The profile that the factors make of kernels measured alone. A family without factors keeps those at 1."""
    catalog = Catalog.load()

    def factor(name: str) -> float:
        return float(np.exp(values.get(name, 0.0)))

    devices = {}
    for name, fit in kernels.items():
        of = family(name)
        attention = replace(
            fit.attention,
            forward=fit.attention.forward * factor(f"attention_forward.{of}"),
            backward=fit.attention.backward * factor(f"attention_backward.{of}"),
        )
        devices[name] = DeviceKernels(
            kernels=replace(
                fit,
                attention=attention,
                sustained=factor(f"sustained.{of}"),
                memory=min(1.0, fit.memory * factor(f"memory.{of}")),
            ),
            operation_s=catalog.device(name).operation_s * factor(f"operation.{of}"),
        )
    return KernelProfile(
        devices=devices,
        traffic=Traffic(
            scores_forward=factor("scores"),
            scores_backward=factor("scores"),
            elementwise_forward=factor("elementwise"),
            elementwise_backward=factor("elementwise"),
            logits_forward=factor("logits"),
            logits_backward=factor("logits"),
            optimizer=factor("optimizer"),
        ),
        collectives={name: factor(name) for name in ("tensor", "data", "expert", "context", "pipeline")},
        learned={} if learned is None else learned,
    )
