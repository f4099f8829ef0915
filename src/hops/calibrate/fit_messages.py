"""Fits messages between stages: the hosts' time per message, their socket threads' rate, the NIC's token bucket."""

from collections.abc import Mapping, Sequence

import numpy as np

from hops.calibrate.observe import Delay, Run, delays
from hops.calibrate.parameters import Fit, Parameter, solve
from hops.calibrate.timings import Floats
from hops.cost import BenchmarkFit, End, HostFit, MessageFit, port_bytes_per_s

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


def fit_messages(runs: Sequence[Run], hosts: Mapping[str, HostFit]) -> tuple[Fit, list[Delay]]:
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


def usual_benchmarks(runs: Sequence[Run]) -> tuple[BenchmarkFit, ...]:
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
