"""How near to its bound the planner comes on 64 devices of five kinds, and what that takes.

    python -m benchmarks.plan [--budget 3] [--seeds 0,1,2] [--json]

96 layers under 1F1B, 256 and 64 microbatches, everything else open. Each case runs in a process of its own, as `hops
plan` would: CPU and wall seconds are of the whole process, imports included. The first run after an installation
compiles besides (numba keeps the result).
"""

import argparse
import json
import os
import subprocess
import sys
import time

SPEC = """\
simulation: {iterations: 2, warmup_iterations: 1}
pipeline:
  model: {layers: 96, hidden: 4096, heads: 32, vocab: 50304}
  sequence_length: 2048
  microbatches: 256
  schedule: 1f1b
hardware:
  nodes:
    - {name: a, count: 2, devices: [{type: h100, count: 8}]}
    - {name: b, count: 2, devices: [{type: a100, count: 8}]}
    - {name: c, count: 2, devices: [{type: l40s, count: 8}]}
    - {name: d, count: 2, devices: [{type: l4, count: 4}]}
    - {name: e, count: 2, devices: [{type: a10g, count: 4}]}
  interconnect: infiniband-ndr
"""
MICROBATCHES = (256, 64)


def measure(microbatches: int, seed: int, budget_s: float) -> dict[str, object]:
    """One case, in this process."""
    from hops.decode.document import parse
    from hops.planner.planner import plan
    from hops.spec.load import override
    from hops.spec.open import open_spec

    changes = (f"pipeline.microbatches={microbatches}", f"simulation.seed={seed}")
    opened = open_spec(override(parse(SPEC, name="benchmark"), changes))
    report = plan(opened, budget_s=budget_s)
    best = report.plans[0]
    return {
        "microbatches": microbatches,
        "seed": seed,
        "gap_pct": round(100 * best.gap, 3),
        "iteration_ms": round(1e3 * best.seconds, 3),
        "bound_ms": round(report.bound_ms, 3),
        "ranks": len(best.spec.hardware.ranks()),
        "layouts": report.effort.layouts,
        "simulated": report.effort.simulated,
    }


def in_own_process(microbatches: int, seed: int, budget_s: float) -> dict[str, object]:
    """The same, with what the process took."""
    command = [sys.executable, "-m", "benchmarks.plan", "--case", str(microbatches), "--seeds", str(seed)]
    start, before = time.perf_counter(), os.times()
    out = subprocess.run([*command, "--budget", str(budget_s)], check=True, capture_output=True, text=True).stdout
    after = os.times()
    took_s = after.children_user + after.children_system - before.children_user - before.children_system
    row: dict[str, object] = json.loads(out)
    return {**row, "cpu_s": round(took_s, 2), "wall_s": round(time.perf_counter() - start, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds, as of hops plan")
    parser.add_argument("--seeds", default="0,1,2", help="numbers, separated by commas")
    parser.add_argument("--case", type=int, help="one case in this process: its microbatches")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    arguments = parser.parse_args()
    seeds = [int(each) for each in arguments.seeds.split(",")]
    if arguments.case is not None:
        print(json.dumps(measure(arguments.case, seeds[0], arguments.budget)))
        return
    rows = [in_own_process(count, seed, arguments.budget) for count in MICROBATCHES for seed in seeds]
    if arguments.json:
        print(json.dumps({"rows": rows}))
        return
    print("  ".join(f"{name:>12}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value!s:>12}" for value in row.values()))


if __name__ == "__main__":
    main()
