"""Calibration: runs that were measured become a hardware profile, with what it does not know."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from hops.calibrate.fit_compute import code_of, device_of, fit_compute, host_of, stage_errors
from hops.calibrate.fit_messages import fit_messages, fit_of, usual_benchmarks, with_messages
from hops.calibrate.fit_reduce import fit_reduce
from hops.calibrate.fit_step import fit_gap, fit_step, with_step
from hops.calibrate.observe import Run
from hops.calibrate.parameters import Fit
from hops.calibrate.scenarios import digest, scenario
from hops.cost import HardwareProfile, Scope
from hops.errors import UsageError

SURE = 1.645  # standard errors of a 90 % interval


def calibrate(runs: Sequence[Run]) -> HardwareProfile:
    """Fit every part of the cost model. Deterministic. Raises UsageError without runs."""
    if not runs:
        raise UsageError("no run to calibrate on; name at least one run folder with a trace")
    _need_scipy()
    compute, stages = fit_compute(runs)
    x = _values(compute)
    hosts = {kind: host_of(x, kind, nic_bytes_per_s=nic) for kind, nic in _nics(runs).items()}
    messages, _ = fit_messages(runs, hosts)
    hosts = with_messages(hosts, _values(messages))
    devices = {name: device_of(x, name, kinds) for name, kinds in _hosts_of(runs).items()}
    step = fit_step(runs, devices, hosts, code_of(x))
    return HardwareProfile(
        scope=scope_of(runs),
        devices=devices,
        hosts=hosts,
        code=with_step(code_of(x), _values(step)),
        messages=fit_of(_values(messages)),
        reduce=fit_reduce(runs),
        gap=fit_gap(runs),
        benchmarks=usual_benchmarks(runs),
        report={
            "compute": report_of(compute) | {"stage_and_errors_of_forward_and_backward_pct": stage_errors(stages, x)},
            "messages": report_of(messages),
            "step": report_of(step),
        },
    )


def _need_scipy() -> None:
    if find_spec("scipy") is None:
        raise UsageError("calibrating needs scipy, which is not installed: pip install 'hops-sim[calibrate]'")


def scope_of(runs: Sequence[Run]) -> Scope:
    """What the runs cover."""
    from hops.api.trained import trained

    works = [trained(run.inputs.spec) for run in runs]
    pipelines = [run.inputs.spec.pipeline for run in runs]

    def span(values: Sequence[int]) -> tuple[int, int]:
        return min(values), max(values)

    def named(values: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted(set(values)))

    return Scope(
        runs=len(runs),
        scenarios=len({scenario(run.inputs) for run in runs}),
        hidden=span([work.model.hidden for work in works]),
        sequence_length=span([work.batch.sequence_length for work in works]),
        layers_per_stage=span([layers for run in runs for layers in run.layers]),
        microbatch_size=span([work.batch.samples for work in works]),
        vocab=span([work.model.vocab for work in works]),
        head_dim=span([work.model.head_dim for work in works]),
        stages=span([len(run.ranks) for run in runs]),
        attention=named([each.attention for each in pipelines]),
        precision=named([each.precision for each in pipelines]),
        learned=named([digest(run.inputs) for run in runs]),
        transport=named([run.inputs.spec.hardware.transport for run in runs]),
    )


def report_of(fit: Fit) -> dict[str, Any]:
    """Residuals, 90 % intervals, what the data cannot tell apart, as plain data."""
    spread = np.abs(fit.residuals)
    intervals = {}
    for each, value, error in zip(fit.parameters, fit.values, fit.errors, strict=True):
        low, high = max(each.low, value - SURE * error), min(each.high, value + SURE * error)
        intervals[each.name] = [float(value), float(low), float(high)]
    return {
        "observations": len(fit.residuals),
        "mean_abs_residual": float(spread.mean()),
        "largest_residual": float(spread.max()),
        "value_and_90_percent_interval": intervals,
        "correlated_beyond_0.9": [[one, other, r] for one, other, r in fit.inseparable()],
        "as_uncertain_as_before": fit.undetermined(),
        "at_their_bounds": fit.at_bound(),
    }


def _values(fit: Fit) -> dict[str, float]:
    return {each.name: float(value) for each, value in zip(fit.parameters, fit.values, strict=True)}


def _nics(runs: Sequence[Run]) -> dict[str, float]:
    """NIC of every host kind, in order of its name."""
    found = {rank.end.kind: rank.end.nic_bytes_per_s for run in runs for rank in run.ranks}
    return dict(sorted(found.items()))


def _hosts_of(runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """Host kinds in which each kind of device was seen, the most frequent first."""
    seen: dict[str, dict[str, int]] = {}
    for run in runs:
        for rank in run.ranks:
            counts = seen.setdefault(rank.device.name, {})
            counts[rank.end.kind] = counts.get(rank.end.kind, 0) + 1
    return {
        device: tuple(sorted(counts, key=lambda kind: (-counts[kind], kind))) for device, counts in sorted(seen.items())
    }
