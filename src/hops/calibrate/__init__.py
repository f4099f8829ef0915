"""Calibrate on measured runs, and validate predictions of runs never seen."""

from hops.calibrate.calibrate import calibrate
from hops.calibrate.observations import ObservedRun, observe
from hops.calibrate.predict import VARIANTS, predict
from hops.calibrate.score import RunFigures, RunScore, Suite, measured_outcome, simulated_outcome, suite
from hops.calibrate.validate import DESCRIPTIONS, Readers, Validation, cross_validate, run_folders, validate

__all__ = [
    "DESCRIPTIONS",
    "VARIANTS",
    "ObservedRun",
    "Readers",
    "RunFigures",
    "RunScore",
    "Suite",
    "Validation",
    "calibrate",
    "cross_validate",
    "measured_outcome",
    "observe",
    "predict",
    "run_folders",
    "simulated_outcome",
    "suite",
    "validate",
]
