"""Whole commands as users run them: wall and CPU seconds and peak memory of the processes, imports included.

    python -m benchmarks.commands [--before OTHER/src] [--runs 3] [--only NAME] [--validate RUNS] [--json]

`--before` names the sources of an older HOPS; every command then runs with both, in turn. The least of several runs
counts, since a shared machine only ever adds time; each figure has its own least. One run before them is not counted:
it compiles what numba keeps. CPU is of the command and the processes it starts; memory is of the largest of them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SPECS = {
    "small": """\
pipeline:
  schedule: 1f1b
  microbatches: 64
  stage_times: {forward: 10 ms, backward: 20 ms, message: 4 MiB, activation: 64 MiB, weights: 1 GiB}
hardware:
  nodes: [{count: 1, devices: [{type: a100-sxm-80, count: 8}]}]
  interconnect: {bandwidth: 100 Gbit/s, latency: 5 us}
""",
    "large": """\
simulation: {iterations: 1, warmup_iterations: 0}
pipeline:
  schedule: 1f1b
  microbatches: 1024
  stage_times: {forward: 10 ms, backward: 20 ms, message: 4 MiB, activation: 64 MiB, weights: 1 GiB}
hardware:
  nodes: [{count: 8, devices: [{type: a100-sxm-80, count: 8}]}]
  interconnect: {bandwidth: 100 Gbit/s, latency: 5 us}
""",
}
PROFILE = {
    "name": "eight stages",
    "microbatches": 32,
    "forward_ms": [10, 13, 9, 11, 10, 14, 8, 10],
    "input_backward_ms": [11] * 8,
    "weight_backward_ms": [9] * 8,
    "fused_backward_ms": [20] * 8,
    "hop_ms": [1] * 7,
    "activation_bytes": [2] * 8,
    "kept_for_weight_bytes": [1] * 8,
    "memory_bytes": [24] * 8,
}
COMMANDS = {
    "help": ("--help",),
    "run, 8 x 64": ("run", "small.yaml", "--quiet"),
    "run, 64 x 1024": ("run", "large.yaml", "--quiet"),
    "run, 64 x 1024, all outputs": ("run", "large.yaml", "--quiet", "-o", "out"),
    "compare": ("compare", "small.yaml", "--quiet"),
    "plan, 1 s": ("plan", str(ROOT / "examples/plan.yaml"), "--budget", "1s", "--json"),
    "goodput, a month": ("goodput", str(ROOT / "examples/month-16k.yaml"), "--days", "30", "--seeds", "1", "--json"),
    "schedule search, 300 ms": ("schedule", "search", "profile.json", "--json"),
}


class Cost(NamedTuple):
    """What a command took."""

    wall_s: float
    cpu_s: float
    memory_mib: float

    def least(self, other: "Cost") -> "Cost":
        """Of each figure the smaller one."""
        return Cost(*map(min, self, other))


def measure(arguments: Sequence[str], source: Path, folder: Path) -> Cost:
    """Run one command in a folder with one HOPS; raises SystemExit with its words if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(source), "COLUMNS": "80"}
    with tempfile.TemporaryFile() as words:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "hops", *arguments], cwd=folder, env=environment, stdout=words, stderr=words
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            words.seek(0)
            raise SystemExit(f"hops {' '.join(arguments)} ended with {process.returncode}:\n{words.read().decode()}")
    per_mib = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss: bytes there, KiB elsewhere
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / per_mib)


def least(arguments: Sequence[str], sources: Sequence[Path], folder: Path, runs: int) -> list[Cost]:
    """The least of so many runs with each HOPS, in turn."""
    found: list[list[Cost]] = [[] for _ in sources]
    for number in range(runs + 1):
        for costs, source in zip(found, sources, strict=True):
            shutil.rmtree(folder / "out", ignore_errors=True)
            cost = measure(arguments, source, folder)
            if number:
                costs.append(cost)
    return [reduce(Cost.least, costs) for costs in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="SRC", help="sources of an older HOPS, to compare with")
    parser.add_argument("--runs", type=int, default=3, help="how many runs count")
    parser.add_argument("--only", metavar="NAME", default="", help="commands whose name contains this")
    parser.add_argument("--validate", type=Path, metavar="RUNS", help="measured runs: `hops validate` is measured too")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    arguments = parser.parse_args()
    commands = dict(COMMANDS)
    if arguments.validate:
        commands["validate"] = ("validate", str(arguments.validate.resolve()))
    sources = [ROOT / "src", *([arguments.before.resolve()] if arguments.before else [])]
    if not arguments.json:
        head = ("command", "wall s", "CPU s", "MiB", *(("wall before", "CPU before", "MiB before") * bool(sources[1:])))
        print(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for spec, text in SPECS.items():
            (folder / f"{spec}.yaml").write_text(text, encoding="utf-8")
        (folder / "profile.json").write_text(json.dumps(PROFILE), encoding="utf-8")
        for command, words in commands.items():
            if arguments.only not in command:
                continue
            costs = least(words, sources, folder, arguments.runs)
            if not arguments.json:
                cells = [f"{c.wall_s:.2f} | {c.cpu_s:.2f} | {c.memory_mib:.0f}" for c in costs]
                print(f"| {command} | {' | '.join(cells)} |", flush=True)
            named = zip(("after", "before"), costs, strict=False)
            rows.append({"command": command, **{when: cost._asdict() for when, cost in named}})
    if arguments.json:
        print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
