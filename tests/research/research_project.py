"""A project in miniature: a real git repository whose model is one file, whose runs are one number each."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from dataclasses import replace
from pathlib import Path

from hops.research import Data, Limits, Settings, initialise

PYTHON = (sys.executable, "-I", "-S")

# The model predicts an iteration as floor_ms + slope * layers. It fails if there is no model, as a broken build does.
EVALUATE = """\
import json, sys
from pathlib import Path
runs, train, report = map(Path, sys.argv[1:])
model = json.loads(Path("model/model.json").read_text())
exec(model.get("code", ""), {})
rows = []
for run in sorted(each for each in runs.iterdir() if each.is_dir()):
    true = json.loads((run / "run.json").read_text())
    floor, slope = model["floor_ms"], model["slope_ms"] * true["layers"]
    error = 100 * (true["ms"] / (floor + slope) - 1)
    terms = {"floor": {"predicted_ms": floor, "measured_ms": true["floor_ms"]},
             "layers": {"predicted_ms": slope, "measured_ms": true["ms"] - true["floor_ms"]}}
    rows.append({"run": run.name, "iteration_ms": true["ms"], "groups": {"depth": true["layers"]},
                 "variants": {"calibrated": {"throughput_error_pct": error, "bubble_error_pp": error / 10,
                                             "terms": terms}}})
errors = [abs(row["variants"]["calibrated"]["throughput_error_pct"]) for row in rows]
mean = sum(errors) / len(errors)
figures = {"throughput_mape_pct": mean, "throughput_max_pct": max(errors), "iteration_p50_mape_pct": mean,
           "bubble_mae_pp": mean / 10, "utilization_spearman": 1 - mean / 100, "forward_mape_pct": mean,
           "backward_mape_pct": mean, "latency_mape_pct": None}
report.write_text(json.dumps({"n": len(rows), "variants": {"calibrated": figures}, "runs": rows}))
"""
TESTS = """\
import json, sys
model = json.load(open("model/model.json"))
if model["floor_ms"] < 0:
    sys.exit("a floor cannot be negative")
"""
TRUE = {"floor_ms": 4.0, "slope_ms": 2.0}
FIRST = {"floor_ms": 1.0, "slope_ms": 2.0}
BETTER = {"floor_ms": 3.0, "slope_ms": 2.0}
BEST = dict(TRUE)
WORSE = {"floor_ms": 0.5, "slope_ms": 2.0}


def git(folder, *arguments):
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.removesuffix("\n")


def make_runs(folder, layers):
    for depth in layers:
        run = folder / f"run_{depth}"
        run.mkdir(parents=True)
        ms = TRUE["floor_ms"] + TRUE["slope_ms"] * depth
        (run / "run.json").write_text(json.dumps({"layers": depth, "ms": ms, "floor_ms": TRUE["floor_ms"]}))
    return folder


class Project:
    """The repository, its data, and a research folder in it."""

    def __init__(self, place):
        self.place = place
        self.root = place / "project"
        self.research = self.root / "research"
        self.train = make_runs(place / "runs/train", (1, 2, 4, 8))
        self.diagnostic = make_runs(place / "runs/diagnostic", (3, 5))
        self.sealed = make_runs(place / "vault/sealed", (6, 7, 16))
        (self.root / "model").mkdir(parents=True)
        (self.root / "tests").mkdir()
        git(self.root, "init", "--quiet", "--initial-branch", "main")
        git(self.root, "config", "user.name", "Test")
        git(self.root, "config", "user.email", "test@example.org")
        (self.root / "evaluate.py").write_text(EVALUATE)
        (self.root / "tests/check.py").write_text(TESTS)
        (self.root / ".gitignore").write_text("*.cache\n")
        self.write_model(FIRST)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "-m", "first model")

    def settings(self, **changes):
        settings = Settings(
            repository="..",
            data=Data(train=str(self.train), diagnostic=str(self.diagnostic)),
            editable=("model",),
            evaluate=(*PYTHON, "evaluate.py", "{runs}", "{train}", "{report}"),
            tests=(*PYTHON, "tests/check.py"),
            limits=Limits(agent_s=20.0, evaluate_s=20.0, tests_s=20.0),
        )
        return replace(settings, **changes)

    def start(self, **changes):
        return initialise(self.research, self.settings(**changes))

    def start_sealed(self):
        settings = self.settings()
        return initialise(self.research, replace(settings, data=replace(settings.data, test=str(self.sealed))))

    def write_model(self, model, at=None):
        (Path(at or self.root) / "model/model.json").write_text(json.dumps(model))

    def model(self):
        return json.loads((self.root / "model/model.json").read_text())

    def agent(self, text):
        """A command that runs a shell script in the agent's worktree."""
        path = self.place / f"agent{len(list(self.place.glob('agent*')))}.sh"
        path.write_text(textwrap.dedent(text))
        return f"sh {path}"

    def proposes(self, model, hypothesis="a floor"):
        """An agent that writes a model, and its hypothesis."""
        return self.agent(
            f"""
            printf '%s' '{json.dumps(model)}' > model/model.json
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
