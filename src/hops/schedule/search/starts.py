"""Closed-form policies to start from: how many microbatches in flight, and how many of the last W to put off."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hops.actions import Op
from hops.schedule.coded import IntArray
from hops.schedule.instance import Instance
from hops.schedule.search.decode import Rule

SHARES = (1.0, 0.5, 0.0, 1.5)  # of the W that fill a stage's drain
PATIENT = 100  # run a W only if it ends before the next known arrival


def in_flight_targets(instance: Instance) -> list[IntArray]:
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


def drain_splits(instance: Instance) -> IntArray:
    """Per stage, how many W fill the time that the last gradient takes from there to stage 0; none on stage 0."""
    times = instance.times
    way = np.zeros(instance.num_stages, dtype=np.int64)
    way[1:] = np.cumsum(times[:-1, Op.I] + instance.hop[:-1])
    weight = np.maximum(1, times[:, Op.W])
    splits: IntArray = np.minimum(instance.size, -(-way // weight))
    return splits


def has_slack(instance: Instance) -> NDArray[np.bool_]:
    """Per stage, whether its rank could split every backward and still be no slower than the slowest that fuses."""
    times = instance.times
    fused, split = (np.zeros(instance.num_ranks, dtype=np.int64) for _ in range(2))
    np.add.at(fused, instance.rank_of, times[:, Op.F] + _cheaper_backward(instance))
    np.add.at(split, instance.rank_of, times[:, Op.F] + times[:, Op.I] + times[:, Op.W])
    slack: NDArray[np.bool_] = (split <= fused.max())[instance.rank_of]
    return slack


def first_policies(instance: Instance) -> Iterator[IntArray]:
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


def _cheaper_backward(instance: Instance) -> IntArray:
    times = instance.times
    cheaper: IntArray = np.minimum(times[:, Op.B], times[:, Op.I] + times[:, Op.W])
    return cheaper
