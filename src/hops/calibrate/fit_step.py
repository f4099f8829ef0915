"""Fits the end of an iteration: optimizer steps, the wait for the slowest gradient norm, the host's gap."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hops.calibrate.observe import Run
from hops.calibrate.parameters import Fit, Parameter, solve
from hops.calibrate.timings import Floats
from hops.cost import CodeFit, DeviceFit, GapFit, HostFit, fitted_rates, optimizer_steps

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


def fit_step(runs: Sequence[Run], devices: Mapping[str, DeviceFit], hosts: Mapping[str, HostFit], code: CodeFit) -> Fit:
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


def fit_gap(runs: Sequence[Run]) -> GapFit:
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
