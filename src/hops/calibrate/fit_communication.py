"""Fits messages between stages: the hosts' time per message, their socket threads' rate, the NIC's token bucket."""

from collections.abc import Mapping, Sequence

import numpy as np

from hops.calibrate.observations import Delay, Floats, ObservedRun, delays, reductions, stalled
from hops.calibrate.parameters import Fit, Parameter, solve
from hops.cost.fitted import End, pair_of, port_bytes_per_s, shapes_traffic
from hops.cost.profile import BenchmarkFit, HostFit, MessageFit, PairFit, PathFit, ReduceFit, StallPrior

PULL, SOFT = 0.1, 1.0  # in units of the expected scatter, a tenth of a millisecond and a tenth of the delay
_SCATTER_S, _SCATTER = 0.1e-3, 0.1


def parameters(hosts: Mapping[str, float]) -> list[Parameter]:
    """Per host kind (with its NIC, bytes/s) and in common."""
    found = []
    for host, nic in hosts.items():
        found += [
            Parameter(name=f"message_s.{host}", start=0.5e-3, low=0.0, high=2e-3, belief=0.6e-3),
            Parameter(
                name=f"socket_bytes_per_s.{host}", start=2.8e9, low=1e9, high=max(nic, 1.2e9, 5.25e9), belief=2.9e9
            ),
        ]
    return [
        *found,
        Parameter(name="nic_efficiency", start=0.97, low=0.5, high=1.0, belief=1.0),
        Parameter(name="nic_burst_bytes", start=1.5e6, low=0.0, high=8e6, belief=1.6e6),
        Parameter(name="turn_s", start=0.15e-3, low=0.0, high=0.5e-3, belief=0.25e-3),
    ]


def message_seconds(ends: Sequence[End], size: int, hosts: Mapping[str, HostFit], fit: MessageFit) -> float:
    """A message as the network of a profiled run has it: half of each host's time, then the slower port's rate."""
    rate = min(port_bytes_per_s(hosts[end.kind], end.nic_bytes_per_s, size, fit) for end in ends)
    return sum(hosts[end.kind].message_s for end in ends) / 2 + size / rate


def fit_of(x: Mapping[str, float]) -> MessageFit:
    """The common part of a solution."""
    return MessageFit(nic_efficiency=x["nic_efficiency"], nic_burst_bytes=x["nic_burst_bytes"], turn_s=x["turn_s"])


def fit_messages(runs: Sequence[ObservedRun], hosts: Mapping[str, HostFit]) -> tuple[Fit, list[Delay]]:
    """Robust least squares of the delays; `hosts`: kinds with their other parts."""
    data = delays(runs)

    def residuals(x: Mapping[str, float]) -> Floats:
        fit, filled = fit_of(x), with_messages(hosts, x)
        values = []
        for each in data:
            expected = message_seconds(each.ends, each.size, filled, fit) if each.ends else fit.turn_s
            values.append((expected - each.seconds) / (_SCATTER_S + _SCATTER * each.seconds))
        return np.array(values)

    nics = {name: host.nic_bytes_per_s for name, host in hosts.items()}
    return solve(parameters(nics), residuals, pull=PULL, soft=SOFT), data


def with_messages(hosts: Mapping[str, HostFit], x: Mapping[str, float]) -> dict[str, HostFit]:
    """The hosts with the parts of a solution."""
    from dataclasses import replace

    return {
        name: replace(host, message_s=x[f"message_s.{name}"], socket_bytes_per_s=x[f"socket_bytes_per_s.{name}"])
        for name, host in hosts.items()
    }


def usual_benchmarks(runs: Sequence[ObservedRun]) -> tuple[BenchmarkFit, ...]:
    """The median benchmark of every pair of host kinds, over runs."""
    found: dict[tuple[str, str], list[tuple[tuple[float, ...], tuple[float, ...]]]] = {}
    for run in runs:
        for each in run.inputs.benchmarks:
            one, other = sorted(run.ranks[rank].end.kind for rank in each.ranks)
            found.setdefault((one, other), []).append((each.sizes_bytes, each.seconds))
    usual = []
    for hosts, curves in sorted(found.items()):
        sizes = curves[0][0]
        same = [seconds for others, seconds in curves if others == sizes]
        usual.append(BenchmarkFit(hosts=hosts, sizes_bytes=sizes, seconds=tuple(np.median(same, axis=0).tolist())))
    return tuple(usual)


QUANTILES = 41  # what is kept of a pair's measured distribution
UNKNOWN = StallPrior(alpha=1.0, beta=19.0)  # of paths without data: one in twenty, worth about a run
_POOLED = 3  # a pair's mean stall is pulled to that of all, as if three of these had been seen on it


def fit_reduce(runs: Sequence[ObservedRun]) -> ReduceFit:
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
