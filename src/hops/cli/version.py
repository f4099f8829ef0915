"""Which HOPS this is: the version, and the commit that it was built from or runs from."""

import subprocess
from importlib.resources import files
from pathlib import Path


def commit() -> str:
    """Twelve letters of the commit, `+` behind them where files have changed since; "" if it is not known."""
    written = files("hops").joinpath("commit.txt")
    if written.is_file():
        return written.read_text(encoding="utf-8").strip()
    root = Path(__file__).parent.parent.parent.parent
    if not (root / ".git").exists():
        return ""
    found = _git(root, "rev-parse", "--short=12", "HEAD")
    return found + "+" if found and _git(root, "status", "--porcelain", "--", "src") else found


def _git(root: Path, *arguments: str) -> str:
    asked = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=5).stdout.strip()  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
