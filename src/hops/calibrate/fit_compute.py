"""Fits F and B of stages: shares of peaks, the host's time per operation, and the code's factors on its counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hops.calibrate.observations import Floats, ObservedRun, Rank
from hops.calibrate.parameters import Bools, Fit, Parameter, solve
from hops.cost.fitted import fitted_rates
from hops.cost.profile import CodeFit, DeviceFit, HostFit, OperationFactors
from hops.cost.roofline import DeviceRates, Traffic, backward_terms, forward_terms
from hops.model.implementation import HostOperations
from hops.model.kernels import Gemm, Kernel, Pass
from hops.model.workload import OpWork, StageWork

STEADY, FIRST, REFILL = range(3)  # microbatches of F: as all, first of the iteration, fetched in the warm-up's burst
PULL, SOFT = 0.03, 0.1  # relative errors of a few percent are what counts; a tenth is an outlier

_DEVICE = (
    Parameter(name="gemm_efficiency", start=0.5, low=0.1, high=1.0, belief=0.25),
    Parameter(name="memory_efficiency", start=0.8, low=0.3, high=1.0, belief=0.4),
    Parameter(name="gemm_ramp_s", start=30e-6, low=0.0, high=250e-6, belief=15e-6),
)
_HOST = (
    Parameter(name="operation_s", start=15e-6, low=3e-6, high=50e-6, belief=7.5e-6),
    Parameter(name="first_fetch_s", start=0.5e-3, low=0.0, high=2e-3, belief=0.25e-3),
    Parameter(name="refill_s", start=0.4e-3, low=0.0, high=2e-3, belief=0.2e-3),
)
_OPERATIONS = ("layer_backward", "first_forward", "first_backward", "last_forward", "last_backward")
_TRAFFIC = (
    "scores_forward",
    "scores_backward",
    "elementwise_forward",
    "elementwise_backward",
    "logits_forward",
    "logits_backward",
)
_CODE = (
    *(Parameter(name=f"operations.{name}", start=1.0, low=0.0, high=10.0, belief=0.5) for name in _OPERATIONS),
    *(Parameter(name=f"traffic.{name}", start=1.0, low=0.3, high=4.0, belief=0.5) for name in _TRAFFIC),
    Parameter(name="cache_speedup", start=3.0, low=1.0, high=8.0, belief=1.5),
    Parameter(name="dispatch_lag", start=0.3, low=0.0, high=1.0, belief=0.15),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeStages:
    """Stages alike on devices alike, of several runs: mean of their medians.

    Attributes:
        label: for reports.
        forward: seconds by class of microbatches, of those that there are.
        weight: grows with the root of the number of stages.
    """

    label: str
    rank: Rank
    work: StageWork
    operations: HostOperations
    precision: str
    forward: tuple[tuple[int, float], ...]
    backward: float
    weight: float


def groups(runs: Sequence[ObservedRun]) -> list[LikeStages]:
    """What is fitted, in the order of the runs."""
    found: dict[object, list[tuple[ObservedRun, int]]] = {}
    for run in runs:
        for stage, (rank, work) in enumerate(zip(run.ranks, run.works, strict=True)):
            key = (rank.device.name, rank.end.kind, work, run.operations, run.precision)
            found.setdefault(key, []).append((run, stage))
    return [_group(members) for members in found.values()]


def _group(members: list[tuple[ObservedRun, int]]) -> LikeStages:
    run, stage = members[0]
    forward: dict[int, list[float]] = {}
    backward = []
    for each, number in members:
        times = each.timings
        lengths = (times.forward[..., 1] - times.forward[..., 0])[:, number]
        classes = fetch_classes(number, len(each.ranks), times.num_microbatches)
        for fetched in sorted(set(classes.tolist())):
            forward.setdefault(fetched, []).append(float(np.median(lengths[:, classes == fetched])))
        backward.append(float(np.median((times.backward[..., 1] - times.backward[..., 0])[:, number])))
    return LikeStages(
        label=_label(run, stage),
        rank=run.ranks[stage],
        work=merged(run.works[stage]),
        operations=run.operations,
        precision=run.precision,
        forward=tuple((fetched, float(np.mean(values))) for fetched, values in sorted(forward.items())),
        backward=float(np.mean(backward)),
        weight=len(members) ** 0.5,
    )


def _label(run: ObservedRun, stage: int) -> str:
    work, pipeline = run.works[stage], run.inputs.spec.pipeline
    assert pipeline.model is not None, "only launches with a model are observed"
    ends = (", first" if work.embedding else "") + (", last" if work.head else "")
    shape = f"hidden {pipeline.model.hidden}, sequence {pipeline.sequence_length}"
    return f"{run.ranks[stage].device.name}, {work.num_layers} layers{ends}, {shape}"


def fetch_classes(stage: int, stages: int, microbatches: int) -> np.ndarray:
    """The class of every microbatch of F on a stage."""
    classes = np.full(microbatches, STEADY)
    if stage == 0:
        classes[1 : min(stages, microbatches)] = REFILL
    if stage in (0, stages - 1):
        classes[0] = FIRST
    return classes


def merged(work: StageWork) -> StageWork:
    """The same work in fewer kernels: passes over tensors alike become one, GEMMs alike one of more calls."""

    def fewer(op: OpWork) -> OpWork:
        return OpWork(layers=_merge(op.layers), ends=_merge(op.ends))

    return replace(
        work,
        forward=fewer(work.forward),
        input_backward=fewer(
            OpWork(
                layers=work.input_backward.layers + work.weight_backward.layers,
                ends=work.input_backward.ends + work.weight_backward.ends,
            )
        ),
        weight_backward=OpWork(),
        recompute=fewer(work.recompute),
    )


def _merge(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    alike: dict[object, Kernel] = {}
    for kernel in kernels:
        if isinstance(kernel, Gemm):
            key: object = replace(kernel, calls=1)
            seen = alike.get(key)
            alike[key] = kernel if seen is None else replace(kernel, calls=kernel.calls + seen.calls)
        else:
            assert isinstance(kernel, Pass), "what is fitted are stages on one device each"
            key = (kernel.name, kernel.working_set)
            so_far = alike[key].total_bytes if key in alike else 0
            alike[key] = replace(kernel, calls=1, bytes=kernel.total_bytes + so_far)
    return tuple(alike.values())


def parameters(data: Sequence[LikeStages]) -> list[Parameter]:
    """All parameters that the groups need."""
    devices = sorted({group.rank.device.name for group in data})
    hosts = sorted({group.rank.end.kind for group in data})
    return [
        *(replace(each, name=f"{each.name}.{device}") for device in devices for each in _DEVICE),
        *(replace(each, name=f"{each.name}.{host}") for host in hosts for each in _HOST),
        *_CODE,
    ]


def code_of(x: Mapping[str, float], others: OperationFactors | None = None) -> CodeFit:
    """The code's part of a solution; `others`: factors that it does not hold."""
    named = {name: x[f"operations.{name}"] for name in _OPERATIONS}
    return CodeFit(
        cache_speedup=x["cache_speedup"],
        dispatch_lag=x["dispatch_lag"],
        operations=replace(others or OperationFactors(), **named),
        traffic=Traffic(**{name: x[f"traffic.{name}"] for name in _TRAFFIC}),
    )


def device_of(x: Mapping[str, float], name: str, hosts: tuple[str, ...] = ()) -> DeviceFit:
    """A device's part of a solution."""
    return DeviceFit(hosts=hosts, **{each.name: x[f"{each.name}.{name}"] for each in _DEVICE})


def host_of(x: Mapping[str, float], name: str, **others: float) -> HostFit:
    """A host's part of a solution; `others`: what it does not hold."""
    rest = {"message_s": 0.0, "socket_bytes_per_s": 1.0, "nic_bytes_per_s": 1.0} | others
    return HostFit(**{each.name: x[f"{each.name}.{name}"] for each in _HOST}, **rest)


def fit_compute(runs: Sequence[ObservedRun]) -> tuple[Fit, list[LikeStages]]:
    """Robust least squares of the logarithms of F (by class) and B of every group."""
    data = groups(runs)
    owners = [(group.rank.device.name, group.rank.end.kind) for group in data for _ in (*group.forward, group.backward)]
    places = {name for pair in owners for name in pair}

    def residuals(x: Mapping[str, float]) -> Floats:
        values = []
        for group, (forward, backward) in zip(data, predictions(data, x), strict=True):
            share = group.weight / len(group.forward) ** 0.5
            pairs = zip(forward, group.forward, strict=True)
            values += [share * np.log(ours / theirs) for ours, (_, theirs) in pairs]
            values.append(group.weight * np.log(backward / group.backward))
        return np.array(values)

    def rows_of(parameter: str) -> Bools:
        place = parameter.partition(".")[2]
        return np.array([place not in places or place in owner for owner in owners])

    return solve(parameters(data), residuals, pull=PULL, soft=SOFT, rows_of=rows_of), data


def predictions(data: Sequence[LikeStages], x: Mapping[str, float]) -> list[tuple[list[float], float]]:
    """F of every class, and B, of every group, in seconds."""
    code = code_of(x)
    devices = {name: device_of(x, name) for name in {group.rank.device.name for group in data}}
    hosts = {name: host_of(x, name) for name in {group.rank.end.kind for group in data}}
    rates: dict[object, DeviceRates] = {}
    found = []
    for group in data:
        device, host = group.rank.device, hosts[group.rank.end.kind]
        key = (device.name, group.rank.end.kind, group.operations, group.precision)
        if key not in rates:
            rates[key] = fitted_rates(device, group.precision, group.operations, devices[device.name], host, code)
        forward = sum(forward_terms(group.work, rates[key]).values())
        more = {STEADY: 0.0, FIRST: host.first_fetch_s, REFILL: host.refill_s}
        backward = sum(backward_terms(group.work, rates[key]).values())
        found.append(([forward + more[fetched] for fetched, _ in group.forward], backward))
    return found


def stage_errors(data: Sequence[LikeStages], x: Mapping[str, float]) -> list[list[str | float]]:
    """Of every group: its label, and the errors of its first class of F and of B in percent."""
    return [
        [group.label, 100 * (forward[0] / group.forward[0][1] - 1), 100 * (backward / group.backward - 1)]
        for group, (forward, backward) in zip(data, predictions(data, x), strict=True)
    ]
