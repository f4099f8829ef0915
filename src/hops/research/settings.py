"""`research.toml`: what may be changed, how it is measured, and what counts as no worse."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hops.research.errors import ResearchError
from hops.research.gates import Tolerances

DEFAULT_EVALUATE = ("{python}", "-m", "hops.research.evaluation", "{runs}", "{train}", "{report}")
DEFAULT_TESTS = ("{python}", "-m", "pytest", "-q", "-x")
DEFAULT_EDITABLE = (
    "src/hops/cost",
    "src/hops/model",
    "src/hops/api/costs.py",
    "src/hops/api/fitted.py",
    "src/hops/calibrate/calibrate.py",
    "src/hops/calibrate/fit_compute.py",
    "src/hops/calibrate/fit_messages.py",
    "src/hops/calibrate/fit_reduce.py",
    "src/hops/calibrate/fit_step.py",
    "src/hops/calibrate/parameters.py",
)
PLACES = ("{python}", "{runs}", "{train}", "{report}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that each command may take."""

    agent_s: float = 3600.0
    evaluate_s: float = 600.0
    tests_s: float = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Folders of run folders as they were given; the test split's is read by `hops research test` alone."""

    train: str
    diagnostic: str = ""
    test: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One research folder's settings; paths in `editable` are relative to the repository's root."""

    repository: str
    data: Data
    variant: str = "calibrated"
    editable: tuple[str, ...] = DEFAULT_EDITABLE
    source: str = "src"
    evaluate: tuple[str, ...] = DEFAULT_EVALUATE
    tests: tuple[str, ...] = DEFAULT_TESTS
    limits: Limits = Limits()
    gates: Tolerances = field(default_factory=Tolerances)


def write_settings(settings: Settings) -> str:
    """The text of `research.toml`, every value written out and explained."""
    data, limits, gates = settings.data, settings.limits, settings.gates
    return f"""\
# What `hops research` may change, how it measures, and what counts as no worse. Read anew by every command.
repository = {_toml(settings.repository)}    # the main worktree, from this folder
variant = {_toml(settings.variant)}    # of the validation report, this one is judged
editable = {_toml(settings.editable)}    # a candidate that changes anything else is rejected
source = {_toml(settings.source)}    # first on PYTHONPATH, from the candidate's root

# {{runs}}: a folder of runs to score; {{train}}: the folder to fit on (the same one: cross-validate); {{report}}: the
# JSON file to write. They run in a checkout of the candidate.
evaluate = {_toml(settings.evaluate)}
tests = {_toml(settings.tests)}

[data]    # where the runs came from; train and diagnostic were copied into data/ here
train = {_toml(data.train)}
diagnostic = {_toml(data.diagnostic)}
test = {_toml(data.test)}    # sealed: see splits/test.txt

[limits]
agent_s = {limits.agent_s}
evaluate_s = {limits.evaluate_s}
tests_s = {limits.tests_s}

[gates]    # by how much a figure may get worse than the golden baseline's
throughput_mape_pct = {gates.throughput_mape_pct}
bubble_mae_pp = {gates.bubble_mae_pp}
utilization_spearman = {gates.utilization_spearman}
run_throughput_pct = {gates.run_throughput_pct}    # of any single run
run_bubble_pp = {gates.run_bubble_pp}
"""


def read_settings(path: Path) -> Settings:
    """Read `research.toml`. Raises ResearchError naming the file, the key, what was got and what was expected."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ResearchError(
            f"{path} does not exist, so {path.parent} is no research folder\n"
            "fix: name yours with --folder, or make one with: hops research init --train RUNS"
        ) from error
    except (OSError, ValueError) as error:
        raise ResearchError(f"{path} cannot be read: {error}") from error
    settings: Settings = _build(Settings, document, str(path))
    for key, command in (("evaluate", settings.evaluate), ("tests", settings.tests)):
        if not command:
            raise ResearchError(f"{path}: {key} is empty, expected a command as a list of texts")
    return settings


def _build(into: Any, document: Mapping[str, Any], where: str) -> Any:
    """A dataclass from a table: no unknown key, no missing one, each of its type."""
    known = {field.name: field for field in fields(into)}
    for key in document:
        if key not in known:
            raise ResearchError(f"{where}: unknown key {key}, expected one of {', '.join(known)}")
    values = {key: _value(known[key].type, value, f"{where}: {key}") for key, value in document.items()}
    try:
        return into(**values)
    except TypeError as error:
        raise ResearchError(f"{where}: {str(error).partition(') ')[2]}") from error


def _value(kind: Any, value: Any, where: str) -> Any:
    if kind in (Data, Limits, Tolerances):
        if not isinstance(value, dict):
            raise ResearchError(f"{where}: got {value!r}, expected a table")
        return _build(kind, value, where)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ResearchError(f"{where}: got {value!r}, expected a number of at least 0")
        return float(value)
    if kind is str:
        if not isinstance(value, str):
            raise ResearchError(f"{where}: got {value!r}, expected a text")
        return value
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ResearchError(f"{where}: got {value!r}, expected a list of texts")
    return tuple(value)


def _toml(value: str | tuple[str, ...]) -> str:
    """JSON's texts and lists of texts are TOML's, too."""
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)
