"""Start a research folder: splits with digests, copies of what the loop may read, and the baseline's figures."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hops.files import atomic_write
from hops.research.dataset import digests_of, replace_run, write_sealed, write_split
from hops.research.errors import ResearchError
from hops.research.folder import Folder
from hops.research.git import Git, remove_tree
from hops.research.journal import Baseline, today
from hops.research.measure import measure
from hops.research.settings import Data, Settings, write_settings


def initialise(root: Path, settings: Settings, *, what: str = "the model as committed") -> Folder:
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


def _fill(folder: Path, settings: Settings) -> None:
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
