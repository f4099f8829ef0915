"""Writes the commit into what is built, so that `hops --version` can say it; a checkout asks git itself."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "src/hops/commit.txt"


class CommitHook(BuildHookInterface):  # type: ignore[misc]
    """One file that is in the wheel and the sdist, and in no checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected; an editable install has its checkout."""
        path = Path(self.root) / NAME
        if version == "editable" or path.exists():
            return
        commit = _commit(Path(self.root))
        if commit:
            made = Path(self.directory) / "commit.txt"
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(f"{commit}\n", encoding="utf-8")
            target = "hops/commit.txt" if self.target_name == "wheel" else NAME
            build_data["force_include"][str(made)] = target


def _commit(root: Path) -> str:
    """The commit of a checkout; "" where there is none."""
    asked = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
