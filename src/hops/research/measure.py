"""Evaluate a commit in a checkout of its own: run the evaluation and test commands there, read the report."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hops.errors import ResearchError
from hops.research.folder import PLACES, Folder
from hops.research.scores import Scores, read_scores

SUPERVISOR = Path(__file__).with_name("supervise.py")
TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its exit code (128 + signal if killed), and whether that was our limit's doing."""

    code: int
    timed_out: bool
    output: Path

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def story(self, what: str, limit_s: float) -> str:
        """Why it did not work, with the last lines it printed."""
        how = f"ran longer than {limit_s:g} s and was ended" if self.timed_out else f"ended with exit code {self.code}"
        tail = self.tail()
        return f"{what} {how}" + (f"; its last lines:\n{tail}" if tail else "")

    def tail(self, lines: int = 8) -> str:
        """The last lines of the output, at most TAIL_BYTES."""
        with self.output.open("rb") as file:
            file.seek(max(0, self.output.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-lines:])


def run_limited(
    command: Sequence[str],
    *,
    cwd: Path,
    limit_s: float,
    output: Path,
    env: Mapping[str, str] | None = None,
    stdin: Path = Path(os.devnull),
) -> Ended:
    """Run a command in `cwd` for at most `limit_s` seconds; both its outputs are appended to the file `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.touch()
    supervisor = [sys.executable, "-I", "-S", str(SUPERVISOR), str(stdin), str(output), *command]
    with subprocess.Popen(  # noqa: S603
        supervisor, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        timed_out = False
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            assert process.stdin is not None
            process.stdin.close()  # the supervisor ends what still runs
            process.wait()
    return Ended(code=process.returncode, timed_out=timed_out, output=output)


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
