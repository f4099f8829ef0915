"""Validation: predict runs from their inputs, then open their traces and score; over folders, by several processes."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hops.build.setup import RunInputs, build
from hops.calibrate.calibrate import digest, folds, scenario
from hops.calibrate.observations import observe
from hops.calibrate.predict import VARIANTS, predict, with_profile
from hops.calibrate.replay import DESCRIPTION, replay
from hops.calibrate.score import RunFigures, RunScore, Suite, measured_outcome, suite
from hops.cost.profile import read_profile, write_profile
from hops.errors import HopsError, UsageError
from hops.processes import on_cores
from hops.trace.trace import Trace

REPLAY = "replay"
DESCRIPTIONS = {**VARIANTS, REPLAY: DESCRIPTION}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """How run folders are read. `inputs` is handed to predictions, `trace` is for scoring alone.

    `warmup`: leading iterations of traces that are left out.
    """

    inputs: Callable[[Path], RunInputs]
    trace: Callable[[Path], Trace]
    warmup: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedRun:
    """A run: scores by variant, the groups it belongs to, and where it is far from what its profile was fitted on.

    `seen`: whether its profile was fitted on runs of the same scenario.
    """

    name: str
    scenario: str
    groups: Mapping[str, str]
    scores: Mapping[str, RunScore]
    warnings: tuple[str, ...] = ()
    seen: bool = False

    @property
    def measured(self) -> RunFigures:
        return next(iter(self.scores.values())).measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """All runs, in the order of their folders.

    Attributes:
        runs: that could be scored, at least one.
        how: what the profile was fitted on, for readers.
        left_out: name and reason of each that could not.
    """

    runs: tuple[ValidatedRun, ...]
    how: str
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(self.runs[0].scores)

    def suite(self, variant: str) -> Suite:
        """Figures of a variant over all runs."""
        return suite([run.scores[variant] for run in self.runs])

    def to_dict(self) -> dict[str, Any]:
        """The validation report: n, variants, runs."""
        return {
            "n": len(self.runs),
            "variants": {name: asdict(self.suite(name)) for name in self.variants},
            "runs": [_run_dict(run) for run in self.runs],
            "left_out": [{"run": name, "reason": reason} for name, reason in self.left_out],
        }


def run_folders(path: Path) -> list[Path]:
    """Run folders below a folder: those with a run.yaml, by name; the folder itself if it is one."""
    if (path / "run.yaml").is_file():
        return [path]
    found = sorted(_below(path))
    if not found:
        raise UsageError(f"{path}: no run folder in it, expected folders with run.yaml, megatron_trace and link_bench")
    return found


def _below(path: Path) -> Iterator[Path]:
    """Folders with a run.yaml below a folder, links to folders followed once."""
    seen: set[str] = set()
    for folder, subfolders, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        if "run.yaml" in files:
            yield Path(folder)


def validate(folders: Sequence[Path], readers: Readers, profile: Path, *, jobs: int = 1) -> Validation:
    """Predict every run with one profile, and score. A run that cannot be read or predicted is left out, and named.

    Raises UsageError if none is left.
    """
    tasks = [(folder, readers, profile, tuple(DESCRIPTIONS)) for folder in folders]
    return _together(on_cores(_validate_run, tasks, jobs), [], how=f"profile {profile.stem}")


def _together(found: Sequence[ValidatedRun | tuple[str, str]], bad: Sequence[tuple[str, str]], how: str) -> Validation:
    runs = tuple(each for each in found if isinstance(each, ValidatedRun))
    left_out = (*bad, *(each for each in found if not isinstance(each, ValidatedRun)))
    if not runs:
        reasons = "\n".join(f"  {name}: {reason}" for name, reason in left_out)
        raise UsageError(f"none of the runs can be scored:\n{reasons}")
    return Validation(runs=runs, how=how, left_out=left_out)


def cross_validate(
    folders: Sequence[Path], readers: Readers, *, number: int, seed: int = 0, jobs: int = 1
) -> Validation:
    """Predict every run by a profile fitted on the runs of other folds; repeats of a scenario are in one fold.

    A run that cannot be read is in no fold, and named. Raises UsageError for fewer than 2 folds.
    """
    if number < 2:
        raise UsageError(f"--folds: got {number}, expected at least 2")
    reasons = on_cores(_why_unreadable, [(folder, readers) for folder in folders], jobs)
    bad = [(folder.name, reason) for folder, reason in zip(folders, reasons, strict=True) if reason]
    folders = [folder for folder, reason in zip(folders, reasons, strict=True) if not reason]
    inputs = [readers.inputs(folder) for folder in folders]
    fold = folds(inputs, number, seed)
    with TemporaryDirectory() as place:
        profiles = {each: Path(place) / f"fold{each}.yaml" for each in sorted(set(fold))}
        others = [
            ([folder for folder, own in zip(folders, fold, strict=True) if own != each], readers, file)
            for each, file in profiles.items()
        ]
        on_cores(_calibrate_fold, others, jobs)
        tasks = [
            (folder, readers, profiles[own], tuple(DESCRIPTIONS)) for folder, own in zip(folders, fold, strict=True)
        ]
        runs = on_cores(_validate_run, tasks, jobs)
    scenarios = len({scenario(each) for each in inputs})
    how = f"{number}-fold cross-validation over {scenarios} scenarios, shuffled with seed {seed}"
    return _together(runs, bad, how)


def _why_unreadable(task: tuple[Path, Readers]) -> str:
    """Why a run cannot be used; empty: it can."""
    folder, readers = task
    try:
        observe(readers.inputs(folder), readers.trace(folder), warmup=readers.warmup)
    except HopsError as error:
        return str(error)
    return ""


def _validate_run(task: tuple[Path, Readers, Path, tuple[str, ...]]) -> ValidatedRun | tuple[str, str]:
    """The scored run, or its name and why it cannot be scored."""
    try:
        return _scored(*task)
    except HopsError as error:
        return task[0].name, str(error)


def _scored(folder: Path, readers: Readers, profile: Path, variants: Sequence[str]) -> ValidatedRun:
    inputs = readers.inputs(folder)
    predicted = {name: predict(inputs, name, profile) for name in variants if name != REPLAY}
    trace = readers.trace(folder)  # opened when all predictions are made
    if REPLAY in variants:
        predicted[REPLAY] = replay(inputs, trace, profile, warmup=readers.warmup)
    measured = measured_outcome(trace, warmup=readers.warmup)
    return ValidatedRun(
        name=inputs.name,
        scenario=scenario(inputs),
        groups=_groups(inputs),
        warnings=build(with_profile(inputs.spec, profile)).warnings,
        seen=digest(inputs) in read_profile(profile).scope.learned,
        scores={
            name: RunScore(name=inputs.name, predicted=each, measured=measured) for name, each in predicted.items()
        },
    )


def _calibrate_fold(task: tuple[list[Path], Readers, Path]) -> None:
    from hops.calibrate.calibrate import calibrate

    folders, readers, file = task
    runs = [observe(readers.inputs(each), readers.trace(each), warmup=readers.warmup) for each in folders]
    write_profile(calibrate(runs), file)


def _groups(inputs: RunInputs) -> dict[str, str]:
    spec = inputs.spec
    kinds = sorted({device.type for host in spec.hardware.hosts() for device in host.devices})
    model = spec.pipeline.model
    assert model is not None
    ranks = len(spec.hardware.ranks())
    return {
        "devices": " + ".join(kinds),
        "depth": f"{ranks} stages",
        "model": f"{model.layers} layers, hidden {model.hidden}, sequence {spec.pipeline.sequence_length}",
    }


def _run_dict(run: ValidatedRun) -> dict[str, Any]:
    measured = run.measured
    return {
        "run": run.name,
        "groups": dict(run.groups),
        "iteration_ms": 1e3 * measured.mean_iteration_s,
        "iteration_p50_ms": 1e3 * measured.p50_iteration_s,
        "throughput_per_s": measured.throughput,
        "bubble": measured.bubble,
        "variants": {name: _score_dict(score) for name, score in run.scores.items()},
    }


def _score_dict(score: RunScore) -> dict[str, Any]:
    predicted = score.predicted
    return {
        "throughput_error_pct": score.throughput_pct,
        "iteration_p50_error_pct": score.p50_pct,
        "bubble_error_pp": score.bubble_pp,
        "utilization_spearman": score.spearman,
        "latency_error_pct": score.latency_pct,
        "forward_error_pct": list(score.forward_pct),
        "backward_error_pct": list(score.backward_pct),
        "iteration_ms": 1e3 * predicted.mean_iteration_s,
        "iteration_p50_ms": 1e3 * predicted.p50_iteration_s,
        "throughput_per_s": predicted.throughput,
        "bubble": predicted.bubble,
        "terms": {
            name: {"predicted_ms": 1e3 * ours, "measured_ms": 1e3 * theirs}
            for name, (ours, theirs) in score.terms.items()
        },
    }


FIGURES = tuple(each.name for each in fields(Suite))
