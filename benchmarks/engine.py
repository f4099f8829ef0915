"""Actions per second of build + simulate + trace, and peak memory per action, over five sizes.

    python -m benchmarks.engine [--json] [--schedules 1f1b,zb_h1]

Every stage costs F = I = W = 1 ms; messages have 0.1 ms latency, overlapped. The best of several runs counts, since a
shared machine only ever adds time. Memory is Python's and NumPy's peak (tracemalloc), in a run of its own.
"""

import argparse
import gc
import json
import time
import tracemalloc

from hops.cost.table import TableCosts
from hops.engine.simulate import run_program
from hops.hardware.network import Network
from hops.schedules.base import SCHEDULERS, StaticScheduler
from hops.timing.stage_costs import StageCosts
from hops.trace.trace import Trace

SIZES = ((4, 16), (8, 64), (16, 256), (32, 512), (64, 1024))
SECONDS_PER_ROW = 2.0


def simulate(schedule: str, ranks: int, microbatches: int) -> Trace:
    """Everything that is timed."""
    scheduler = SCHEDULERS.get(schedule)()
    assert isinstance(scheduler, StaticScheduler)
    profile = StageCosts.uniform(scheduler.shape(ranks, microbatches), f=1e-3, i=1e-3, w=1e-3, hop_s=1e-4)
    scheduler.configure(profile)
    costs = TableCosts.uniform(ranks, f=1e-3, i=1e-3, w=1e-3, bytes_per_message=1 << 20)
    return run_program(scheduler.program, costs, Network.uniform(ranks, latency_s=1e-4))


def num_actions(trace: Trace) -> int:
    return int((trace.stream == 0).sum())


def best_seconds(schedule: str, ranks: int, microbatches: int) -> float:
    """The quickest of at least three runs, and of as many as fit into SECONDS_PER_ROW."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS_PER_ROW:
        gc.collect()
        start = time.perf_counter()
        simulate(schedule, ranks, microbatches)
        times.append(time.perf_counter() - start)
    return min(times)


def measure(schedule: str, ranks: int, microbatches: int) -> dict[str, object]:
    actions = num_actions(simulate(schedule, ranks, microbatches))
    seconds = best_seconds(schedule, ranks, microbatches)
    tracemalloc.start()
    simulate(schedule, ranks, microbatches)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "schedule": schedule,
        "ranks": ranks,
        "microbatches": microbatches,
        "actions": actions,
        "actions_per_s": round(actions / seconds),
        "bytes_per_action": round(peak / actions),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--schedules", default="1f1b,zb_h1,zero_bubble", help="names, separated by commas")
    arguments = parser.parse_args()
    rows = [measure(schedule, *size) for schedule in arguments.schedules.split(",") for size in SIZES]
    if arguments.json:
        print(json.dumps({"rows": rows}))
        return
    print(f"{'schedule':<14}{'P':>4}{'M':>6}{'actions':>9}{'actions/s':>11}{'bytes/action':>14}")
    for row in rows:
        print(
            f"{row['schedule']:<14}{row['ranks']:>4}{row['microbatches']:>6}{row['actions']:>9}"
            f"{row['actions_per_s']:>11,}{row['bytes_per_action']:>14}"
        )


if __name__ == "__main__":
    main()
