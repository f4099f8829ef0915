"""Fits what a framework holds in memory besides tensors: a search over few choices, by the median error of peaks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hops.cost.kernel_profile import KernelProfile, write_kernel_profile
from hops.errors import HopsError
from hops.model.transient import Transients
from hops.published.fit import Floats, family
from hops.published.job import PublishedJob
from hops.published.predict import GIB, job_bytes

LOGIT_BYTES = (0.0, 2.0, 4.0, 6.0, 8.0)
GATHERED = (0.0, 1.0, 2.0, 4.0)
MOST_RUNTIME = 1 << 30
USUAL = Transients(logit_bytes=2.0, fused_logit_bytes=2.0, whole_gradient=True, gathered_layers=2.0)
"""Where no memory was measured: a copy of the logits' gradient in the element type, a whole gradient of one matrix, and
the layer that runs with the one fetched ahead."""


def fit_memory(jobs: Sequence[PublishedJob]) -> tuple[Transients, Mapping[str, int]]:
    """The framework's habits, and bytes that its libraries hold on each family of devices."""
    weighed = [job for job in jobs if job.row.memory_gib is not None]
    if not weighed:
        return USUAL, {}
    best, found = _error(weighed, USUAL), USUAL
    for name, values in (
        ("fused_logit_bytes", LOGIT_BYTES),
        ("logit_bytes", LOGIT_BYTES),
        ("gathered_layers", GATHERED),
        ("whole_gradient", (False, True)),
    ):
        for value in values:
            tried = replace(found, **{name: value})  # type: ignore[arg-type]
            error = _error(weighed, tried)
            if error < best - 1e-4:
                best, found = error, tried
    return found, _runtime(weighed, _predicted(weighed, found))


def _error(jobs: Sequence[PublishedJob], transients: Transients) -> float:
    """Median and mean of absolute errors together, so that few rows count as well."""
    predicted = _predicted(jobs, transients)
    own = _runtime(jobs, predicted)
    families = [family(job.sizes.device) for job in jobs]
    runtime = np.array([own[name] if name in own else 0 for name in families]) / GIB  # noqa: SIM401
    errors = np.abs(np.log((predicted + runtime) / _measured(jobs)))
    return float(np.nanmedian(errors) + 0.5 * np.nanmean(np.minimum(errors, 0.3)))


def _runtime(jobs: Sequence[PublishedJob], predicted: Floats) -> dict[str, int]:
    """The median of what is left, by family; nothing where too much was predicted already."""
    rest = (_measured(jobs) - predicted) * GIB
    by_family: dict[str, list[float]] = {}
    for job, each in zip(jobs, rest, strict=True):
        if np.isfinite(each):
            by_family.setdefault(family(job.sizes.device), []).append(float(each))
    return {name: int(np.clip(np.median(left), 0, MOST_RUNTIME)) for name, left in by_family.items()}


def _measured(jobs: Sequence[PublishedJob]) -> Floats:
    return np.array([job.row.memory_gib for job in jobs], dtype=np.float64)


def _predicted(jobs: Sequence[PublishedJob], transients: Transients) -> Floats:
    """GiB of the rank that counts; NaN where no spec can say it."""
    found = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "profile.yaml"
        write_kernel_profile(KernelProfile(devices={}, transients=transients), path)
        for job in jobs:
            try:
                found.append(job_bytes(job, str(path)) / GIB)
            except HopsError:
                found.append(np.nan)
    return np.array(found)
