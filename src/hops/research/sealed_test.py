"""Open the sealed test split once, on the record: the count goes up first, and only suite figures come out."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hops.errors import ResearchError
from hops.research.dataset import digests_of
from hops.research.folder import Folder
from hops.research.journal import Tested, TestOpened, today
from hops.research.measure import measure
from hops.research.seal import readable
from hops.research.states import NothingUnderWay


def times_opened(folder: Folder) -> int:
    """How often the test split has been opened."""
    return sum(isinstance(each, TestOpened) for each in folder.journal.entries())


def run_sealed_test(folder: Folder, source: Path | None = None) -> Tested:
    """Score HEAD on the test split and record the suite figures; per-run figures are never shown nor kept.

    Args:
        folder: the research folder.
        source: where the test runs are now, if they were moved since `init`.

    Raises ResearchError if there is no test split, it cannot be read, or its content is not what was sealed. Once its
    runs are read, the opening counts, whatever comes of it.
    """
    seal = folder.seal()
    if seal is None:
        raise ResearchError("this dataset has no test split; seal one with: hops research init --test RUNS")
    runs = source or seal.folder
    if not readable(runs):
        raise ResearchError(
            f"the test split cannot be read in {runs}\n"
            "fix: run this as a user who may, or name where it is now with --from"
        )
    with folder.lock():
        state = folder.state()
        if not isinstance(state, NothingUnderWay):
            raise ResearchError(f"attempt {state.attempt} is still open; finish it before testing")
        opened = TestOpened(date=today(), count=times_opened(folder) + 1, commit=folder.git.head())
        folder.journal.append(opened)
        if tuple(sorted(digests_of(runs).values())) != seal.digests:
            raise ResearchError(f"the runs in {runs} are not the ones that were sealed; put the originals back")
        figures = _measure(folder, runs, opened.commit)
        tested = Tested(
            date=opened.date, count=opened.count, commit=opened.commit, runs=len(seal.digests), figures=figures
        )
        folder.journal.append(tested)
    return tested


def _measure(folder: Folder, runs: Path, commit: str) -> Mapping[str, float | None]:
    folder.git.add_worktree(folder.check_tree, commit)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            train = folder.split("train").copy
            measured = measure(folder, runs, train, Path(scratch) / "report.json", Path(scratch) / "output.txt")
    finally:
        folder.git.remove_worktrees(folder.check_tree)
    if measured.scores is None:
        raise ResearchError(
            "the evaluation failed on the test split; what it printed is not shown, since it may name runs"
        )
    return measured.scores.figures
