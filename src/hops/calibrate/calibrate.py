"""Calibration: runs that were measured become a hardware profile, with what it does not know."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np

from hops.build.setup import RunInputs
from hops.calibrate.fit_communication import fit_messages, fit_of, fit_reduce, usual_benchmarks, with_messages
from hops.calibrate.fit_compute import code_of, device_of, fit_compute, host_of, stage_errors
from hops.calibrate.observations import Floats, ObservedRun
from hops.calibrate.parameters import Fit, Parameter, solve
from hops.cost.fitted import fitted_rates
from hops.cost.iteration_end import optimizer_steps
from hops.cost.profile import CodeFit, DeviceFit, GapFit, HardwareProfile, HostFit, Scope
from hops.errors import UsageError

PULL, SOFT = 0.1, 0.05

_PARAMETERS = (
    Parameter(name="operations.step", start=1.0, low=0.0, high=20.0, belief=1.0),
    Parameter(name="operations.norm_layer", start=1.0, low=0.0, high=5.0, belief=1.0),
    Parameter(name="operations.step_layer", start=1.0, low=0.0, high=5.0, belief=1.0),
    Parameter(name="traffic.optimizer", start=1.0, low=0.3, high=3.0, belief=1.0),
)


def with_step(code: CodeFit, x: Mapping[str, float]) -> CodeFit:
    """The code's part with the factors of a solution."""
    names = ("step", "norm_layer", "step_layer")
    operations = replace(code.operations, **{name: x[f"operations.{name}"] for name in names})
    return replace(code, operations=operations, traffic=replace(code.traffic, optimizer=x["traffic.optimizer"]))


def fit_step(
    runs: Sequence[ObservedRun], devices: Mapping[str, DeviceFit], hosts: Mapping[str, HostFit], code: CodeFit
) -> Fit:
    """Robust least squares of the logarithms of every rank's median step."""
    measured = [np.median(run.timings.optimizer[..., 1] - run.timings.optimizer[..., 0], axis=0) for run in runs]

    def residuals(x: Mapping[str, float]) -> Floats:
        filled, values = with_step(code, x), []
        for run, seconds in zip(runs, measured, strict=True):
            rates = [
                fitted_rates(
                    rank.device, run.precision, run.operations, devices[rank.device.name], hosts[rank.end.kind], filled
                )
                for rank in run.ranks
            ]
            steps = optimizer_steps(run.parameters, run.layers, bytes_per_parameter=run.step_bytes, rates=rates)
            values.append(np.log(np.array(steps) / seconds))
        return np.concatenate(values)

    return solve(_PARAMETERS, residuals, pull=PULL, soft=SOFT)


def fit_gap(runs: Sequence[ObservedRun]) -> GapFit:
    """Least squares of the median pause from the last optimizer step to the next iteration, linear in the ranks."""
    pauses = [
        float(np.median(run.timings.forward[1:, 0, 0, 0] - run.timings.optimizer[:-1, :, 1].max(axis=1)))
        for run in runs
    ]
    ranks = np.array([len(run.ranks) - 1 for run in runs], dtype=np.float64)
    if len(set(ranks.tolist())) == 1:
        return GapFit(base_s=max(0.0, float(np.mean(pauses))), per_rank_s=0.0)
    base, per_rank = np.linalg.lstsq(np.stack([np.ones_like(ranks), ranks], axis=1), np.array(pauses), rcond=None)[0]
    return GapFit(base_s=float(base), per_rank_s=float(per_rank))


def scenario(inputs: RunInputs) -> str:
    """The same text for launches that are the same up to the run's name and the order's label."""
    spec = inputs.spec
    return "\n".join(
        section.model_dump_json(exclude_defaults=True) for section in (spec.pipeline, spec.hardware, spec.optimizer)
    )


def digest(inputs: RunInputs) -> str:
    """A short name of the scenario, by which a profile remembers what it was fitted on."""
    return sha256(scenario(inputs).encode()).hexdigest()[:12]


def folds(inputs: Sequence[RunInputs], number: int, seed: int) -> list[int]:
    """The fold of every run: scenarios are shuffled with the seed and dealt to `number` folds."""
    names = list(dict.fromkeys(scenario(each) for each in inputs))
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[place]: turn % number for turn, place in enumerate(order)}
    return [fold_of[scenario(each)] for each in inputs]


SURE = 1.645  # standard errors of a 90 % interval


def calibrate(runs: Sequence[ObservedRun]) -> HardwareProfile:
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


def scope_of(runs: Sequence[ObservedRun]) -> Scope:
    """What the runs cover."""
    from hops.build.figures import workload

    works = [workload(run.inputs.spec) for run in runs]
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


def _nics(runs: Sequence[ObservedRun]) -> dict[str, float]:
    """NIC of every host kind, in order of its name."""
    found = {rank.end.kind: rank.end.nic_bytes_per_s for run in runs for rank in run.ranks}
    return dict(sorted(found.items()))


def _hosts_of(runs: Sequence[ObservedRun]) -> dict[str, tuple[str, ...]]:
    """Host kinds in which each kind of device was seen, the most frequent first."""
    seen: dict[str, dict[str, int]] = {}
    for run in runs:
        for rank in run.ranks:
            counts = seen.setdefault(rank.device.name, {})
            counts[rank.end.kind] = counts.get(rank.end.kind, 0) + 1
    return {
        device: tuple(sorted(counts, key=lambda kind: (-counts[kind], kind))) for device, counts in sorted(seen.items())
    }
