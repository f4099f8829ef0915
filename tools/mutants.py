"""Breaks the core on purpose, one small change at a time, and counts the changes that no test notices.

    python tools/mutants.py [--sample 200] [--seed 0] [--rooms program timing ...] [--jobs 2] [--json]    (make mutants)

Mutants are those of Cosmic Ray's operators. Each is a copy of the sources with one change; the tests of its room run
against it until the first fails. A mutant that no test of its room notices survives, and is printed with its change.
Rooms stand for the tests beside them: what other rooms' tests would notice counts as survived.
"""

import argparse
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parent.parent
TESTS = {
    "program": ("tests/schedules", "tests/program"),
    "timing": ("tests/timing", "tests/schedules", "tests/search"),
    "engine": ("tests/engine",),
    "cost": ("tests/cost", "tests/build"),
    "metrics": ("tests/metrics",),
}
LEFT_OUT = ("NumberReplacer", "RemoveDecorator", "Variable")  # messages, registries, and what needs to be told more
LIMIT_S = 240.0  # a mutant that runs for ever is noticed, too


class Mutant(NamedTuple):
    """A change of one file."""

    path: Path
    operator: str
    text: str

    def change(self) -> str:
        """The lines that differ."""
        before = self.path.read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def main() -> int:
    """Exit with 1 if fewer are noticed than asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--least", type=float, default=85.0, help="per cent that have to be noticed")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    mutants = drawn(asked.sample, asked.seed, asked.rooms)
    began = time.monotonic()
    with ThreadPoolExecutor(asked.jobs) as pool:
        noticed = []
        for mutant, found in zip(mutants, pool.map(is_noticed, mutants), strict=True):
            noticed.append(found)
            word = "noticed" if found else "SURVIVED"
            print(
                f"{len(noticed)} of {len(mutants)}: {word} {mutant.path.relative_to(ROOT)}", file=sys.stderr, flush=True
            )
    survivors = [mutant for mutant, found in zip(mutants, noticed, strict=True) if not found]
    share = 100 * sum(noticed) / len(mutants)
    if asked.json:
        found = [
            {"path": str(m.path.relative_to(ROOT)), "operator": m.operator, "change": m.change()} for m in survivors
        ]
        took = round(time.monotonic() - began, 1)
        print(
            json.dumps({"mutants": len(mutants), "noticed_pct": share, "seconds": took, "survivors": found}, indent=2)
        )
    else:
        for mutant in survivors:
            print(f"{mutant.path.relative_to(ROOT)}: {mutant.operator}\n{mutant.change()}\n")
        print(f"{sum(noticed)} of {len(mutants)} mutants noticed, {share:.1f} %")
    return int(share < asked.least)


def drawn(number: int, seed: int, rooms: list[str]) -> list[Mutant]:
    """A random sample, the same for the same seed: a line of the core by chance, then an operator that changes it."""
    rng = random.Random(seed)  # noqa: S311 (draws mutants)
    files = [
        path for room in rooms for path in sorted((ROOT / "src/hops" / room).glob("*.py")) if path.stem != "__init__"
    ]
    lengths = [len(path.read_text(encoding="utf-8")) for path in files]
    operators = [name for name in sorted(operator_names()) if not any(part in name for part in LEFT_OUT)]
    found: dict[str, Mutant] = {}
    while len(found) < number:
        path, operator = rng.choices(files, lengths)[0], rng.choice(operators)
        places = how_many(path, operator)
        if places:
            text = mutate_code(path.read_text(encoding="utf-8"), get_operator(operator)(), rng.randrange(places))
            if text is not None:
                found[f"{path} {text}"] = Mutant(path, operator, text)
    return list(found.values())


@cache
def how_many(path: Path, operator: str) -> int:
    """In how many places of a file an operator changes something."""
    source = path.read_text(encoding="utf-8")
    low, high = 0, 1
    while mutate_code(source, get_operator(operator)(), high - 1) is not None:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        if mutate_code(source, get_operator(operator)(), middle - 1) is None:
            high = middle
        else:
            low = middle
    return low


def is_noticed(mutant: Mutant) -> bool:
    """Whether a test of its room fails (or never ends)."""
    room = mutant.path.relative_to(ROOT / "src/hops").parts[0]
    tests = [name for name in TESTS[room] if (ROOT / name).is_dir()]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / mutant.path.relative_to(ROOT / "src")).write_text(mutant.text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        paths = os.pathsep.join([str(source), str(ROOT / "tests")])
        environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}  # compiling takes longer than tests
        try:
            ran = subprocess.run(  # noqa: S603 (our own tests)
                command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        return ran.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
