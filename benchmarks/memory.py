"""Peak memory of whole commands, as processes, by size of run: what a machine needs to have.

    python -m benchmarks.memory [--json] [--sizes 8x64,64x1024]

Memory is the largest resident set of the command, NumPy's arrays and numba's code included.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SPEC = """\
simulation: {{iterations: 1}}
pipeline:
  microbatches: {microbatches}
  stage_times: {{forward: 10 ms, backward: 20 ms, message: 4 MiB, activation: 64 MiB, weights: 1 GiB}}
hardware: {{nodes: [{{count: {hosts}, devices: [{{type: h100, count: 8}}]}}], interconnect: infiniband-ndr}}
"""
RANKS_PER_HOST = 8
COMMANDS = {
    "run": ("run", "spec.yaml", "--quiet"),
    "run, all outputs": ("run", "spec.yaml", "--quiet", "-o", "out"),
    "compare two": ("compare", "spec.yaml", "--quiet", "-s", "1f1b,zb_h1"),
}


def peak_mib(folder: Path, arguments: tuple[str, ...]) -> int:
    """Of one command and of what it starts, the largest."""
    code = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'hops', *sys.argv[1:]], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    source = str(Path(__file__).parent.parent / "src")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return int(done.stdout.split()[-1]) // unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--sizes", default="8x64,64x1024", help="ranks x microbatches; ranks in hosts of eight")
    given = parser.parse_args()
    rows = []
    for size in given.sizes.split(","):
        ranks, microbatches = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as place:
            text = SPEC.format(microbatches=microbatches, hosts=ranks // RANKS_PER_HOST)
            (Path(place) / "spec.yaml").write_text(text, encoding="utf-8")
            for name, arguments in COMMANDS.items():
                rows.append({"command": name, "size": size, "peak_mib": peak_mib(Path(place), arguments)})
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(f"{row['command']:<20}{row['size']:>10}{row['peak_mib']:>8} MiB")


if __name__ == "__main__":
    main()
