"""Git as the loop needs it: snapshots of trees, throw-away worktrees, a branch that only moves forward."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hops.errors import ResearchError

# A shell that is itself inside git (a hook, a rebase) must not lend us its repository.
LENT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
FILE_MODES = frozenset({"100644", "100755", "000000"})  # the last one is a deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One path that differs between two trees; `mode` is git's, 000000 if the path is gone."""

    path: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The repository whose main worktree is `root`. Hooks do not run. Raises ResearchError with what git said."""

    root: Path

    @classmethod
    def containing(cls, folder: Path) -> "Git":
        """The repository that `folder` lies in."""
        return cls(root=Path(Git(root=folder).run("rev-parse", "--show-toplevel")))

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """What `git ARGUMENTS` prints, without the last line end."""
        command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
        clean = {key: value for key, value in os.environ.items() if key not in LENT}
        try:
            ran = subprocess.run(  # noqa: S603
                command, cwd=self.root, env={**clean, **(env or {})}, capture_output=True, check=False
            )
        except OSError as error:
            what = f"cannot be started: {error.strerror}" if self.root.is_dir() else f"has no folder {self.root}"
            raise ResearchError(f"git {what}; hops research keeps its trees with it") from error
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}"
            raise ResearchError(f"git {' '.join(arguments)} failed in {self.root}\n{said}")
        return ran.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def head(self) -> str:
        return self.run("rev-parse", "--verify", "HEAD^{commit}")

    def tree_of(self, commit: str) -> str:
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}")

    def snapshot(self, worktree: Path, base: str) -> str:
        """The tree object of all that lies in `worktree` and is not ignored; neither its index nor its .git matter."""
        with tempfile.TemporaryDirectory() as scratch:
            env = {
                "GIT_DIR": self.run("rev-parse", "--absolute-git-dir"),
                "GIT_WORK_TREE": str(worktree),
                "GIT_INDEX_FILE": str(Path(scratch) / "index"),
            }
            inside = Git(root=worktree)
            inside.run("read-tree", base, env=env)
            inside.run("-c", "advice.addEmbeddedRepo=false", "add", "--all", env=env)
            return inside.run("write-tree", env=env)

    def commit(self, tree: str, parent: str, message: str) -> str:
        """A commit of `tree` on `parent`, on no branch."""
        return self.run("commit-tree", tree, "-p", parent, "-m", message)

    def keep(self, ref: str, commit: str) -> None:
        """Hold a commit under a name, so that git never collects it."""
        self.run("update-ref", ref, commit)

    def changes(self, base: str, tree: str) -> tuple[FileChange, ...]:
        """Every path that differs, in order of path."""
        fields = self.run("diff-tree", "-r", "--raw", "-z", "--no-renames", base, tree).split("\0")[:-1]
        return tuple(
            FileChange(path=path, mode=raw.split()[1]) for raw, path in zip(fields[::2], fields[1::2], strict=True)
        )

    def add_worktree(self, path: Path, commit: str) -> None:
        """A fresh checkout of `commit` at `path`, whatever lay there before."""
        remove_tree(path)
        self.run("worktree", "add", "--detach", "--force", "--quiet", str(path), commit)

    def remove_worktrees(self, *paths: Path) -> None:
        """Remove checkouts and what git remembers of them, even if half of one is gone."""
        for path in paths:
            remove_tree(path)
        self.run("worktree", "prune")

    def advance(self, base: str, commit: str) -> bool:
        """Move the current branch from `base` to `commit`; False if it has gone elsewhere from `base`.

        If the files are as in `commit` already (somebody worked in this tree), only branch and index move. Otherwise it
        is `git merge --ff-only`, which refuses to overwrite what is not committed. Twice is as good as once.
        """
        head = self.head()
        if self.run("merge-base", commit, head) == commit:
            return True
        if head != base:
            return False
        if self.snapshot(self.root, base) == self.tree_of(commit):
            self.run("reset", "--mixed", "--quiet", commit)
        else:
            self.run("merge", "--ff-only", "--quiet", commit)
        return True

    def restore(self, commit: str) -> None:
        """Make the tree as in `commit`; what is not ignored and not in it is removed."""
        self.run("reset", "--hard", "--quiet", commit)
        self.run("clean", "-d", "--force", "--force", "--quiet")

    def is_clean(self) -> bool:
        """Whether no file differs from HEAD or is untracked."""
        return not self.run("status", "--porcelain", "--untracked-files=normal")

    def store(self, paths: Sequence[Path]) -> list[str]:
        """Keep the bytes of files as blobs; gives their names."""
        return self.run("hash-object", "-w", "--no-filters", "--", *map(str, paths)).splitlines()

    def fetch(self, blob: str) -> bytes:
        """The bytes of a blob."""
        ran = subprocess.run(["git", "cat-file", "blob", blob], cwd=self.root, capture_output=True, check=False)  # noqa: S603, S607
        if ran.returncode:
            raise ResearchError(f"git has lost blob {blob}: {ran.stderr.decode(errors='replace').strip()}")
        return ran.stdout


def blob_name(content: bytes, like: str) -> str:
    """The name that git gives these bytes as a blob, in a repository whose names are as long as `like`."""
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it, also folders that were made unwritable."""
    if not path.is_symlink() and path.is_dir():
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o700)
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
