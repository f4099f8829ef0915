"""Points per second of a sweep, and that a sweep which is killed loses nothing and does nothing twice.

    python -m benchmarks.sweep [--points 10000] [--jobs N] [--json]
    python -m benchmarks.sweep --kills 20 [--points 2000] [--backend ray]

Every point has 8 stages and 64 microbatches with 3 % noise: bandwidth x schedule x partition x seed. Time is counted
from a warm start: the engine is compiled and loaded. `--kills` kills a sweep at so many random times (SIGKILL), starts
it again each time, and compares its table with that of a sweep that was left alone.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hops import __version__
from hops.processes import cores
from hops.sweep.plan import SweepPlan, load_sweep, sweep_from_dict
from hops.sweep.run import run_sweep, table
from hops.sweep.store import Store
from hops.sweep.table import SweepTable

SCHEDULES = ["gpipe", "1f1b", "zb_h1", {"name": "interleaved_1f1b", "chunks": 2}, "zero_bubble"]
BANDWIDTHS = 20
PARTITIONS = ["even", "balanced"]


def sweep_of(points: int) -> dict[str, Any]:
    """At least so many points, as plain data."""
    seeds = max(1, -(-points // (BANDWIDTHS * len(SCHEDULES) * len(PARTITIONS))))
    return {
        "spec": {
            "simulation": {"iterations": 1},
            "pipeline": {
                "model": "gpt2-medium",
                "microbatches": 64,
                "jitter": {"distribution": "lognormal", "mean": 1.0, "std": 0.03},
            },
            "hardware": {
                "nodes": [{"count": 2, "devices": [{"type": "h100", "count": 4}]}],
                "interconnect": {"bandwidth": "25 Gbit/s", "latency": "15 us"},
            },
        },
        "axes": {
            "hardware.interconnect.bandwidth": {
                "from": "10 Gbit/s", "to": "400 Gbit/s", "steps": BANDWIDTHS, "scale": "log",
            },
            "pipeline.schedule": SCHEDULES,
            "pipeline.partition": PARTITIONS,
        },
        "seeds": seeds,
    }  # fmt: skip


def measure(points: int, jobs: int) -> dict[str, float]:
    """Seconds of a sweep in memory."""
    warm = sweep_from_dict({**sweep_of(1), "seeds": 1})
    with Store(":memory:") as store:
        run_sweep(warm, store)
    plan = sweep_from_dict(sweep_of(points))
    before, start = _cpu_s(), time.perf_counter()
    with Store(":memory:") as store:
        found = run_sweep(plan, store, jobs=jobs)
    wall_s, cpu_s = time.perf_counter() - start, _cpu_s() - before
    assert all(row.outcome.status == "ok" for row in found.rows)
    return {"points": len(found), "wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2), "jobs": jobs}


def _cpu_s() -> float:
    """Of this process and of those that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def killed(points: int, jobs: int, kills: int, backend: str, seed: int) -> dict[str, Any]:
    """Kill a sweep again and again, then compare it with one that was left alone."""
    with tempfile.TemporaryDirectory() as folder:
        file, kept = Path(folder) / "sweep.json", Path(folder) / "sweep.sqlite"
        file.write_text(json.dumps(sweep_of(points)), encoding="utf-8")
        command = [sys.executable, "-m", "hops", "sweep", str(file), "--quiet", "--backend", backend]
        command += ["--jobs", str(jobs)] if backend == "processes" else []
        rng, done, before = random.Random(seed), 0, list[int]()
        plan = load_sweep(file)
        while done < kills:
            process = subprocess.Popen(command, start_new_session=True)
            known = before[-1] if before else 0
            while process.poll() is None and _known(plan, kept) == known:  # it has to begin before it can be disturbed
                time.sleep(0.05)
            time.sleep(rng.random())
            if process.poll() is not None:
                break  # it has finished before it could be killed
            process.send_signal(signal.SIGKILL)
            process.wait()
            if backend == "ray":
                os.killpg(process.pid, signal.SIGKILL)
            done += 1
            before.append(_known(plan, kept))
        subprocess.run(command, check=True)
        with Store(kept) as store, Store(":memory:") as other:
            resumed, alone = table(plan, store), run_sweep(plan, other, jobs=jobs)
    return {"kills": done, "points": len(resumed), "equal": _rows(resumed) == _rows(alone), "known_at_kills": before}


def _known(plan: SweepPlan, kept: Path) -> int:
    if not kept.exists():
        return 0
    with Store(kept) as store:
        return len(store.keys(plan.name(__version__)))


def _rows(found: SweepTable) -> list[Any]:
    return [(row.number, row.changes, row.outcome.status, row.outcome.figures) for row in found.rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--kills", type=int, default=0, help="kill the sweep so many times")
    parser.add_argument("--backend", default="processes", help="who works on a sweep that is killed")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is killed")
    given = parser.parse_args()
    if given.kills:
        found: dict[str, Any] = killed(given.points, given.jobs, given.kills, given.backend, given.seed)
    else:
        found = measure(given.points, given.jobs)
    if given.json or given.kills:
        print(json.dumps(found))
    else:
        print(f"{found['points']} points in {found['wall_s']} s ({found['cpu_s']} s CPU) by {found['jobs']} processes")
    if given.kills and not found["equal"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
