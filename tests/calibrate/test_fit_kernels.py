"""Measured kernels become shares: reading them, and finding again what made them."""

import json

import pytest

from hops.calibrate.fit_kernels import fit_kernels
from hops.calibrate.kernel_rows import (
    BestProduct,
    MeasuredAttentionBackward,
    MeasuredAttentionForward,
    MeasuredGroup,
    MeasuredProduct,
    of_kind,
    read_kernels,
)
from hops.cost.efficiency import AttentionFit, ProductFit, attention_seconds, product_seconds
from hops.errors import UsageError
from hops.hardware.catalog import Catalog

DEVICE = Catalog.load().device("a100-pcie-80")
PEAK = 312.0
TRUE = ProductFit(share=0.7, fill=150.0, small_tile=0.4, started_wave=0.5, memory=0.85)
ATTENTION = AttentionFit(
    forward=0.6, backward=0.5, forward_tail=1.5, backward_tail=0.7, narrow=0.53, forward_wide=0.4, backward_wide=0.9
)
SIZES = (512, 768, 1024, 1536, 2048, 4096, 5120, 8192)


def made():
    """Kernels as TRUE and ATTENTION have them."""
    rows = []
    for place, m in enumerate(SIZES):
        for n in SIZES:
            row = {"kernel": "matmul", "b": 1, "m": m, "n": n, "k": SIZES[-1 - place], "accumulate": False}
            rows.append({**row, "out_dtype": "bf16"})
            rows.append({"kernel": "group_matmul", "ng": 8, "M": m, "N": n, "K": SIZES[-1 - place], "stage": "fwd"})
    for heads in (4, 8, 16, 32, 64):
        for width in (128, 192):
            head = {"batch": 1, "seq_len": 4096, "head_num": heads, "kv_head_num": heads, "v_head_dim": 128}
            rows += [{"kernel": kernel, "qk_head_dim": width, **head} for kernel in ("sdp_fwd", "sdp_bwd")]
    return [{"gpu": "A", "peak_tflops": PEAK, "share_of_peak": 1.0, **row} for row in rows]


def with_shares(path):
    kernels = read_kernels(path)
    lines = []
    for row, kernel in zip(made(), kernels, strict=True):
        if isinstance(kernel, MeasuredProduct | MeasuredGroup):
            predicted = product_seconds(
                kernel.product,
                TRUE,
                multiprocessors=108,
                peak_flop_per_s=PEAK * 1e12,
                bytes_per_s=DEVICE.memory_bandwidth,
            )
            share = kernel.seconds / predicted
        else:
            share = 2 / attention_seconds(
                1.0,
                ATTENTION,
                blocks=kernel.blocks,
                width=kernel.width,
                backward=isinstance(kernel, MeasuredAttentionBackward),
                multiprocessors=108,
                peak_flop_per_s=1.0,
            )
        lines.append(json.dumps({**row, "share_of_peak": share}))
    path.write_text("\n".join(lines))
    return read_kernels(path)


def test_a_fit_finds_what_made_the_kernels(tmp_path):
    path = tmp_path / "kernels.jsonl"
    path.write_text("\n".join(map(json.dumps, made())))
    fit, errors = fit_kernels(with_shares(path), "A", DEVICE, 108)
    assert [each.kernel for each in errors] == ["matmul", "group_matmul", "sdp_fwd", "sdp_bwd"]
    assert max(each.mape_pct for each in errors) < 0.5
    assert fit.products["bf16"].share == pytest.approx(TRUE.share, rel=0.01)
    assert fit.products["bf16"].fill == pytest.approx(TRUE.fill, rel=0.05)
    assert fit.attention.forward == pytest.approx(ATTENTION.forward, rel=0.01)
    assert fit.attention.backward_tail == pytest.approx(ATTENTION.backward_tail, rel=0.02)


def test_every_kind_is_read_with_its_own_shape(tmp_path):
    path = tmp_path / "kernels.jsonl"
    best = {"gpu": "B", "kernel": "matmul_best_shape", "precision": "fp8", "m": 1, "n": 2, "k": 3}
    best |= {"peak_tflops": 4500.0, "share_of_peak": 0.76}
    path.write_text("\n".join(map(json.dumps, [*made(), best])))
    kernels = read_kernels(path)
    assert len(of_kind(kernels, MeasuredProduct, "A")) == len(of_kind(kernels, MeasuredGroup, "A")) == 64
    assert len(of_kind(kernels, MeasuredAttentionForward, "A")) == 10
    (only,) = of_kind(kernels, BestProduct, "B")
    assert only.precision == "fp8"


def test_the_weight_gradient_of_a_group_is_a_product_over_its_tokens(tmp_path):
    path = tmp_path / "kernels.jsonl"
    row = {"gpu": "A", "kernel": "group_matmul", "peak_tflops": PEAK, "share_of_peak": 0.5}
    path.write_text(json.dumps({**row, "ng": 8, "M": 100, "N": 200, "K": 300, "stage": "bwd_grad_w"}))
    (group,) = read_kernels(path)
    shape = group.product
    assert (shape.rows, shape.columns, shape.inner, shape.batch) == (300, 200, 100, 8)
    assert shape.bytes == 8 * (2 * (300 * 100 + 100 * 200) + 8 * 300 * 200)


def test_a_wrong_line_is_named(tmp_path):
    path = tmp_path / "kernels.jsonl"
    path.write_text('{"gpu": "A", "kernel": "matmul", "m": "many"}\n')
    with pytest.raises(UsageError) as error:
        read_kernels(path)
    text = str(error.value)
    assert f"{path}:1" in text
    assert "m: got 'many'" in text
    path.write_text('{"gpu": "A", "kernel": "conv"}\n')
    with pytest.raises(UsageError, match="expected a mapping with kernel, one of matmul, group_matmul"):
        read_kernels(path)
