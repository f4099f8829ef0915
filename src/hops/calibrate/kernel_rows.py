"""Measured kernels as published: the shape of a product, of a group of products, or of attention, and its share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from hops.cost.efficiency import ROWS_OF_QUERIES, Product
from hops.decode.decode import Where, decode, from_json, read_text, tagged
from hops.decode.quantities import Count, Flag, Positive
from hops.errors import UsageError

EXPECTED = "measured kernels, a JSON object on each line with gpu, kernel, its shape, peak_tflops and share_of_peak"
FP32_BYTES, BF16_BYTES = 4, 2
K = TypeVar("K", bound="MeasuredKernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredKernel:
    """Of all kinds: where it ran, and the share of the peak that it reached, with the FLOPs that its source counts."""

    gpu: str
    peak_tflops: Positive
    share_of_peak: Positive

    @property
    def peak_flop_per_s(self) -> float:
        return self.peak_tflops * 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredProduct(MeasuredKernel):
    """b x (m x k) @ (k x n); with `accumulate` it adds to what is there."""

    b: Count
    m: Count
    n: Count
    k: Count
    accumulate: Flag
    out_dtype: Literal["bf16", "fp32"]

    @property
    def product(self) -> Product:
        result = (FP32_BYTES if self.out_dtype == "fp32" else BF16_BYTES) * (2 if self.accumulate else 1)
        moved = self.b * (BF16_BYTES * (self.m * self.k + self.k * self.n) + result * self.m * self.n)
        return Product(rows=self.m, columns=self.n, inner=self.k, batch=self.b, bytes=moved)

    @property
    def seconds(self) -> float:
        return 2 * self.b * self.m * self.n * self.k / (self.share_of_peak * self.peak_flop_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGroup(MeasuredKernel):
    """`ng` experts with M tokens each: Y = X A (M x K by K x N), dX = dY A^T, or dA = X^T dY added in fp32."""

    ng: Count
    M: Count
    N: Count
    K: Count
    stage: Literal["fwd", "bwd_grad_act", "bwd_grad_w"]

    @property
    def product(self) -> Product:
        m, n, k = {
            "fwd": (self.M, self.N, self.K),
            "bwd_grad_act": (self.M, self.K, self.N),
            "bwd_grad_w": (self.K, self.N, self.M),
        }[self.stage]
        result = 2 * FP32_BYTES if self.stage == "bwd_grad_w" else BF16_BYTES
        moved = self.ng * (BF16_BYTES * (m * k + k * n) + result * m * n)
        return Product(rows=m, columns=n, inner=k, batch=self.ng, bytes=moved)

    @property
    def seconds(self) -> float:
        return 2 * self.ng * self.M * self.N * self.K / (self.share_of_peak * self.peak_flop_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAttention(MeasuredKernel):
    """Fused causal attention. Its source counts all scores, of which a causal kernel computes half."""

    batch: Count
    seq_len: Count
    head_num: Count
    kv_head_num: Count
    qk_head_dim: Count
    v_head_dim: Count

    @property
    def blocks(self) -> int:
        return self.batch * self.head_num * -(-self.seq_len // ROWS_OF_QUERIES)

    @property
    def width(self) -> float:
        return (self.qk_head_dim + self.v_head_dim) / 2

    @property
    def visible_share(self) -> float:
        return self.share_of_peak / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAttentionForward(MeasuredAttention):
    """Of the forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAttentionBackward(MeasuredAttention):
    """Of the backward pass, 2.5 times the FLOPs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestProduct(MeasuredKernel):
    """The best of many shapes of products (MAMF: maximum achievable matmul FLOPS)."""

    precision: Literal["bf16", "fp8"]
    m: Count
    n: Count
    k: Count


KINDS: dict[str, type[MeasuredKernel]] = {
    "matmul": MeasuredProduct,
    "group_matmul": MeasuredGroup,
    "sdp_fwd": MeasuredAttentionForward,
    "sdp_bwd": MeasuredAttentionBackward,
    "matmul_best_shape": BestProduct,
}


def read_kernels(path: Path) -> tuple[MeasuredKernel, ...]:
    """All kernels of a file of JSON lines. Raises UsageError with everything that is wrong in the first wrong line."""
    text = read_text(path, error=UsageError, expected=EXPECTED)
    kernels: list[MeasuredKernel] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            where = Where(name=str(path), line=number, strict=False)
            kind, rest = tagged(from_json(line, where), "kernel", KINDS, where)
            kernels.append(decode(kind, rest, where))
    return tuple(kernels)


def of_kind(kernels: Sequence[MeasuredKernel], kind: type[K], gpu: str) -> list[K]:
    """The kernels of one kind on one device."""
    return [each for each in kernels if isinstance(each, kind) and each.gpu == gpu]
