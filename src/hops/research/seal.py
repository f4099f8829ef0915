"""The sealed test split: before the loop works, it makes sure that it cannot read it, and refuses to work if it can."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hops.research import landlock
from hops.research.errors import ResearchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Where the test runs lie, and digests of what they were when they were sealed (no names)."""

    folder: Path
    digests: tuple[str, ...]


def close(seal: Seal | None) -> str:
    """Make the test split unreadable for this process and all it starts; says in words what keeps it so.

    The folder is not there: nothing can be read. It is there: Linux's Landlock hides it, whoever we are. Without
    Landlock it must be unreadable already (another user's). Raises ResearchError if it can still be read.
    """
    if seal is None:
        return "there is no test split"
    if not _exists(seal.folder):
        return f"the test split is not on this machine (was in {seal.folder})"
    how = "this user has no permission"
    if landlock.available():
        with suppress(OSError):  # whether it has worked is seen below
            landlock.hide([seal.folder])
            how = "hidden from this process and all it starts by Landlock"
    if readable(seal.folder):
        raise ResearchError(
            f"{seal.folder} holds the sealed test split and this process can read it\n"
            "expected: the loop, its agents and its commands cannot\n"
            "fix: move the folder to another machine, or run the loop as a user without permission to read it; "
            "on Linux 5.19 or newer with Landlock it is hidden without that"
        )
    return f"the test split cannot be read: {how}"


def readable(folder: Path) -> bool:
    """Whether the folder can be listed, by trying."""
    try:
        next(folder.iterdir(), None)
    except OSError:
        return False
    return True


def _exists(folder: Path) -> bool:
    try:
        folder.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # something is there that we may not even look at
    return True
