"""Fits the tied all-reduce: seconds per byte of every pair of host kinds, and how likely a path is to stall."""

from collections.abc import Sequence

import numpy as np

from hops.calibrate.observe import Run, reductions, stalled
from hops.cost import PairFit, PathFit, ReduceFit, StallPrior, pair_of, shapes_traffic

QUANTILES = 41  # what is kept of a pair's measured distribution
UNKNOWN = StallPrior(alpha=1.0, beta=19.0)  # of paths without data: one in twenty, worth about a run
_POOLED = 3  # a pair's mean stall is pulled to that of all, as if three of these had been seen on it


def fit_reduce(runs: Sequence[Run]) -> ReduceFit:
    """Measured distributions, pooled by pair of kinds; stalls counted by path, with a prior fitted over paths."""
    seconds: dict[tuple[str, ...], list[float]] = {}
    sizes: dict[tuple[str, ...], list[float]] = {}
    paths: dict[tuple[str, str], list[int]] = {}
    shaped: dict[tuple[str, str], bool] = {}
    for run in runs:
        first, last = run.ends
        if first.host == last.host or not run.tied_bytes:
            continue
        taken = reductions(run)
        late = stalled(taken)
        pair = pair_of(first, last)
        seconds.setdefault(pair, []).extend((taken[~late] / run.tied_bytes).tolist())
        sizes.setdefault(pair, []).extend((taken[late] - taken[~late].mean()).tolist())
        one, other = sorted((first.host, last.host))
        counts = paths.setdefault((one, other), [0, 0])
        counts[0], counts[1] = counts[0] + int(late.sum()), counts[1] + len(taken)
        shaped[one, other] = shapes_traffic(min(first.nic_bytes_per_s, last.nic_bytes_per_s))
    return ReduceFit(
        pairs=_pairs(seconds, sizes),
        paths=tuple(
            PathFit(between=path, stalls=stalls, reductions=seen) for path, (stalls, seen) in sorted(paths.items())
        ),
        free=stall_prior([counts for path, counts in sorted(paths.items()) if not shaped[path]]),
        shaped=stall_prior([counts for path, counts in sorted(paths.items()) if shaped[path]]),
    )


def _pairs(
    seconds: dict[tuple[str, ...], list[float]], sizes: dict[tuple[str, ...], list[float]]
) -> tuple[PairFit, ...]:
    every = [size for found in sizes.values() for size in found]
    mean = float(np.mean(every)) if every else 0.0
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return tuple(
        PairFit(
            hosts=pair,
            seconds_per_byte=tuple(np.quantile(values, middles).tolist()),
            stall_s=(sum(sizes[pair]) + _POOLED * mean) / (len(sizes[pair]) + _POOLED),
        )
        for pair, values in sorted(seconds.items())
    )


def stall_prior(counts: Sequence[Sequence[int]]) -> StallPrior:
    """Beta distribution of stall probabilities over paths, from (stalls, reductions) of each: empirical Bayes.

    Maximum of the beta-binomial likelihood, with a hyperprior that keeps the prior's weight near that of one run
    (log weight normal around log 18, sd 1) and its mean small (beta(1, 10)). UNKNOWN without data.
    """
    if not counts:
        return UNKNOWN
    from scipy.optimize import minimize
    from scipy.special import betaln

    stalls, seen = np.array(counts, dtype=np.float64).T

    def cost(z: np.ndarray) -> float:
        mean, weight = 1 / (1 + np.exp(-z[0])), np.exp(z[1])
        alpha, beta = mean * weight, (1 - mean) * weight
        likelihood = np.sum(betaln(alpha + stalls, beta + seen - stalls) - betaln(alpha, beta))
        return float(-likelihood + 0.5 * (z[1] - np.log(18)) ** 2 - 9 * np.log(1 - mean))

    best = minimize(cost, [-2.3, np.log(18)], method="Nelder-Mead", bounds=[(-12, 6), (-3, 9)]).x
    mean, weight = 1 / (1 + np.exp(-best[0])), np.exp(best[1])
    return StallPrior(alpha=float(mean * weight), beta=float((1 - mean) * weight))
