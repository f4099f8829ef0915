"""A project in miniature: a real git repository whose model is one file, whose runs are one number each."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import traceback
from dataclasses import replace
from pathlib import Path

from hops.research.folder import Data, Folder, Limits, ResearchSettings
from hops.research.loop import initialise

EVALUATE = (Path(__file__).parent / "evaluate.sh").read_text()
TESTS = "if grep -q untested model/model.txt; then echo a test fails; exit 1; fi\n"
FIRST = "floor_ms 1.0\nslope_ms 2.0\n"
BETTER = "floor_ms 3.0\nslope_ms 2.0\n"
BEST = "floor_ms 4.0\nslope_ms 2.0\n"  # what the runs are made of
WORSE = "floor_ms 0.5\nslope_ms 2.0\n"


def git(folder, *arguments):
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.removesuffix("\n")


def make_runs(folder, layers):
    for depth in layers:
        run = folder / f"run_{depth}"
        run.mkdir(parents=True)
        text = f"run {run.name}\nlayers {depth}\nbase_ms 4.0\nms {4.0 + 2.0 * depth}\n"
        (run / "run.txt").write_text(text)
    return folder


class Project:
    """The repository, its data, and a place for a research folder in it."""

    def __init__(self, place):
        self.place = place
        self.root = place / "project"
        self.research = self.root / "research"
        self.train = place / "runs/train"
        self.diagnostic = place / "runs/diagnostic"
        self.sealed = place / "vault/sealed"

    def make(self):
        """Make it all but the research folder."""
        make_runs(self.train, (1, 2, 4, 8))
        make_runs(self.diagnostic, (3, 5))
        make_runs(self.sealed, (6, 7, 16))
        (self.root / "model").mkdir(parents=True)
        (self.root / "tests").mkdir()
        git(self.root, "init", "--quiet", "--template=", "--initial-branch", "main")
        git(self.root, "config", "user.name", "Test")
        git(self.root, "config", "user.email", "test@example.org")
        (self.root / "evaluate.sh").write_text(EVALUATE)
        (self.root / "tests/check.sh").write_text(TESTS)
        (self.root / ".gitignore").write_text("*.cache\n")
        self.write_model(FIRST)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "-m", "first model")
        return self

    def copy(self, place):
        """The same at another place, research folder and all."""
        copied = Project(place)
        shutil.copytree(self.place, place, dirs_exist_ok=True)
        settings = copied.research / "research.toml"
        if settings.exists():
            settings.write_text(settings.read_text().replace(str(self.place), str(place)))
        return copied

    def settings(self, **changes):
        settings = ResearchSettings(
            repository="..",
            data=Data(train=str(self.train), diagnostic=str(self.diagnostic)),
            editable=("model",),
            evaluate=("sh", "evaluate.sh", "{runs}", "{train}", "{report}"),
            tests=("sh", "tests/check.sh"),
            limits=Limits(agent_s=20.0, evaluate_s=20.0, tests_s=20.0),
        )
        return replace(settings, **changes)

    def start(self, **changes):
        """Its research folder, made unless it was copied."""
        if not self.research.exists():
            initialise(self.research, self.settings(**changes))
        return Folder.open(self.research)

    def start_sealed(self):
        settings = self.settings()
        return initialise(self.research, replace(settings, data=replace(settings.data, test=str(self.sealed))))

    def write_model(self, model):
        (self.root / "model/model.txt").write_text(model)

    def model(self):
        return (self.root / "model/model.txt").read_text()

    def agent(self, text):
        """A command that runs a shell script in the agent's worktree."""
        path = self.place / f"agent{len(list(self.place.glob('agent*')))}.sh"
        path.write_text(textwrap.dedent(text))
        return f"sh {path}"

    def proposes(self, model, hypothesis="a floor"):
        """An agent that writes a model, and its hypothesis."""
        return self.agent(
            f"""
            printf {model!r} > model/model.txt
            echo '{hypothesis}' > "$HOPS_RESEARCH_HYPOTHESIS"
            """
        )

    def fingerprint(self):
        """All that a loop must leave alone unless it accepts: files, branch, status."""
        files = {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not {".git", "research"} & set(path.relative_to(self.root).parts)
        }
        return files, git(self.root, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"), git(self.root, "status", "--short")


def in_a_process(function, place):
    """Run in a child process of its own, which may be killed or give up rights; gives (exit code, printed)."""
    printed = place / "printed.txt"
    child = os.fork()
    if child == 0:
        code = 0
        try:
            with printed.open("w") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                sys.stdout = out
                function()
                out.flush()
        except BaseException:  # noqa: BLE001
            printed.write_text(printed.read_text() + traceback.format_exc())
            code = 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), printed.read_text()


KILLED = -signal.SIGKILL
