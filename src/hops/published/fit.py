"""Fits a framework's profile on whole jobs: how far kernels, traffic, host and collectives are from what they reach
alone, per kind of device; by Gauss-Newton on the logarithms of step times, cross-validated over (source, model).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hops.calibrate.parameters import Parameter
from hops.cost.efficiency import KernelFit
from hops.cost.kernel_profile import DeviceKernels, KernelProfile, write_kernel_profile
from hops.cost.roofline import Traffic
from hops.errors import HopsError
from hops.hardware.catalog import Catalog
from hops.model.transient import NO_TRANSIENTS, Transients
from hops.published.job import PublishedJob
from hops.published.predict import predict_job
from hops.published.units import measured_seconds

Floats = NDArray[np.float64]
ROUNDS, FOLDS = 2, 5
PULL, SOFT = 0.15, 0.1  # of beliefs; relative errors beyond a tenth count linearly
STEP = 0.1  # of finite differences, in logarithms
CHIPS = {"h200": "h100", "h800": "h100", "gh200": "h100"}
STILL = 1e-3  # a parameter whose slopes are all below this is left alone

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
)
"""Logarithms of factors on what the kernels alone and the counts say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedJob:
    """A job with what was measured of it; jobs of one group are left out together."""

    job: PublishedJob
    seconds: float
    group: str


def timed(jobs: Sequence[PublishedJob]) -> list[TimedJob]:
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
    own = [replace(each, name=f"{each.name}.{name}") for name in families for each in DEVICE_PARAMETERS]
    return [*own, *SHARED_PARAMETERS]


def family(device: str) -> str:
    """Devices of one chip share their factors: `a100-sxm-80` and `a100-pcie-40` are a100; an H200 is an H100."""
    first = device.split("-", maxsplit=1)[0]
    return CHIPS[first] if first in CHIPS else first  # noqa: SIM401


def profile_of(
    values: Mapping[str, float],
    kernels: Mapping[str, KernelFit],
    transients: Transients = NO_TRANSIENTS,
    runtime_bytes: Mapping[str, int] | None = None,
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
            runtime_bytes=0 if runtime_bytes is None or of not in runtime_bytes else runtime_bytes[of],
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
        collectives={name: factor(name) for name in ("tensor", "data", "expert", "context")},
        transients=transients,
    )


Predict = Callable[[Sequence[TimedJob], Mapping[str, float]], Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobFit:
    """A solution, and what it says of jobs that it was not fitted on.

    Attributes:
        values: of the parameters, by name.
        residuals: logarithms of predicted over measured seconds, of every job.
        left_out: the same by a fit without the job's group.
    """

    values: Mapping[str, float]
    residuals: Floats
    left_out: Floats


def predictor(kernels: Mapping[str, KernelFit], folder: Path) -> Predict:
    """Seconds of jobs by the profile of some values; those that cannot be predicted are NaN. Profiles are written into
    the folder, since specs name files.
    """
    number = 0

    def predict(jobs: Sequence[TimedJob], values: Mapping[str, float]) -> Floats:
        nonlocal number
        path = folder / f"{number}.yaml"
        number += 1
        write_kernel_profile(profile_of(values, kernels), path)
        seconds: dict[str, float] = {}  # jobs that were measured more than once are run once
        documents = [str(each.job.document(str(path))) for each in jobs]
        for each, document in zip(jobs, documents, strict=True):
            if document not in seconds:
                try:
                    seconds[document] = predict_job(each.job, str(path)).seconds
                except HopsError:
                    seconds[document] = np.nan
        return np.array([seconds[document] for document in documents])

    return predict


def fit_jobs(jobs: Sequence[TimedJob], predict: Predict, parameters: Sequence[Parameter]) -> JobFit:
    """Gauss-Newton with beliefs: slopes by finite differences once a round, robust steps in between.

    Every fold of groups is then fitted along the last slopes, and predicted anew.
    """
    measured = np.log([each.seconds for each in jobs])

    def residuals(some: Sequence[int], x: Floats) -> Floats:
        values = dict(zip([each.name for each in parameters], x.tolist(), strict=True))
        return np.asarray(np.log(predict([jobs[place] for place in some], values)) - measured[list(some)])

    every = list(range(len(jobs)))
    x = np.array([each.start for each in parameters])
    r = residuals(every, x)
    sound = [place for place in every if np.isfinite(r[place])]
    moving = list(range(len(parameters)))  # those that move any job
    slopes = np.zeros((len(sound), len(parameters)))
    for _ in range(ROUNDS):
        slopes = _slopes(sound, x, r[sound], residuals, parameters, moving)
        moving = [place for place in moving if np.abs(slopes[:, place]).max(initial=0.0) > STILL]
        x = _step(slopes, r[sound], x, parameters)
        r = residuals(every, x)
    left_out = np.full(len(jobs), np.nan)
    for fold in _folds(jobs):
        kept = [index for index, place in enumerate(sound) if place not in fold]
        there = [place for place in fold if place in set(sound)]
        if kept and there:
            own = _step(slopes[kept], r[sound][kept], x, parameters)
            left_out[there] = residuals(there, own)
    names = [each.name for each in parameters]
    return JobFit(values=dict(zip(names, x.tolist(), strict=True)), residuals=r, left_out=left_out)


def _slopes(
    sound: Sequence[int],
    x: Floats,
    r: Floats,
    residuals: Callable[[Sequence[int], Floats], Floats],
    parameters: Sequence[Parameter],
    moving: Sequence[int],
) -> Floats:
    """Shape (jobs, parameters); of those that do not move, 0."""
    slopes = np.zeros((len(sound), len(parameters)))
    for place in moving:
        moved = x.copy()
        step = STEP if x[place] + STEP <= parameters[place].high else -STEP
        moved[place] += step
        slopes[:, place] = (residuals(sound, moved) - r) / step
    return np.nan_to_num(slopes)


def _step(slopes: Floats, r: Floats, x: Floats, parameters: Sequence[Parameter]) -> Floats:
    """Where the straight continuation of the residuals is least, with beliefs and bounds (soft L1)."""
    from scipy.optimize import least_squares

    start, belief, low, high = (
        np.array([getattr(each, name) for each in parameters]) for name in ("start", "belief", "low", "high")
    )

    def objective(new: Floats) -> Floats:
        straight = r + slopes @ (new - x)
        return np.concatenate([_soft(straight), PULL * (new - start) / belief])

    inside = np.clip(x, low + 1e-9, high - 1e-9)
    return np.asarray(least_squares(objective, inside, bounds=(low, high)).x)


def _soft(r: Floats) -> Floats:
    """Residuals whose squares grow linearly beyond SOFT."""
    scaled = (r / SOFT) ** 2
    return np.asarray(np.sign(r) * SOFT * np.sqrt(2 * (np.sqrt(1 + scaled) - 1)))


def _folds(jobs: Sequence[TimedJob]) -> list[list[int]]:
    """Five parts of the jobs; those of one (source, model) stay together."""
    groups = sorted({each.group for each in jobs})
    return [
        [place for place, each in enumerate(jobs) if groups.index(each.group) % FOLDS == fold]
        for fold in range(min(FOLDS, len(groups)))
    ]
