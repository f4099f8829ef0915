"""Closed-form policies to start from: how many microbatches in flight, and how many of the last W to put off."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hops.arrays import IntArray
from hops.compiled import kernel
from hops.program.action import Op
from hops.timing.critical_path import advance, below
from hops.timing.list_schedule import Rule, decode
from hops.timing.stage_costs import UNLIMITED, CostArrays

SHARES = (1.0, 0.5, 0.0, 1.5)  # of the W that fill a stage's drain
PATIENT = 100  # run a W only if it ends before the next known arrival


def in_flight_targets(instance: CostArrays) -> list[IntArray]:
    """Per rule, one value per stage: 1F1B (p - s); 2 (p - s) - 1; Little's law; Little's law times 1.5; no limit.

    Little's law: microbatches in flight = throughput x time in flight; throughput is that of the slowest rank, time in
    flight at least that of the first microbatch's way to the last stage and back.
    """
    stages, size = instance.num_stages, instance.size
    times = instance.times
    left = stages - np.arange(stages, dtype=np.int64)
    way = times[:, Op.F] + times[:, Op.I] + 2 * instance.hop
    in_flight = np.cumsum(way[::-1])[::-1]
    loads = np.zeros(instance.num_ranks, dtype=np.int64)
    np.add.at(loads, instance.rank_of, times[:, Op.F] + _cheaper_backward(instance))
    period = max(1, int(loads.max()))
    little = -(-in_flight // period)
    targets = (left, 2 * left - 1, little, little + (little + 1) // 2, np.full(stages, size))
    return [np.clip(target, 1, size) for target in targets]


def drain_splits(instance: CostArrays) -> IntArray:
    """Per stage, how many W fill the time that the last gradient takes from there to stage 0; none on stage 0."""
    times = instance.times
    way = np.zeros(instance.num_stages, dtype=np.int64)
    way[1:] = np.cumsum(times[:-1, Op.I] + instance.hop[:-1])
    weight = np.maximum(1, times[:, Op.W])
    splits: IntArray = np.minimum(instance.size, -(-way // weight))
    return splits


def has_slack(instance: CostArrays) -> NDArray[np.bool_]:
    """Per stage, whether its rank could split every backward and still be no slower than the slowest that fuses."""
    times = instance.times
    fused, split = (np.zeros(instance.num_ranks, dtype=np.int64) for _ in range(2))
    np.add.at(fused, instance.rank_of, times[:, Op.F] + _cheaper_backward(instance))
    np.add.at(split, instance.rank_of, times[:, Op.F] + times[:, Op.I] + times[:, Op.W])
    slack: NDArray[np.bool_] = (split <= fused.max())[instance.rank_of]
    return slack


def first_policies(instance: CostArrays) -> Iterator[IntArray]:
    """Policies, shape (rules, stages): every in-flight target with every share of split W, forwards first or last."""
    size = instance.size
    drain = drain_splits(instance)
    splits = [np.minimum(size, np.ceil(drain * share).astype(np.int64)) for share in SHARES]
    splits.append(np.where(has_slack(instance), size, drain))
    splits.append(np.full(instance.num_stages, size))
    for target, split, prefer in product(in_flight_targets(instance), splits, (0, 1)):
        policy = np.zeros((len(Rule), instance.num_stages), dtype=np.int64)
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


def _cheaper_backward(instance: CostArrays) -> IntArray:
    times = instance.times
    cheaper: IntArray = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    return cheaper


MOST_PATIENT = 150  # percent of a W's time
ROUGHNESS = 1024  # thresholds are drawn as (u / ROUGHNESS)^2 of the largest


@kernel
def tune(
    size: int,
    times: IntArray,
    hop: IntArray,
    rank_of: IntArray,
    later: IntArray,
    activation: IntArray,
    kept: IntArray,
    memory: IntArray,
    bound: int,
    tries: int,
    threshold: int,
    state: int,
    policy: IntArray,
    kinds: IntArray,
    length: IntArray,
) -> int:
    """Improve `policy` in place over so many tries; `kinds` and `length` become its order. Returns the makespan.

    A policy is kept if it is worse by less than a random part of `threshold`, which falls to 0. Stops at `bound`.
    """
    stages = len(rank_of)
    trial = policy.copy()
    kept_policy = policy.copy()
    current = decode(size, times, hop, rank_of, later, activation, kept, memory, policy, kinds, length)
    best = current
    for attempt in range(tries):
        if best <= bound:
            break
        trial[:] = kept_policy
        state = advance(state)
        for _ in range(1 if below(state, 10) < 7 else 2):
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
                    trial[0, s] = min(size, max(1, trial[0, s] + step))
                elif choice < 7:
                    trial[1, s] = min(size, max(0, trial[1, s] + step))
                elif choice < 8:
                    trial[2, s] = min(size, max(0, trial[2, s] + step))
                elif choice < 9:
                    trial[3, s] = 1 - trial[3, s]
                elif choice < 10:
                    trial[4, s] = min(MOST_PATIENT, max(0, trial[4, s] + 10 * step))
                else:
                    trial[5, s] = min(size, max(0, trial[5, s] + step))
        new = decode(size, times, hop, rank_of, later, activation, kept, memory, trial, kinds, length)
        state = advance(state)
        drawn = below(state, ROUGHNESS)
        allowed = threshold * (tries - attempt) // tries * drawn // ROUGHNESS * drawn // ROUGHNESS
        if new <= current + allowed and new < UNLIMITED:
            current = new
            kept_policy[:] = trial
            if new < best:
                best = new
                policy[:] = trial
    decode(size, times, hop, rank_of, later, activation, kept, memory, policy, kinds, length)
    return best
