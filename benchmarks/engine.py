"""Actions per second of build + simulate + trace, and peak memory per action, over five sizes and several cases.

    python -m benchmarks.engine [--json] [--schedules 1f1b,zb_h1] [--cases plain,faults] [--engines compiled]

Every stage costs F = I = W = 1 ms; messages have 0.1 ms latency, overlapped. Cases: `plain`; `nics`: eight ranks share
a host's two 400 Gbit/s NICs (out and in); `jitter`: of every action and message; `faults`: a stop of 5 ms and a slow
device every 20 ms. The best of several runs counts, since a shared machine only ever adds time. Memory is Python's and
NumPy's peak (tracemalloc), in a run of its own. Runs of a row share costs and network, and so what the engine keeps of
them; the program is new each time. `start` rows: the first run of a new process, without and with what an
earlier one compiled.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterable

from hops.cost.base import CostModel
from hops.cost.jittered import Jittered
from hops.cost.table import TableCosts
from hops.distributions import Exponential, LogNormal
from hops.engine.settings import Engine, Faults, RunSettings
from hops.engine.simulate import run_program
from hops.faults.plan import Fault, FaultKind, FaultPlan
from hops.hardware.network import Link, Network, Route
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Trace

SIZES = ((4, 16), (8, 64), (16, 256), (32, 512), (64, 1024))
SCHEDULES = ("1f1b", "interleaved_1f1b", "zb_h1", "zb_v", "dualpipe_v")
CASES = ("plain", "nics", "jitter", "faults")
SECONDS_PER_ROW = 1.0
COLLECT_EVERY_S = 0.1
RANKS_PER_HOST = 8
MS = 1_000_000


def network_of(case: str, ranks: int) -> Network:
    """Latency alone, drawn too, or hosts of eight ranks with two NICs each."""
    if case == "nics":
        hosts = -(-ranks // RANKS_PER_HOST)
        route = {
            (a, b): Route(links=(a // RANKS_PER_HOST, hosts + b // RANKS_PER_HOST), latency_s=1e-5)
            if a // RANKS_PER_HOST != b // RANKS_PER_HOST
            else Route(links=(2 * hosts + a // RANKS_PER_HOST,), latency_s=1e-5)
            for a in range(ranks)
            for b in range(ranks)
            if a != b
        }
        names = [*(f"out{host}" for host in range(hosts)), *(f"in{host}" for host in range(hosts))]
        inside = [Link(name=f"bus{host}", bandwidth=60e9) for host in range(hosts)]
        return Network(links=(*(Link(name=name, bandwidth=50e9) for name in names), *inside), routes=route)
    if case == "jitter":
        pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
        return Network(links=(), routes=dict.fromkeys(pairs, Route(latency_s=1e-4, jitter=Exponential(mean=1e-5))))
    return Network.uniform(ranks, latency_s=1e-4)


def costs_of(case: str, stages: int) -> CostModel:
    costs = TableCosts.uniform(stages, f=1e-3, i=1e-3, w=1e-3, bytes_per_message=1 << 20)
    return Jittered(inner=costs, factors=LogNormal(mean=1.0, std=0.05)) if case == "jitter" else costs


def settings_of(case: str, engine: Engine, ranks: int, microbatches: int) -> RunSettings:
    """Faults all along the run, each on another rank."""
    if case != "faults":
        return RunSettings(engine=engine)
    moments = range(5 * MS, 3 * microbatches * MS, 20 * MS)
    stops = (
        Fault(kind=FaultKind.STOP, target=f"rank{number % ranks}", start_ns=at, end_ns=at + 5 * MS)
        for number, at in enumerate(moments)
    )
    slows = (
        Fault(kind=FaultKind.SLOW, target=f"rank{7 * number % ranks}", start_ns=at, end_ns=at + 30 * MS, factor=1.5)
        for number, at in enumerate(moments)
    )
    return RunSettings(engine=engine, faults=Faults(plan=FaultPlan.of([*stops, *slows])))


class Work:
    """One row's run; `run` is everything that is timed."""

    def __init__(self, schedule: str, case: str, engine: Engine, ranks: int, microbatches: int) -> None:
        self.schedule, self.size = schedule, (ranks, microbatches)
        stages = SCHEDULERS.get(schedule)().shape(ranks, microbatches).num_stages
        self.costs, self.network = costs_of(case, stages), network_of(case, ranks)
        self.settings = settings_of(case, engine, ranks, microbatches)

    def run(self) -> Trace:
        scheduler = SCHEDULERS.get(self.schedule)()
        assert isinstance(scheduler, StaticScheduler)
        shape = scheduler.shape(*self.size)
        scheduler.configure(StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3, hop_s=1e-4))
        return run_program(scheduler.program, self.costs, self.network, self.settings)


def num_actions(trace: Trace) -> int:
    return int((trace.stream == 0).sum())


def best_seconds(work: Work) -> float:
    """The quickest of at least three runs, and of as many as fit into SECONDS_PER_ROW."""
    times: list[float] = []
    collected = -COLLECT_EVERY_S
    while len(times) < 3 or sum(times) < SECONDS_PER_ROW:
        if sum(times) - collected >= COLLECT_EVERY_S:  # it takes longer than a small run
            gc.collect()
            collected = sum(times)
        start = time.perf_counter()
        work.run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(schedule: str, case: str, engine: Engine, ranks: int, microbatches: int) -> dict[str, object]:
    work = Work(schedule, case, engine, ranks, microbatches)
    actions = num_actions(work.run())
    seconds = best_seconds(work)
    tracemalloc.start()
    work.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "schedule": schedule,
        "case": case,
        "engine": engine.value,
        "ranks": ranks,
        "microbatches": microbatches,
        "actions": actions,
        "actions_per_s": round(actions / seconds),
        "bytes_per_action": round(peak / actions),
    }


def starts() -> dict[str, float]:
    """Seconds that the first compiled run takes longer than the second: compiled anew, and from numba's cache."""
    script = (
        "import time\nfrom benchmarks.engine import *\nwork = Work('1f1b', 'plain', Engine.COMPILED, 4, 16)\n"
        "start = time.perf_counter(); work.run(); first = time.perf_counter() - start\n"
        "start = time.perf_counter(); work.run(); print(first - (time.perf_counter() - start))"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", script]
        seconds = [
            float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(2)
        ]
    return {"compiling_s": round(seconds[0], 2), "loading_s": round(seconds[1], 2)}


def show(rows: Iterable[dict[str, object]]) -> None:
    """A table, each row as soon as it is measured."""
    print(
        f"{'schedule':<18}{'case':<8}{'engine':<11}{'P':>4}{'M':>6}{'actions':>9}{'actions/s':>12}{'bytes/action':>14}"
    )
    for row in rows:
        print(
            f"{row['schedule']:<18}{row['case']:<8}{row['engine']:<11}{row['ranks']:>4}{row['microbatches']:>6}"
            f"{row['actions']:>9}{row['actions_per_s']:>12,}{row['bytes_per_action']:>14}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--schedules", default=",".join(SCHEDULES), help="names, separated by commas")
    parser.add_argument("--cases", default=",".join(CASES), help="plain, nics, jitter, faults")
    parser.add_argument("--engines", default="compiled,reference", help="compiled, reference, auto")
    parser.add_argument("--starts", action="store_true", help="measure starts, too")
    arguments = parser.parse_args()
    found = (
        measure(schedule, case, Engine(engine), *size)
        for engine in arguments.engines.split(",")
        for schedule in arguments.schedules.split(",")
        for case in arguments.cases.split(",")
        for size in (SIZES if engine != "reference" else SIZES[:3])
    )
    if not arguments.json:
        show(found)
    rows = list(found)
    start = {"starts": starts()} if arguments.starts else {}
    if arguments.json:
        print(json.dumps({"rows": rows, **start}))
        return
    for name, seconds in start.get("starts", {}).items():
        print(f"{name} {seconds}")


if __name__ == "__main__":
    main()
