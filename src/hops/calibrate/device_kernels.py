"""What kernels reach on every device: its own measured ones, else those of the device that is most like it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hops.calibrate.fit_kernels import KernelErrors, fit_kernels
from hops.calibrate.kernel_rows import BestProduct, MeasuredKernel, of_kind
from hops.cost.efficiency import AttentionFit, KernelFit, ProductFit
from hops.errors import UsageError
from hops.hardware.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDevice:
    """A device of the catalog in the words of the kernels' tables.

    Attributes:
        multiprocessors: that it has.
        measured: name in the tables of its kernels, or of those of the device that is most like it.
        best: name in the table of best shapes; empty: none.
        attention: of its own where `measured` is another device's.
    """

    multiprocessors: int
    measured: str
    best: str = ""
    attention: AttentionFit | None = None


HOPPER = AttentionFit(
    forward=0.55, backward=0.45, forward_tail=1.6, backward_tail=0.7, narrow=0.53, forward_wide=0.06, backward_wide=0.3
)
"""cuDNN on an H100 at 8k to 16k tokens, causal, of 989 TFLOP/s: forward 529 to 539 for heads of 128 (509 of 256);
backward 516 without a mask, of which a mask costs an eighth as it does forward (Shah et al. 2024, arXiv 2407.08608,
figures 5 and 6). Tails as on the A100."""

DEVICES: Mapping[str, KnownDevice] = {
    "a100-sxm-80": KnownDevice(multiprocessors=108, measured="A100-PCIe-80GB", best="NVIDIA A100 SXM"),
    "a100-sxm-40": KnownDevice(multiprocessors=108, measured="A100-PCIe-80GB", best="NVIDIA A100 SXM"),
    "a100-pcie-80": KnownDevice(multiprocessors=108, measured="A100-PCIe-80GB", best="NVIDIA A100 PCIe"),
    "a100-pcie-40": KnownDevice(multiprocessors=108, measured="A100-PCIe-80GB", best="NVIDIA A100 PCIe"),
    "v100-sxm-16": KnownDevice(multiprocessors=80, measured="A100-PCIe-80GB"),
    "v100-sxm-32": KnownDevice(multiprocessors=80, measured="A100-PCIe-80GB"),
    "h100-sxm": KnownDevice(multiprocessors=132, measured="A100-PCIe-80GB", best="NVIDIA H100 SXM", attention=HOPPER),
    "h200-sxm": KnownDevice(multiprocessors=132, measured="A100-PCIe-80GB", best="NVIDIA H100 SXM", attention=HOPPER),
    "h800-sxm": KnownDevice(multiprocessors=132, measured="A100-PCIe-80GB", best="NVIDIA H100 SXM", attention=HOPPER),
    "b200-sxm": KnownDevice(multiprocessors=148, measured="B200", best="NVIDIA B200 SXM"),
    "b300-sxm": KnownDevice(multiprocessors=148, measured="B200", best="NVIDIA B300 SXM"),
    "gb200": KnownDevice(multiprocessors=148, measured="B200", best="NVIDIA GB200 SXM"),
    "gb300": KnownDevice(multiprocessors=148, measured="B200", best="NVIDIA GB200 SXM"),
}


def device_kernels(
    kernels: Sequence[MeasuredKernel],
) -> tuple[dict[str, KernelFit], tuple[KernelErrors, ...]]:
    """Kernels of every known device, and errors of those that were measured. Raises UsageError if one was not.

    A device that borrows another's shapes keeps the ratio of its own best product to the other's.
    """
    catalog = Catalog.load()
    fits: dict[str, KernelFit] = {}
    errors: list[KernelErrors] = []
    owners = {"A100-PCIe-80GB": "a100-pcie-80", "B200": "b200-sxm"}
    for gpu, name in owners.items():
        if not any(each.gpu == gpu for each in kernels):
            raise UsageError(f"no kernels of {gpu} are among those measured, expected some: other devices borrow them")
        fits[gpu], found = fit_kernels(kernels, gpu, catalog.device(name), DEVICES[name].multiprocessors)
        errors += found
    return {
        name: _own(device, fits[device.measured], kernels, DEVICES[owners[device.measured]])
        for name, device in DEVICES.items()
    }, tuple(errors)


def _own(device: KnownDevice, fit: KernelFit, kernels: Sequence[MeasuredKernel], owner: KnownDevice) -> KernelFit:
    best = {each.precision: each.share_of_peak for each in of_kind(kernels, BestProduct, device.best)}
    usual = {each.precision: each.share_of_peak for each in of_kind(kernels, BestProduct, owner.best)}
    ratio = best["bf16"] / usual["bf16"] if "bf16" in best and "bf16" in usual else 1.0
    products, grouped = fit.products["bf16"], fit.grouped["bf16"]
    found = {"bf16": _scaled(products, ratio)}
    groups = {"bf16": _scaled(grouped, ratio)}
    if "fp8" in best and "bf16" in best:  # as much less of its peak as the best shapes have
        found["fp8"] = _scaled(products, ratio * best["fp8"] / best["bf16"])
        groups["fp8"] = _scaled(grouped, ratio * best["fp8"] / best["bf16"])
    return replace(
        fit,
        multiprocessors=device.multiprocessors,
        products=found,
        grouped=groups,
        attention=fit.attention if device.attention is None else device.attention,
    )


def _scaled(fit: ProductFit, ratio: float) -> ProductFit:
    return replace(fit, share=min(1.0, fit.share * ratio))
