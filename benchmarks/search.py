"""Gaps and times of the schedule search: the shared pipelines, the 16 of the original HOPS, two chunks, and jitter.

    python -m benchmarks.search [--facts ../shared/facts] [--budget-ms 300] [--json] [--only pipelines,hetero16,...]

Parts: `pipelines` (gap to the bound, against built-ins), `chunks` (the same pipelines cut in two chunks per rank,
without memory limits and with p activations per rank), `hetero16` (both cost models, three memory limits, seeds 42 to
44), `jitter` (10% noise per action: what `choose` picks against the nominally best built-in, on draws it hasn't seen),
`rates` (what the fixed rates of the budget were measured with). CPU time, since a shared machine only adds wall time.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hops.bounds.lower_bound import bound_of, tails_of
from hops.diagnose.versus import read_hetero16, versus, versus_report
from hops.program.shape import Shape
from hops.schedules.builtins import builtin_programs, search_from_builtins
from hops.search.anneal import Cooling, anneal
from hops.search.robust import Noise, choose, expected_ns
from hops.search.search import iterations_for, judge, warm_up
from hops.search.starts import first_policies
from hops.timing.examples import NamedProfile, read_profiles
from hops.timing.list_schedule import list_schedule, rules_of
from hops.timing.order_rows import OrderRows, blank_rows
from hops.timing.stage_costs import StageCosts, cost_arrays

JITTER = 0.1
HETERO_BUDGET_S = 0.08
HETERO_JITTER = 0.05
CASES = ((False, "none"), (True, "none"), (True, "p"), (True, "1f1b"))


def gaps(profiles: list[NamedProfile], budget_s: float) -> dict[str, Any]:
    """Percent above the bound, percent gained on the best built-in, and CPU milliseconds."""
    found, gains, spent = [], [], []
    for named in profiles:
        start = time.process_time()
        certificate = search_from_builtins(
            named.profile, iterations=iterations_for(budget_s, named.profile)
        ).certificate
        spent.append(1e3 * (time.process_time() - start))
        found.append(100 * certificate.gap)
        built_in = [makespan for makespan in certificate.incumbents_ns.values() if makespan is not None]
        if built_in:
            gains.append(100 * (min(built_in) / certificate.makespan_ns - 1))
    return {
        "instances": len(found),
        "mean_gap_pct": float(np.mean(found)),
        "p95_gap_pct": float(np.percentile(found, 95)),
        "max_gap_pct": max(found),
        "at_the_bound": sum(gap < 1e-4 for gap in found),
        "mean_gain_on_built_ins_pct": float(np.mean(gains)) if gains else None,
        "regressions": sum(gain < 0 for gain in gains),
        "mean_cpu_ms": float(np.mean(spent)),
        "max_cpu_ms": max(spent),
    }


def in_two_chunks(named: NamedProfile, placement: str, memory: str) -> NamedProfile:
    """Every stage cut in two halves, on the same rank; messages between ranks cost what the dearest hop did."""
    old = named.profile
    ranks, size = old.shape.num_ranks, old.shape.num_microbatches
    make = {"v": Shape.v(ranks, num_microbatches=size), "loop": Shape.loop(ranks, num_microbatches=size, chunks=2)}
    rank_of = make[placement].rank_of_stage
    halves = ("forward_s", "input_backward_s", "weight_backward_s", "fused_backward_s")
    sizes = ("activation_bytes", "kept_for_weight_bytes")
    hop = max(old.hop_s)
    new = dataclasses.replace(
        old,
        shape=make[placement],
        **{name: tuple(getattr(old, name)[rank] / 2 for rank in rank_of) for name in halves},
        **{name: tuple(getattr(old, name)[rank] // 2 for rank in rank_of) for name in sizes},
        hop_s=tuple(0.0 if a == b else hop for a, b in pairwise(rank_of)),
        budget_bytes=tuple(None if memory == "none" else ranks * each for each in old.activation_bytes),
    )
    return NamedProfile(name=named.name, profile=new)


def chunks(profiles: list[NamedProfile], budget_s: float) -> Iterator[dict[str, Any]]:
    """Gaps with two chunks, and what two chunks gain over one under the same limits."""
    for placement in ("v", "loop"):
        for memory in ("none", "p"):
            cut = [in_two_chunks(named, placement, memory) for named in profiles]
            one = []
            for named in profiles:
                limits = tuple(
                    None if memory == "none" else named.profile.shape.num_ranks * each
                    for each in named.profile.activation_bytes
                )
                profile = dataclasses.replace(named.profile, budget_bytes=limits)
                one.append(
                    search_from_builtins(profile, iterations=iterations_for(budget_s, profile)).certificate.makespan_ns
                )
            two = [
                search_from_builtins(
                    named.profile, iterations=iterations_for(budget_s, named.profile)
                ).certificate.makespan_ns
                for named in cut
            ]
            gain = 100 * (np.array(one) / np.array(two) - 1)
            row = {"placement": placement, "memory": memory, **gaps(cut, budget_s)}
            yield row | {"mean_gain_over_one_chunk_pct": float(gain.mean())}


def hetero16(path: Path) -> Iterator[dict[str, Any]]:
    for fused_is_sum, memory in CASES:
        profiles = read_hetero16(path, fused_is_sum=fused_is_sum, memory=memory)
        rows = [versus(named, jitter=HETERO_JITTER, budget_s=HETERO_BUDGET_S) for named in profiles]
        yield {
            "fused": "i + w" if fused_is_sum else "as given",
            "memory": memory,
            **gaps(profiles, HETERO_BUDGET_S),
            "against": [versus_report(rows, rival) for rival in ("zero_bubble", "1f1b", "zb_or_1f1b")],
            "rows": [dataclasses.asdict(row) for row in rows],
        }


def jitter(profiles: list[NamedProfile], budget_s: float) -> dict[str, Any]:
    gains = []
    noise = Noise(jitter=JITTER)
    for named in profiles:
        _, built_in = judge(named.profile, builtin_programs(named.profile))
        if built_in is None:
            continue
        plan = search_from_builtins(named.profile, iterations=iterations_for(budget_s, named.profile)).program
        choice = choose(named.profile, plan, built_in, noise, seed=0)
        theirs = expected_ns(named.profile, built_in.program, noise, seed=1)
        ours = expected_ns(named.profile, choice.program, noise, seed=1, look_ahead=choice.look_ahead)
        gains.append(100 * (theirs / ours - 1))
    return {"instances": len(gains), "mean_gain_pct": float(np.mean(gains)), "min_gain_pct": min(gains)}


def rates() -> Iterator[dict[str, Any]]:
    for ranks, size in ((4, 16), (8, 32), (16, 128)):
        yield rate(ranks, size)


def rate(ranks: int, size: int) -> dict[str, Any]:
    """ns per action timed by the annealing, per action decoded, per action of all built-ins; ms for a bound."""
    shape = Shape.loop(ranks, num_microbatches=size)
    profile = StageCosts.uniform(shape, f=1e-3, i=1e-3, w=1e-3, hop_s=1e-4)
    uneven = tuple(1e-3 * (1 + (7 * stage % 5) / 20) for stage in range(ranks))
    profile = dataclasses.replace(profile, forward_s=uneven, budget_bytes=(2 * ranks,) * ranks)
    costs = cost_arrays(profile)
    rows = blank_rows(costs)
    rules = rules_of(next(first_policies(costs)))
    per_decode = seconds(lambda: list_schedule.fast(costs, rules, rows))
    work, tails = 200 * costs.num_actions, tails_of(costs)
    cooling = Cooling(0, work, 200_000, 7)
    per_anneal = seconds(lambda: anneal.fast(costs, tails, cooling, OrderRows(rows.kinds.copy(), rows.length.copy())))
    return {
        "ranks": ranks,
        "microbatches": size,
        "ns_per_action_timed": 1e9 * per_anneal / work,
        "ns_per_action_decoded": 1e9 * per_decode / costs.num_actions,
        "ns_per_action_of_built_ins": 1e9
        * seconds(lambda: judge(profile, builtin_programs(profile)))
        / costs.num_actions,
        "bound_ms": 1e3 * seconds(lambda: bound_of(costs)),
    }


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one call: the least of five."""
    times = []
    for _ in range(5):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, default=Path("../shared/facts"))
    parser.add_argument("--budget-ms", type=float, default=300.0)
    parser.add_argument("--only", default="rates,pipelines,hetero16,jitter,chunks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warm_up()
    budget_s = given.budget_ms / 1e3
    profiles = read_profiles(given.facts / "pipelines.jsonl")
    parts: dict[str, Callable[[], object]] = {
        "rates": lambda: [*rates()],
        "pipelines": lambda: gaps(profiles, budget_s),
        "hetero16": lambda: [*hetero16(given.facts / "hetero16.json")],
        "jitter": lambda: jitter(profiles, budget_s),
        "chunks": lambda: [*chunks(profiles, budget_s)],
    }
    report = {name: parts[name]() for name in given.only.split(",")}
    print(json.dumps(report, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
