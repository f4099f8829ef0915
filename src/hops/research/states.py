"""Where an attempt stands, as data on the disk: what a process killed at any instant leaves to its successor."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hops.decode.decode import Where, decode, from_json, read_text, tagged
from hops.errors import ResearchError
from hops.files import atomic_write
from hops.research.journal import Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingUnderWay:
    """Nothing is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An attempt has its number and its base commit."""

    attempt: int
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuns:
    """The agent works in its worktree; `protected` names git's copies of the files that it must leave alone."""

    attempt: int
    base: str
    protected: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The agent has ended; its tree is kept as a commit. `faults` are reasons against it that are known already."""

    attempt: int
    base: str
    protected: Mapping[str, str]
    snapshot: str
    hypothesis: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepting:
    """It passed: the branch moves to `commit`, then the golden baseline, then the journal."""

    attempt: int
    base: str
    commit: str
    hypothesis: str
    before: Figures
    after: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejecting:
    """It did not pass: the journal gets its entry; `in_place` if the main worktree itself must be restored."""

    attempt: int
    base: str
    snapshot: str
    hypothesis: str
    reasons: tuple[str, ...]
    before: Figures
    after: Figures
    in_place: bool


State = NothingUnderWay | Opened | AgentRuns | Submitted | Accepting | Rejecting
Open = Opened | AgentRuns | Submitted | Accepting | Rejecting
KINDS: dict[str, type[State]] = {
    kind.__name__: kind for kind in (NothingUnderWay, Opened, AgentRuns, Submitted, Accepting, Rejecting)
}


def write_state(path: Path, state: State) -> None:
    """Replace the state on the disk, whole or not at all."""
    with atomic_write(path) as out:
        out.write(json.dumps({"step": type(state).__name__, **asdict(state)}, indent=1, allow_nan=False) + "\n")


def read_state(path: Path) -> State:
    """The state on the disk; Idle if there is none. Raises ResearchError if the file is not one of ours."""
    if not path.exists():
        return NothingUnderWay()
    where = Where(name=str(path), error=ResearchError)
    try:
        text = read_text(path, error=ResearchError, expected="a state of hops research")
        kind, rest = tagged(from_json(text, where), "step", KINDS, where)
        return decode(kind, rest, replace(where, text=text))
    except ResearchError as error:
        raise ResearchError(
            f"{error}\nnothing of an attempt is lost: its trees are under refs/hops-research in git. "
            "Remove the file to start the next attempt"
        ) from error
