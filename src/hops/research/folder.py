"""A research folder: settings, splits, golden baseline, journal and state, as readable files beside each other."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hops.files import atomic_path
from hops.research.dataset import Split, heal, read_sealed, read_split
from hops.research.errors import ResearchError
from hops.research.git import Git, blob_name
from hops.research.journal import Journal
from hops.research.scores import Scores, read_scores
from hops.research.seal import Seal
from hops.research.settings import Settings, read_settings
from hops.research.states import State, read_state, write_state

PROTECTED = (
    "research.toml",
    "splits/train.txt",
    "splits/diagnostic.txt",
    "splits/test.txt",
    "golden.json",
    "journal.jsonl",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """An opened research folder."""

    root: Path
    settings: Settings
    git: Git

    @classmethod
    def open(cls, root: Path) -> "Folder":
        """Raises ResearchError if it is not a research folder or its settings are wrong."""
        root = root.absolute()
        settings = read_settings(root / "research.toml")
        return cls(root=root, settings=settings, git=Git.containing(root / settings.repository))

    @property
    def journal(self) -> Journal:
        return Journal(self.root / "journal.jsonl")

    @property
    def golden_path(self) -> Path:
        return self.root / "golden.json"

    @property
    def agent_tree(self) -> Path:
        return self.root / "worktrees/agent"

    @property
    def check_tree(self) -> Path:
        return self.root / "worktrees/check"

    def golden(self) -> Scores:
        return read_scores(self.golden_path, self.settings.variant)

    def state(self) -> State:
        return read_state(self.root / "state.json")

    def write(self, state: State) -> None:
        write_state(self.root / "state.json", state)

    def attempt_folder(self, attempt: int) -> Path:
        """Where an attempt's observation, outputs and report lie."""
        return self.root / "attempts" / f"{attempt:04d}"

    def ref(self, attempt: int) -> str:
        """The name under which git keeps an attempt's tree."""
        return f"refs/hops-research/{self.root.name}/{attempt:04d}"

    def split(self, name: str) -> Split:
        """A split that the loop may read: train or diagnostic."""
        source = {"train": self.settings.data.train, "diagnostic": self.settings.data.diagnostic}[name]
        if not source:
            raise ResearchError(f"this dataset has no {name} split; name one with: hops research init --{name} RUNS")
        return Split(
            name=name,
            digests=read_split(self.root / f"splits/{name}.txt"),
            copy=self.root / "data" / name,
            source=Path(source),
        )

    def readable_splits(self) -> list[Split]:
        data = self.settings.data
        return [self.split(name) for name, source in (("train", data.train), ("diagnostic", data.diagnostic)) if source]

    def seal(self) -> Seal | None:
        """The sealed test split; None if the dataset has none."""
        if not self.settings.data.test:
            return None
        return Seal(folder=Path(self.settings.data.test), digests=read_sealed(self.root / "splits/test.txt"))

    def protect(self) -> dict[str, str]:
        """Give git a copy of every file that an agent must leave alone."""
        names = [name for name in PROTECTED if (self.root / name).exists()]
        return dict(zip(names, self.git.store([self.root / name for name in names]), strict=True))

    def heal(self, protected: Mapping[str, str]) -> list[str]:
        """Put protected files and data back to what they were; says in sentences what had been changed."""
        found = []
        for name in PROTECTED:
            path = self.root / name
            if name not in protected:
                if path.exists():
                    path.unlink()
                    found.append(f"{name} had been added")
                continue
            blob = protected[name]
            if not path.is_file() or blob_name(path.read_bytes(), blob) != blob:
                with atomic_path(path) as temporary:
                    temporary.write_bytes(self.git.fetch(blob))
                found.append(f"{name} had been changed")
        return found + [each for split in self.readable_splits() for each in heal(split)]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One command at a time; the lock ends with the process, however it ends."""
        with (self.root / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ResearchError(
                    f"another hops research command works in {self.root}; wait until it ends"
                ) from error
            yield
