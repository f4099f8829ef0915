"""The shortest makespan of tiny instances, proved by OR-tools CP-SAT; run as a script, it writes optima.jsonl.

    python tests/schedule_search/search_exact.py

The model knows nothing of the bound or the search: intervals on ranks, a choice of B or I + W per (stage, microbatch),
memory as a cumulative constraint. Microbatches of a stage are taken in turn, which loses nothing as they are alike.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np

from hops.timing.examples import profile_from_json
from hops.timing.stage_costs import StageCosts

OPTIMA = Path(__file__).with_name("optima.jsonl")
TIME_LIMIT_S = 60.0
UNIT = 1000  # model units per second: instances have whole milliseconds


def optimum(profile: StageCosts) -> int | None:
    """The shortest makespan in ms; None if not proved in time."""
    from ortools.sat.python import cp_model

    ms = lambda seconds: round(seconds * UNIT)
    shape, model = profile.shape, cp_model.CpModel()
    stages, size = shape.num_stages, shape.num_microbatches
    horizon = size * sum(
        ms(profile.forward_s[s] + profile.fused_backward_s[s] + profile.input_backward_s[s])
        + ms(profile.weight_backward_s[s])
        for s in range(stages)
    ) + 2 * sum(map(ms, profile.hop_s))
    moment = lambda: model.new_int_var(0, horizon, "")
    makespan = moment()
    on_rank = [[] for _ in range(shape.num_ranks)]
    held = [[] for _ in range(shape.num_ranks)]
    forward, start, end = {}, {}, {}
    for s in range(stages):
        rank = shape.rank_of_stage[s]
        f, b = ms(profile.forward_s[s]), ms(profile.fused_backward_s[s])
        i, w = ms(profile.input_backward_s[s]), ms(profile.weight_backward_s[s])
        for j in range(size):
            key, split = (s, j), model.new_bool_var("")
            forward[key], start[key], end[key], weight, freed = (moment() for _ in range(5))
            length = model.new_int_var(min(b, i), max(b, i), "")
            model.add(length == i).only_enforce_if(split)
            model.add(length == b).only_enforce_if(~split)
            model.add(weight >= end[key]).only_enforce_if(split)
            model.add(freed == weight + w).only_enforce_if(split)
            model.add(freed == end[key]).only_enforce_if(~split)
            model.add(weight == 0).only_enforce_if(~split)
            model.add(freed <= makespan)
            model.add(start[key] >= forward[key] + f)
            on_rank[rank] += [
                model.new_fixed_size_interval_var(forward[key], f, ""),
                model.new_interval_var(start[key], length, end[key], ""),
                model.new_optional_fixed_size_interval_var(weight, w, split, ""),
            ]
            whole, part = moment(), moment()
            held[rank] += [
                (model.new_interval_var(forward[key], whole, end[key], ""), profile.activation_bytes[s]),
                (model.new_interval_var(end[key], part, freed, ""), profile.kept_for_weight_bytes[s]),
            ]
            if j > 0:
                model.add(forward[key] >= forward[s, j - 1] + f)
                model.add(start[key] >= end[s, j - 1])
            if s > 0:
                model.add(forward[key] >= forward[s - 1, j] + ms(profile.forward_s[s - 1]) + ms(profile.hop_s[s - 1]))
    for s in range(stages - 1):
        for j in range(size):
            model.add(start[s, j] >= end[s + 1, j] + ms(profile.hop_s[s]))
    for rank, limit in enumerate(profile.budget_bytes):
        model.add_no_overlap(on_rank[rank])
        if limit is not None:
            model.add_cumulative([pair[0] for pair in held[rank]], [pair[1] for pair in held[rank]], limit)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = TIME_LIMIT_S
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None


def tiny(seed: int) -> dict:
    """A random tiny profile: 2 or 3 stages, or 2 ranks of 2 chunks; half of them with tight memory."""
    rng = np.random.default_rng(seed)
    kind = ("straight", "straight", "loop", "v")[seed % 4]
    ranks = int(rng.integers(2, 4)) if kind == "straight" else 2
    rank_of = {"straight": [*range(ranks)], "loop": [0, 1, 0, 1], "v": [0, 1, 1, 0]}[kind]
    size = int(rng.integers(2, 5)) if kind == "straight" else int(rng.integers(2, 4))
    stages = len(rank_of)
    draw = lambda low, high, count=stages: rng.integers(low, high + 1, count).tolist()
    into, weight = draw(1, 9), draw(1, 9)
    dearer = draw(0, 2) if rng.random() < 0.5 else [0] * stages
    fused = [max(i, i + w - more) for i, w, more in zip(into, weight, dearer, strict=True)]
    activation = draw(2, 6)
    kept = [int(rng.integers(0, whole + 1)) for whole in activation]
    least = [sum(a for a, r in zip(activation, rank_of, strict=True) if r == rank) for rank in range(ranks)]
    tight = rng.random() < 0.6
    memory = [int(need * rng.uniform(1.0, 2.6)) if tight else None for need in least]
    hops = [0 if a == b else int(rng.integers(0, 4)) for a, b in pairwise(rank_of)]
    return {
        "name": f"{kind}-{seed}",
        "microbatches": size,
        "forward_ms": draw(1, 9),
        "input_backward_ms": into,
        "weight_backward_ms": weight,
        "fused_backward_ms": fused,
        "hop_ms": hops,
        "activation_bytes": activation,
        "kept_for_weight_bytes": kept,
        "memory_bytes": memory,
        "rank_of_stage": rank_of,
    }


def main(count: int = 260) -> None:
    lines = []
    for seed in range(count):
        value = tiny(seed)
        best = optimum(profile_from_json(value["name"], value).profile)
        if best is not None:
            lines.append(json.dumps({"optimum_ms": best, "profile": value}))
    OPTIMA.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} of {count} proved")


if __name__ == "__main__":
    main()
