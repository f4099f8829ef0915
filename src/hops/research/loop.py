"""The calibration loop: attempt after attempt by an agent, and on after a crash where it stopped."""

from collections.abc import Callable
from dataclasses import dataclass

from hops.research.attempt import Agent, finish, take_over
from hops.research.dataset import heal
from hops.research.errors import ResearchError
from hops.research.folder import Folder
from hops.research.journal import Accepted, next_attempt
from hops.research.seal import close
from hops.research.states import Idle, Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many attempts were decided, and how many of them were accepted."""

    attempts: int
    accepted: int


def run_loop(
    folder: Folder, command: str, iterations: int, *, limit_s: float | None = None, tell: Callable[[str], None]
) -> Outcome:
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
        if not isinstance(state, Idle):
            tell(f"going on with attempt {state.attempt}, which was left at {type(state).__name__}")
            finish(folder, take_over(folder, state), agent, tell)
            done = 1
        for _ in range(done, iterations):
            finish(folder, begin(folder), agent, tell)
        decided = folder.journal.entries()[before:]
    return Outcome(attempts=iterations, accepted=sum(isinstance(each, Accepted) for each in decided))


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
