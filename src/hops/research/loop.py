"""The calibration loop: attempt after attempt by an agent, and on after a crash where it stopped."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hops.errors import ResearchError
from hops.files import atomic_write
from hops.research.attempt import Agent, finish, take_over
from hops.research.dataset import digests_of, heal, replace_run, write_sealed, write_split
from hops.research.folder import Data, Folder, ResearchSettings, write_settings
from hops.research.git import Git, remove_tree
from hops.research.journal import Accepted, Baseline, next_attempt, today
from hops.research.measure import measure
from hops.research.seal import close
from hops.research.states import NothingUnderWay, Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEnd:
    """How many attempts were decided, and how many of them were accepted."""

    attempts: int
    accepted: int


def run_loop(
    folder: Folder, command: str, iterations: int, *, limit_s: float | None = None, tell: Callable[[str], None]
) -> LoopEnd:
    """Decide `iterations` attempts; one that an earlier process left open is finished first, and counts.

    Args:
        folder: the research folder.
        command: the agent, run by `sh` in a worktree of its own, its prompt on standard input.
        iterations: how many attempts to decide.
        limit_s: seconds per agent; the settings' if None.
        tell: called with a line about every step.

    Raises ResearchError if the test split can be read, if the main worktree is not clean, or if git refuses.
    """
    agent = Agent(command=command, limit_s=folder.settings.limits.agent_s if limit_s is None else limit_s)
    with folder.lock():
        tell(close(folder.seal()))
        before = len(folder.journal.entries())
        state = folder.state()
        done = 0
        if not isinstance(state, NothingUnderWay):
            tell(f"going on with attempt {state.attempt}, which was left at {type(state).__name__}")
            finish(folder, take_over(folder, state), agent, tell)
            done = 1
        for _ in range(done, iterations):
            finish(folder, begin(folder), agent, tell)
        decided = folder.journal.entries()[before:]
    return LoopEnd(attempts=iterations, accepted=sum(isinstance(each, Accepted) for each in decided))


def begin(folder: Folder) -> Opened:
    """A new attempt; the main worktree must be clean, since an accepted change moves it forward."""
    if not folder.git.is_clean():
        raise ResearchError(
            f"{folder.git.root} has changes that are not committed, and an accepted attempt must move it forward\n"
            "fix: commit them or put them away (git stash), then start again"
        )
    for split in folder.readable_splits():
        heal(split)
    return Opened(attempt=next_attempt(folder.journal.entries()), base=folder.git.head())


def initialise(root: Path, settings: ResearchSettings, *, what: str = "the model as committed") -> Folder:
    """Make a research folder whose settings name the splits' folders; measures HEAD as the golden baseline.

    The folder appears whole or not at all. Raises ResearchError if it exists, if a run is in two splits, or if the
    baseline cannot be evaluated.
    """
    root = root.absolute()
    if root.exists():
        raise ResearchError(f"{root} exists already; name another folder with --folder, or remove it")
    root.parent.mkdir(parents=True, exist_ok=True)
    git = Git.containing(root.parent)
    data = settings.data
    if data.test and git.root in [Path(data.test), *Path(data.test).parents]:
        raise ResearchError(
            f"the test split {data.test} lies inside the repository {git.root}, where the loop works\n"
            "fix: move it elsewhere, best to another machine or to a folder of its own"
        )
    settings = replace(settings, repository=os.path.relpath(git.root, root))
    temporary = root.with_name(f".making-{os.getpid()}-{root.name}")
    try:
        _fill(temporary, settings)
        _baseline(Folder.open(temporary), what)
        temporary.replace(root)
    finally:
        remove_tree(temporary)
        git.run("worktree", "prune")
    return Folder.open(root)


def _fill(folder: Path, settings: ResearchSettings) -> None:
    data = settings.data
    with atomic_write(folder / ".gitignore") as out:
        out.write("# kept by hops research itself\n*\n")
    with atomic_write(folder / "research.toml") as out:
        out.write(write_settings(settings))
    found = {name: digests_of(Path(source)) for name, source in _sources(data)}
    _refuse_overlap(found)
    for name, source in _sources(data):
        if name == "test":
            write_sealed(folder / "splits/test.txt", found[name])
            continue
        write_split(folder / f"splits/{name}.txt", f"{name} split: digest and name of each run", found[name])
        (folder / "data" / name).mkdir(parents=True)
        for run in found[name]:
            replace_run(Path(source) / run, folder / "data" / name / run)


def _sources(data: Data) -> Sequence[tuple[str, str]]:
    named = (("train", data.train), ("diagnostic", data.diagnostic), ("test", data.test))
    return [(name, source) for name, source in named if source]


def _refuse_overlap(splits: dict[str, dict[str, str]]) -> None:
    owner: dict[str, str] = {}
    for split, digests in splits.items():
        for name, value in digests.items():
            if value in owner:
                raise ResearchError(
                    f"{split} run {name} has the same content as {owner[value]}; a run may be in one split only, once"
                )
            owner[value] = f"{split} run {name}" if split != "test" else "another test run"


def _baseline(folder: Folder, what: str) -> None:
    head = folder.git.head()
    folder.git.add_worktree(folder.check_tree, head)
    train = folder.split("train").copy
    measured = measure(folder, train, train, folder.golden_path, folder.root / "attempts/baseline.txt")
    folder.git.remove_worktrees(folder.check_tree)
    if measured.scores is None:
        raise ResearchError(f"the baseline cannot be measured: {measured.fault}")
    folder.journal.append(
        Baseline(
            date=today(),
            what=what,
            measured=f"{len(measured.scores.runs)} train runs, variant {folder.settings.variant}",
            commit=head,
            figures=measured.scores.figures,
        )
    )
