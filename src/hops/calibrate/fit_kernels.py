"""Fits what kernels reach on a device: products, groups of products, attention, each on measured shapes alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hops.calibrate.kernel_rows import (
    MeasuredAttention,
    MeasuredAttentionBackward,
    MeasuredAttentionForward,
    MeasuredGroup,
    MeasuredKernel,
    MeasuredProduct,
    of_kind,
)
from hops.calibrate.observations import Floats
from hops.calibrate.parameters import Parameter, solve
from hops.cost.efficiency import AttentionFit, KernelFit, ProductFit, attention_seconds, product_seconds
from hops.hardware.devices import DeviceKind

PULL, SOFT = 0.02, 0.05
FOLDS = 5
NARROW = 0.53
"""Heads of 64 reach 0.69 of what heads of 128 do: fused forward attention of cuDNN on an H100, 413 and 595 TFLOP/s at
16k tokens (Shah et al. 2024, arXiv 2407.08608, figure 5). No measured kernel here has heads narrower than 128."""

_PRODUCT = (
    Parameter(name="share", start=0.6, low=0.2, high=1.0, belief=0.3),
    Parameter(name="fill", start=100.0, low=0.0, high=1000.0, belief=200.0),
    Parameter(name="small_tile", start=0.5, low=0.0, high=2.0, belief=0.5),
    Parameter(name="started_wave", start=0.5, low=0.0, high=1.0, belief=0.5),
    Parameter(name="memory", start=0.8, low=0.2, high=1.0, belief=0.3),
    Parameter(name="launch_s", start=2e-6, low=0.0, high=50e-6, belief=5e-6),
)
_ATTENTION = (
    Parameter(name="share", start=0.5, low=0.1, high=1.0, belief=0.3),
    Parameter(name="tail", start=1.0, low=0.0, high=10.0, belief=2.0),
    Parameter(name="wide", start=0.0, low=-1.0, high=3.0, belief=1.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelErrors:
    """How far a model is from measured kernels of one kind on one device, over folds that it was not fitted on."""

    gpu: str
    kernel: str
    rows: int
    mape_pct: float
    signed_pct: float
    worst_pct: float


def fit_kernels(
    kernels: Sequence[MeasuredKernel], gpu: str, device: DeviceKind, multiprocessors: int
) -> tuple[KernelFit, tuple[KernelErrors, ...]]:
    """Everything that the kernels measured on `gpu` say of a device, and cross-validated errors by kind of kernel."""

    def product(rows: Sequence[MeasuredProduct | MeasuredGroup]) -> Callable[[Mapping[str, float]], Floats]:
        def residuals(x: Mapping[str, float]) -> Floats:
            fit = ProductFit(**x)
            predicted = [
                product_seconds(
                    row.product,
                    fit,
                    multiprocessors=multiprocessors,
                    peak_flop_per_s=row.peak_flop_per_s,
                    bytes_per_s=device.memory_bandwidth,
                )
                for row in rows
            ]
            return np.asarray(np.log(np.array(predicted) / np.array([row.seconds for row in rows])))

        return residuals

    def attention(rows: Sequence[MeasuredAttention]) -> Callable[[Mapping[str, float]], Floats]:
        def residuals(x: Mapping[str, float]) -> Floats:
            fit = _attention(x, x)
            backward = isinstance(rows[0], MeasuredAttentionBackward)
            predicted = [
                attention_seconds(
                    1.0,
                    fit,
                    blocks=row.blocks,
                    width=row.width,
                    backward=backward,
                    multiprocessors=multiprocessors,
                    peak_flop_per_s=1.0,
                )
                for row in rows
            ]
            return np.asarray(np.log(np.array(predicted) * np.array([row.visible_share for row in rows])))

        return residuals

    products, groups = of_kind(kernels, MeasuredProduct, gpu), of_kind(kernels, MeasuredGroup, gpu)
    forward, backward = (
        of_kind(kernels, MeasuredAttentionForward, gpu),
        of_kind(kernels, MeasuredAttentionBackward, gpu),
    )
    single, single_errors = _cross_validated(gpu, "matmul", products, product, _PRODUCT)
    grouped, grouped_errors = _cross_validated(gpu, "group_matmul", groups, product, _PRODUCT)
    there, there_errors = _cross_validated(gpu, "sdp_fwd", forward, attention, _ATTENTION)
    back, back_errors = _cross_validated(gpu, "sdp_bwd", backward, attention, _ATTENTION)
    fit = KernelFit(
        multiprocessors=multiprocessors,
        products={"bf16": ProductFit(**single)},
        grouped={"bf16": ProductFit(**grouped)},
        attention=_attention(there, back),
        memory=max(single["memory"], grouped["memory"]),
    )
    return fit, (single_errors, grouped_errors, there_errors, back_errors)


def _attention(forward: Mapping[str, float], backward: Mapping[str, float]) -> AttentionFit:
    return AttentionFit(
        forward=forward["share"],
        backward=backward["share"],
        forward_tail=forward["tail"],
        backward_tail=backward["tail"],
        narrow=NARROW,
        forward_wide=forward["wide"],
        backward_wide=backward["wide"],
    )


def _cross_validated(
    gpu: str,
    kernel: str,
    rows: Sequence[MeasuredKernel],
    residuals: Callable[..., Callable[[Mapping[str, float]], Floats]],
    parameters: Sequence[Parameter],
) -> tuple[dict[str, float], KernelErrors]:
    """The fit on all rows, and errors of every row by a fit on the other folds (every fifth row is one)."""

    def fitted(some: Sequence[MeasuredKernel]) -> dict[str, float]:
        found = solve(parameters, residuals(some), pull=PULL, soft=SOFT)
        return {each.name: found[each.name] for each in parameters}

    errors: list[Floats] = []
    for fold in range(FOLDS):
        kept = [row for place, row in enumerate(rows) if place % FOLDS != fold]
        errors.append(np.expm1(residuals(rows[fold::FOLDS])(fitted(kept))))
    every = 100 * np.concatenate(errors)
    return fitted(rows), KernelErrors(
        gpu=gpu,
        kernel=kernel,
        rows=len(rows),
        mape_pct=float(np.mean(np.abs(every))),
        signed_pct=float(np.mean(every)),
        worst_pct=float(every[np.argmax(np.abs(every))]),
    )
