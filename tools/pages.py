"""Runs what the Markdown pages show, and brings the output in them up to date.

    python tools/pages.py [--check]        (make pages)

In a page, ```yaml NAME is a file, ```python and ```sh are run in the page's own folder with those files and `examples/`
in it, and ```text is an excerpt of the last output: each line is replaced by the next line of the output that begins
with the same word, and a line of dots stands for what is left out. ```text COMMAND runs a command for itself.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from hops.cli.main import main as hops

ROOT = Path(__file__).parent.parent
PAGES = tuple(
    Path(name)
    for name in (
        "README.md",
        "docs/tutorials/first-run.md",
        "docs/how-to/look-at-runs.md",
        "docs/how-to/figures-for-a-paper.md",
        "docs/how-to/work-in-a-notebook.md",
        "docs/how-to/from-a-launch-to-a-better-schedule.md",
    )
)
WIDTH = "100"
BLOCK = re.compile(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


def refreshed(page: Path) -> str:
    """The text of a page with current output. Raises AssertionError where something in it does not run."""
    text = (ROOT / page).read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        patch.dict(os.environ, COLUMNS=WIDTH),
    ):
        shutil.copytree(ROOT / "examples", "examples")
        return BLOCK.sub(_Page(page).block, text)


class _Page:
    def __init__(self, page: Path) -> None:
        self.page = page
        self.output = ""

    def block(self, found: re.Match[str]) -> str:
        language, argument, body = found.groups()
        if language == "yaml":
            Path(argument).write_text(body, encoding="utf-8")
        elif language == "python":
            self.output = self.captured(lambda: exec(body, {}), body)  # noqa: S102 (our own pages)
        elif language == "sh":
            for line in body.splitlines():
                self.command(line)
        elif language == "text":
            if argument:
                self.command(argument)
            return f"```text{' ' * bool(argument)}{argument}\n{self.excerpt(body)}```"
        return found.group()

    def command(self, line: str) -> None:
        arguments = shlex.split(line, comments=True)
        assert arguments[0] == "hops", f"{self.page}: only hops commands are run, got {line!r}"
        with patch.object(sys, "argv", arguments):
            self.output = self.captured(hops, line)

    def captured(self, run: Callable[[], None], what: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = exit_code(run)
        assert not code, f"{self.page}: {what}\n{out.getvalue()}{err.getvalue()}"
        return out.getvalue()

    def excerpt(self, body: str) -> str:
        output = iter(self.output.splitlines())
        return "".join(f"{self.current(line, output)}\n" for line in body.splitlines())

    def current(self, shown: str, output: Iterator[str]) -> str:
        if not shown.strip(" ."):
            return shown
        word = first_word(shown)
        for line in output:
            if first_word(line) == word:
                return line.rstrip()
        raise AssertionError(f"{self.page}: no further line begins with {word!r} in\n{self.output}")


def exit_code(run: Callable[[], None]) -> str | int | None:
    """What a command exits with; None if it just returns."""
    try:
        run()
    except SystemExit as stop:
        return stop.code
    return None


def first_word(line: str) -> str:
    """The first word; a rule under a table's head is one dash, however long."""
    words = line.split(maxsplit=1)
    return words[0].replace("─", "") or "─" if words else ""


def main() -> int:
    """Rewrite the pages, or say which are out of date."""
    outdated = [page for page in PAGES if refreshed(page) != (ROOT / page).read_text(encoding="utf-8")]
    for page in outdated:
        if "--check" not in sys.argv:
            (ROOT / page).write_text(refreshed(page), encoding="utf-8")
        print(f"{page}: {'out of date; run make pages' if '--check' in sys.argv else 'brought up to date'}")
    return int(bool(outdated) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
