"""Evaluate a commit in a checkout of its own: run the evaluation and test commands there, read the report."""

import sys
from dataclasses import dataclass
from pathlib import Path

from hops.research.errors import ResearchError
from hops.research.folder import Folder
from hops.research.processes import Ended, run_limited
from hops.research.scores import Scores, read_scores
from hops.research.settings import PLACES


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Scores of a commit, or why there are none."""

    scores: Scores | None
    fault: str


def measure(folder: Folder, runs: Path, train: Path, report: Path, output: Path) -> Measured:
    """Run the evaluation command in `folder.check_tree` on a folder of runs; `report` is where its JSON goes.

    What the command prints goes to `output`.
    """
    report.unlink(missing_ok=True)
    report.parent.mkdir(parents=True, exist_ok=True)
    limit_s = folder.settings.limits.evaluate_s
    ended = _run(folder, folder.settings.evaluate, limit_s, output, runs=runs, train=train, report=report)
    if not ended.ok:
        return Measured(scores=None, fault=ended.story("the evaluation", limit_s))
    try:
        return Measured(scores=read_scores(report, folder.settings.variant), fault="")
    except ResearchError as error:
        return Measured(scores=None, fault=f"the evaluation wrote no usable report: {error}")


def run_tests(folder: Folder, output: Path) -> str:
    """Run the test command in `folder.check_tree`; gives why it failed, or nothing."""
    limit_s = folder.settings.limits.tests_s
    ended = _run(folder, folder.settings.tests, limit_s, output)
    return "" if ended.ok else ended.story("the test command", limit_s)


def _run(folder: Folder, command: tuple[str, ...], limit_s: float, output: Path, **paths: Path) -> Ended:
    values = {"{python}": sys.executable, **{f"{{{name}}}": str(path) for name, path in paths.items()}}
    assert set(values) <= set(PLACES)
    output.unlink(missing_ok=True)
    return run_limited(
        [values.get(part, part) for part in command],
        cwd=folder.check_tree,
        limit_s=limit_s,
        output=output,
        env={"PYTHONPATH": str(folder.check_tree / folder.settings.source), "PYTHONDONTWRITEBYTECODE": "1"},
    )
