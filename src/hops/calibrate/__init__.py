"""Calibrate on measured runs, and validate predictions of runs never seen."""

from hops.calibrate.calibrate import calibrate
from hops.calibrate.observe import Run, observe
from hops.calibrate.outcome import Outcome, measured_outcome, simulated_outcome
from hops.calibrate.predict import VARIANTS, predict
from hops.calibrate.score import RunScore, Suite, suite
from hops.calibrate.validate import DESCRIPTIONS, Readers, Validation, cross_validate, run_folders, validate

__all__ = [
    "DESCRIPTIONS",
    "VARIANTS",
    "Outcome",
    "Readers",
    "Run",
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
