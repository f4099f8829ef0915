"""Profiles learned from public tables: what kernels reach alone, then one profile for each framework's whole jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hops.calibrate.device_kernels import device_kernels
from hops.calibrate.kernel_rows import read_kernels
from hops.cost.efficiency import KernelFit
from hops.cost.kernel_profile import KernelProfile, write_kernel_profile
from hops.published.fit import Floats, JobFit, TimedJob, fit_jobs, names_of, predictor, profile_of, timed
from hops.published.fit_memory import USUAL, fit_memory
from hops.published.job import PublishedJob
from hops.published.profiles import GENERAL, PREFIX
from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow, read_rows

MOST = 32  # jobs that a framework is fitted on
DEBUGGING = ("megatron",)  # frameworks whose rows are CI jobs
LEAST = 3  # of each (source, model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One framework's profile, and its errors on jobs that it was fitted on, and on those left out of the fit."""

    name: str
    profile: KernelProfile
    jobs: int
    fitted_pct: float
    left_out_pct: float


def learn(kernels: Path, rows: Path, folder: Path, *, frameworks: Sequence[str] = ()) -> tuple[Learned, ...]:
    """Write `published-FRAMEWORK.yaml` into a folder for every framework among the rows (or those named), and
    `published.yaml` for jobs of others.

    The same files give the same profiles. Needs scipy. Raises UsageError if a file cannot be read.
    """
    fits, errors = device_kernels(read_kernels(kernels))
    known = {f"{each.gpu}/{each.kernel}": asdict(each) for each in errors}
    jobs = jobs_by_framework([row for row in read_rows(rows) if isinstance(row, PublishedRow)])
    found = []
    for name in frameworks or sorted(jobs):
        learned = learn_framework(name, jobs[name], fits)
        report = {**learned.profile.report, "kernels": known}
        write_kernel_profile(replace(learned.profile, report=report), folder / f"{PREFIX}{name}.yaml")
        found.append(learned)
    factors = {each.name: dict(each.profile.report["factors"]) for each in found}
    write_kernel_profile(general(factors, fits), folder / f"{GENERAL}.yaml")
    return tuple(found)


def general(learned: Mapping[str, Mapping[str, float]], kernels: Mapping[str, KernelFit]) -> KernelProfile:
    """The profile of jobs whose framework nobody measured: the mean of the others' factors, by their logarithms.

    `learned`: factors by framework. Those of CI jobs under debugging settings are no framework's habit, and left out.
    """
    found: dict[str, list[float]] = {}
    for framework, factors in learned.items():
        if framework not in DEBUGGING:
            for name, factor in factors.items():
                found.setdefault(name, []).append(float(np.log(factor)))
    values = {name: float(np.mean(logs)) for name, logs in sorted(found.items())}
    of = ", ".join(sorted(set(learned) - set(DEBUGGING)))
    return replace(profile_of(values, kernels, USUAL), learned={"mean of the profiles of": of})


def jobs_by_framework(rows: Sequence[PublishedRow]) -> dict[str, list[PublishedJob]]:
    """The rows that are jobs, by the framework of their source."""
    found: dict[str, list[PublishedJob]] = {}
    for row in rows:
        try:
            job = PublishedJob.of(row)
        except RowRefusedError:
            continue
        found.setdefault(job.software.full_name, []).append(job)
    return found


def learn_framework(name: str, jobs: Sequence[PublishedJob], kernels: Mapping[str, KernelFit]) -> Learned:
    """Fit one framework."""
    some = sample(timed(jobs))
    transients, runtime = fit_memory(_weighed(jobs))
    with TemporaryDirectory() as folder:
        fit = fit_jobs(some, predictor(kernels, Path(folder)), names_of(some))
    profile = replace(profile_of(fit.values, kernels, transients, runtime), learned=_sources(jobs), report=_report(fit))
    return Learned(
        name=name,
        profile=profile,
        jobs=len(some),
        fitted_pct=_mape_pct(fit.residuals),
        left_out_pct=_mape_pct(fit.left_out),
    )


def sample(jobs: Sequence[TimedJob]) -> list[TimedJob]:
    """About MOST of the jobs, as many of each group, spread over each."""
    groups: dict[str, list[TimedJob]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    each = max(LEAST, MOST // max(1, len(groups)))
    found: list[TimedJob] = []
    for name in sorted(groups):
        members = groups[name]
        found += [members[place] for place in sorted({*np.linspace(0, len(members) - 1, each).astype(int).tolist()})]
    return found[:: max(1, len(found) // MOST)]


def _weighed(jobs: Sequence[PublishedJob]) -> list[PublishedJob]:
    weighed = [job for job in jobs if job.row.memory_gib is not None]
    step = max(1, len(weighed) // (MOST + MOST // 2))
    return weighed[::step]


def _sources(jobs: Sequence[PublishedJob]) -> dict[str, str]:
    """Who was learned from: models by source."""
    models: dict[str, set[str]] = {}
    for job in jobs:
        models.setdefault(job.row.source, set()).add(job.row.model)
    many = 8
    return {
        source: ", ".join(sorted(names)) if len(names) <= many else f"{len(names)} models"
        for source, names in sorted(models.items())
    }


def _report(fit: JobFit) -> dict[str, object]:
    return {
        "factors": {name: float(np.exp(value)) for name, value in fit.values.items() if value != 0.0},
        "time_mape_pct": _mape_pct(fit.residuals),
        "time_mape_left_out_pct": _mape_pct(fit.left_out),
    }


def _mape_pct(residuals: Floats) -> float:
    sound = residuals[np.isfinite(residuals)]
    return float(100 * np.mean(np.abs(np.expm1(sound)))) if len(sound) else 0.0
