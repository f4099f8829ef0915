"""The default evaluation command: `python -m hops.research.evaluation RUNS TRAIN REPORT`, a validation report as JSON.

If RUNS and TRAIN are the same folder, every run is predicted by a profile fitted on other scenarios (6-fold
cross-validation); otherwise by one fitted on TRAIN. It runs in a checkout of the candidate, so that the candidate's
code is what predicts.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hops.calibrate.calibrate import calibrate
from hops.calibrate.observations import observe
from hops.calibrate.validate import Readers, cross_validate, run_folders, validate
from hops.cost.profile import write_profile
from hops.files import atomic_write
from hops.importers.megatron.run_folder import read_inputs
from hops.importers.megatron.trace import read_run
from hops.trace.trace import Trace

Evaluate = Callable[[Sequence[Path], Sequence[Path] | None], Mapping[str, Any]]

FOLDS = 6
JOBS = 2


def evaluate(runs: Sequence[Path], train: Sequence[Path] | None) -> Mapping[str, Any]:
    """The validation report of run folders, fitted on `train`, or cross-validated if that is None."""
    readers = Readers(inputs=read_inputs, trace=_trace)
    if train is None:
        return cross_validate(runs, readers, number=FOLDS, jobs=JOBS).to_dict()
    with TemporaryDirectory() as place:
        profile = Path(place) / "train.yaml"
        write_profile(calibrate([observe(readers.inputs(each), readers.trace(each)) for each in train]), profile)
        return validate(runs, readers, profile, jobs=JOBS).to_dict()


def main(runs: Path, train: Path, report: Path, evaluate: Evaluate = evaluate) -> None:
    """Evaluate the run folders below `runs` and write the report."""
    fit_on = None if runs.resolve() == train.resolve() else run_folders(train)
    found = evaluate(run_folders(runs), fit_on)
    with atomic_write(report) as out:
        json.dump(found, out, indent=1, allow_nan=False)
        out.write("\n")


def _trace(folder: Path) -> Trace:
    return read_run(folder).trace


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
