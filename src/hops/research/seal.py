"""The sealed test split: before the loop works, it makes sure that it cannot read it, and refuses to work if it can.

The kernel enforces it (also against root, chmod, renaming, ptrace and links within the file system), and it cannot be
undone. Landlock grants by folder and never excludes, so we grant everything beside the way to the hidden folders; what
is created later *directly in a folder above* a hidden one cannot be read either. Source:
https://docs.kernel.org/userspace-api/landlock.html; the three system calls have the same numbers on every architecture.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hops.errors import ResearchError

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1
READ_FILE, READ_DIR, REFER = 1 << 2, 1 << 3, 1 << 13  # REFER: move or link into another folder
NEEDED_VERSION = 2  # the first with REFER; without it no file could be moved between folders at all
PR_SET_NO_NEW_PRIVS = 38


def available() -> bool:
    """Whether this kernel offers what we need."""
    if sys.platform != "linux":
        return False
    return int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, CREATE_RULESET_VERSION)) >= NEEDED_VERSION


def hide(folders: Iterable[Path]) -> None:
    """From now on neither this process nor what it starts can read anything in `folders`.

    Call it before the process has threads. Raises OSError if the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        found = int(libc.syscall(number, *arguments))
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found

    handled = struct.pack("=Q", READ_FILE | READ_DIR | REFER)
    ruleset = call(CREATE_RULESET, handled, len(handled), 0)
    try:
        for path in beside({folder.resolve() for folder in folders}):
            _grant(call, ruleset, path)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs refused")
        call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def beside(hidden: set[Path], top: Path = Path("/")) -> Iterator[Path]:
    """The largest files and folders below `top` that neither are, contain, nor lie in a hidden one.

    Links are left out: what they lead to is granted, or not, where it lies. Of a folder that may be passed but not
    listed, only the way on is known.
    """
    try:
        paths = sorted(top.iterdir())
    except PermissionError:
        paths = sorted(
            {path for path in (*hidden, *(up for each in hidden for up in each.parents)) if path.parent == top}
        )
    for path in paths:
        if path in hidden or path.is_symlink():
            continue
        if any(path in folder.parents for folder in hidden):
            yield from beside(hidden, path)
        else:
            yield path


def _grant(call: "object", ruleset: int, path: Path) -> None:
    assert callable(call)
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile: nothing to grant
    try:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        rights = READ_FILE | READ_DIR | REFER if is_folder else READ_FILE
        call(ADD_RULE, ruleset, RULE_PATH_BENEATH, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)


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
    if available():
        with suppress(OSError):  # whether it has worked is seen below
            hide([seal.folder])
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
