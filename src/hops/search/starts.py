"""Closed-form policies to start from: how many microbatches in flight, and how many of the last W to put off."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.action import Op
from hops.timing.critical_path import advance, below
from hops.timing.list_schedule import Rule, list_schedule, rules_of
from hops.timing.order_rows import OrderRows
from hops.timing.stage_costs import UNLIMITED, CostArrays

SHARES = (1.0, 0.5, 0.0, 1.5)  # of the W that fill a stage's drain
PATIENT = 100  # run a W only if it ends before the next known arrival


def in_flight_targets(costs: CostArrays) -> list[IntArray]:
    """Per rule, one value per stage: 1F1B (p - s); 2 (p - s) - 1; Little's law; Little's law times 1.5; no limit.

    Little's law: microbatches in flight = throughput x time in flight; throughput is that of the slowest rank, time in
    flight at least that of the first microbatch's way to the last stage and back.
    """
    stages, size = costs.num_stages, costs.size
    times = costs.times
    left = stages - np.arange(stages, dtype=np.int64)
    way = times[:, Op.F] + times[:, Op.I] + 2 * costs.hop
    in_flight = np.cumsum(way[::-1])[::-1]
    loads = np.zeros(costs.num_ranks, dtype=np.int64)
    np.add.at(loads, costs.rank_of, times[:, Op.F] + _cheaper_backward(costs))
    period = max(1, int(loads.max()))
    little = -(-in_flight // period)
    targets = (left, 2 * left - 1, little, little + (little + 1) // 2, np.full(stages, size))
    return [np.clip(target, 1, size) for target in targets]


def drain_splits(costs: CostArrays) -> IntArray:
    """Per stage, how many W fill the time that the last gradient takes from there to stage 0; none on stage 0."""
    times = costs.times
    way = np.zeros(costs.num_stages, dtype=np.int64)
    way[1:] = np.cumsum(times[:-1, Op.I] + costs.hop[:-1])
    weight = np.maximum(1, times[:, Op.W])
    splits: IntArray = np.minimum(costs.size, -(-way // weight))
    return splits


def has_slack(costs: CostArrays) -> NDArray[np.bool_]:
    """Per stage, whether its rank could split every backward and still be no slower than the slowest that fuses."""
    times = costs.times
    fused, split = (np.zeros(costs.num_ranks, dtype=np.int64) for _ in range(2))
    np.add.at(fused, costs.rank_of, times[:, Op.F] + _cheaper_backward(costs))
    np.add.at(split, costs.rank_of, times[:, Op.F] + times[:, Op.I] + times[:, Op.W])
    slack: NDArray[np.bool_] = (split <= fused.max())[costs.rank_of]
    return slack


def first_policies(costs: CostArrays) -> Iterator[IntArray]:
    """Policies, shape (rules, stages): every in-flight target with every share of split W, forwards first or last."""
    size = costs.size
    drain = drain_splits(costs)
    splits = [np.minimum(size, np.ceil(drain * share).astype(np.int64)) for share in SHARES]
    splits.append(np.where(has_slack(costs), size, drain))
    splits.append(np.full(costs.num_stages, size))
    for target, split, prefer in product(in_flight_targets(costs), splits, (0, 1)):
        policy = np.zeros((len(Rule), costs.num_stages), dtype=np.int64)
        policy[Rule.IN_FLIGHT] = target
        policy[Rule.SPLIT_LAST] = split
        policy[Rule.PREFER] = prefer
        policy[Rule.PATIENCE] = PATIENT // 2
        policy[Rule.DEFER] = size
        yield policy


def refined(policy: IntArray) -> Iterator[IntArray]:
    """The same policy with other rules for when to run a W, or with its first backwards split, too."""
    w_rules = ((Rule.PATIENCE, PATIENT), (Rule.PATIENCE, 0), (Rule.DEFER, 0), (Rule.DEFER, 1))
    for rule, value in (*w_rules, (Rule.SPLIT_FIRST, 2), (Rule.SPLIT_FIRST, 4)):
        other = policy.copy()
        other[rule] = value
        yield other


def _cheaper_backward(costs: CostArrays) -> IntArray:
    times = costs.times
    cheaper: IntArray = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    return cheaper


IN_FLIGHT, SPLIT_LAST, SPLIT_FIRST, PREFER, PATIENCE, DEFER = (int(rule) for rule in Rule)  # plain, for kernels
MOST_PATIENT = 150  # percent of a W's time
ROUGHNESS = 1024  # thresholds are drawn as (u / ROUGHNESS)^2 of the largest


@kernel
def tune(
    costs: CostArrays, goal: int, tries: int, threshold: int, state: int, policy: IntArray, rows: OrderRows
) -> int:
    """Improve `policy` in place over so many tries; `rows` become its order. Returns the makespan.

    A policy is kept if it is worse by less than a random part of `threshold`, which falls to 0. Stops at `goal`.
    """
    size = costs.size
    stages = len(costs.rank_of)
    trial = policy.copy()
    kept_policy = policy.copy()
    current = list_schedule(costs, rules_of(policy), rows)
    best = current
    for attempt in range(tries):
        if best <= goal:
            break
        trial[:] = kept_policy
        state = advance(state)
        for _ in range(1 if below(state, 10) < 7 else 2):
            # One stage, or in a sixth of the changes several in a row, get another value of one rule.
            state = advance(state)
            start = below(state, stages)
            stop = start + 1
            state = advance(state)
            if below(state, 6) == 0:
                state = advance(state)
                stop += below(state, stages - start)
            state = advance(state)
            choice = below(state, 12)
            state = advance(state)
            step = 1 if below(state, 2) == 0 else -1
            state = advance(state)
            if below(state, 4) == 0:
                state = advance(state)
                step *= 1 + below(state, max(2, size // 4))
            for s in range(start, stop):
                if choice < 4:
                    trial[IN_FLIGHT, s] = min(size, max(1, trial[IN_FLIGHT, s] + step))
                elif choice < 7:
                    trial[SPLIT_LAST, s] = min(size, max(0, trial[SPLIT_LAST, s] + step))
                elif choice < 8:
                    trial[SPLIT_FIRST, s] = min(size, max(0, trial[SPLIT_FIRST, s] + step))
                elif choice < 9:
                    trial[PREFER, s] = 1 - trial[PREFER, s]
                elif choice < 10:
                    trial[PATIENCE, s] = min(MOST_PATIENT, max(0, trial[PATIENCE, s] + 10 * step))
                else:
                    trial[DEFER, s] = min(size, max(0, trial[DEFER, s] + step))
        new = list_schedule(costs, rules_of(trial), rows)
        state = advance(state)
        drawn = below(state, ROUGHNESS)
        allowed = threshold * (tries - attempt) // tries * drawn // ROUGHNESS * drawn // ROUGHNESS
        if new <= current + allowed and new < UNLIMITED:
            current = new
            kept_policy[:] = trial
            if new < best:
                best = new
                policy[:] = trial
    list_schedule(costs, rules_of(policy), rows)
    return best
