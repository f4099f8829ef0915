"""A research folder: settings, splits, golden baseline, journal and state, as readable files beside each other."""

import fcntl
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hops.decode.decode import Where, decode, read_text
from hops.decode.quantities import Number, Several
from hops.errors import ResearchError
from hops.files import atomic_path
from hops.research.dataset import Split, heal, read_sealed, read_split
from hops.research.git import Git, blob_name
from hops.research.journal import Journal
from hops.research.scores import Scores, Tolerances, read_scores
from hops.research.seal import Seal
from hops.research.states import State, read_state, write_state

DEFAULT_EVALUATE = ("{python}", "-m", "hops.research.evaluation", "{runs}", "{train}", "{report}")
DEFAULT_TESTS = ("{python}", "-m", "pytest", "-q", "-x")
DEFAULT_EDITABLE = (
    "src/hops/cost",
    "src/hops/model",
    "src/hops/build/costs.py",
    "src/hops/build/figures.py",
    "src/hops/calibrate/calibrate.py",
    "src/hops/calibrate/fit_compute.py",
    "src/hops/calibrate/fit_communication.py",
    "src/hops/calibrate/calibrate.py",
    "src/hops/calibrate/parameters.py",
)
PLACES = ("{python}", "{runs}", "{train}", "{report}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that each command may take."""

    agent_s: Number = 3600.0
    evaluate_s: Number = 600.0
    tests_s: Number = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Folders of run folders as they were given; the test split's is read by `hops research test` alone."""

    train: str
    diagnostic: str = ""
    test: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchSettings:
    """One research folder's settings; paths in `editable` are relative to the repository's root."""

    repository: str
    data: Data
    variant: str = "calibrated"
    editable: tuple[str, ...] = DEFAULT_EDITABLE
    source: str = "src"
    evaluate: Several[str] = DEFAULT_EVALUATE
    tests: Several[str] = DEFAULT_TESTS
    limits: Limits = Limits()
    gates: Tolerances = field(default_factory=Tolerances)


def write_settings(settings: ResearchSettings) -> str:
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


def read_settings(path: Path) -> ResearchSettings:
    """Read `research.toml`. Raises ResearchError with every key that is wrong, what was got and what was expected."""
    if not path.exists():
        raise ResearchError(
            f"{path} does not exist, so {path.parent} is no research folder\n"
            "fix: name yours with --folder, or make one with: hops research init --train RUNS"
        )
    try:
        document = tomllib.loads(read_text(path, error=ResearchError, expected="settings in TOML"))
    except ValueError as error:
        raise ResearchError(f"{path}: is not TOML: {error}") from error
    return decode(ResearchSettings, document, Where(name=str(path), error=ResearchError))


def _toml(value: str | tuple[str, ...]) -> str:
    """JSON's texts and lists of texts are TOML's, too."""
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)


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
    settings: ResearchSettings
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
