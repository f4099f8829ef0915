"""Shares of the peak by shape: whole tiles, whole waves, memory, tails: each in closed form."""

from dataclasses import replace

import pytest

from hops.cost.efficiency import (
    LARGEST_TILE,
    AttentionFit,
    KernelFit,
    Product,
    ProductFit,
    attention_seconds,
    product_seconds,
)
from hops.errors import UsageError

PLAIN = ProductFit(share=0.8, fill=0.0, small_tile=1.0, started_wave=1.0, memory=1.0)
DEVICE = {"multiprocessors": 100, "peak_flop_per_s": 1e15, "bytes_per_s": 1e13}


def product(rows, columns, inner=4096, batch=1, size=0.0):
    return Product(rows=rows, columns=columns, inner=inner, batch=batch, bytes=size)


def seconds(shape, fit=PLAIN):
    return product_seconds(shape, fit, **DEVICE)


def test_whole_tiles_in_whole_waves_reach_the_share():
    shape = product(256 * 10, 128 * 10)  # 100 tiles for 100 multiprocessors
    flop = 2 * shape.rows * shape.columns * shape.inner
    assert seconds(shape) == pytest.approx(flop / (0.8 * 1e15), rel=1e-12)


def test_one_tile_more_costs_a_wave_more():
    """With started waves paid whole, 101 of the largest tiles take as long as 200."""
    full, over = product(256 * 10, 128 * 10), product(256 * 10, 128 * 10, batch=2)
    assert seconds(over) == pytest.approx(2 * seconds(full), rel=1e-12)
    slightly = product(256 * 10 + 1, 128 * 10)
    assert seconds(slightly) > 1.2 * seconds(full)
    assert seconds(slightly) <= 2 * seconds(full)


def test_a_started_wave_may_be_paid_in_part():
    shape = product(256 * 15, 128 * 10)  # a wave and a half of the largest tiles
    steep = replace(PLAIN, small_tile=5.0)  # so that no smaller tile is chosen
    half = seconds(shape, replace(steep, started_wave=0.5))
    assert half == pytest.approx(seconds(product(256 * 10, 128 * 10), steep) * (1.5 + 0.5 * 0.5), rel=1e-12)


def test_a_tile_that_sticks_out_is_computed_whole():
    steep = replace(PLAIN, small_tile=9.0)
    assert seconds(product(2500, 1280), steep) == seconds(product(2560, 1280), steep)


def test_small_products_take_smaller_tiles_that_are_slower_by_their_flops_per_byte():
    assert seconds(product(64, 64)) == pytest.approx(
        2 * 100 * 64 * 64 * 4096 / (0.8e15) / (32 / LARGEST_TILE), rel=1e-12
    )


def test_filling_a_tile_costs_elements_of_the_inner_dimension():
    filled = replace(PLAIN, fill=512.0)
    assert seconds(product(2560, 1280, 512), filled) == pytest.approx(2 * seconds(product(2560, 1280, 512)), rel=1e-12)


def test_no_product_is_faster_than_memory_and_every_launch_costs():
    fit = replace(PLAIN, memory=0.5, launch_s=3e-6)
    assert seconds(product(64, 64, 64, size=1e9), fit) == pytest.approx(1e9 / (0.5 * 1e13) + 3e-6, rel=1e-12)


ATTENTION = AttentionFit(
    forward=0.6, backward=0.5, forward_tail=2.0, backward_tail=1.0, narrow=0.5, forward_wide=0.25, backward_wide=1.0
)


def attention(blocks=1e12, width=128, *, backward=False):
    return attention_seconds(
        1e12, ATTENTION, blocks=blocks, width=width, backward=backward, multiprocessors=100, peak_flop_per_s=1e15
    )


def test_attention_of_many_blocks_reaches_its_share():
    assert attention() == pytest.approx(1e12 / 0.6e15)
    assert attention(backward=True) == pytest.approx(1e12 / 0.5e15)


def test_few_blocks_leave_a_tail_of_waves():
    assert attention(blocks=100) == pytest.approx(3 * attention())
    assert attention(blocks=200, backward=True) == pytest.approx(1.5 * attention(backward=True))


def test_narrow_and_wide_heads_are_slower_by_their_powers():
    assert attention(width=32) == pytest.approx(2 * attention())
    assert attention(width=256) == pytest.approx(2**0.25 * attention())
    assert attention(width=256, backward=True) == pytest.approx(2 * attention(backward=True))


def test_a_share_beyond_the_peak_is_refused():
    with pytest.raises(UsageError, match=r"share of products must be above 0 and at most 1, but got 1\.2"):
        replace(PLAIN, share=1.2)


def test_a_device_knows_bf16_and_takes_it_for_types_it_does_not_know():
    fp8 = replace(PLAIN, share=0.7)
    fit = KernelFit(
        multiprocessors=100,
        products={"bf16": PLAIN, "fp8": fp8},
        grouped={"bf16": PLAIN},
        attention=ATTENTION,
        memory=0.8,
    )
    assert fit.product("fp8", grouped=False) is fp8
    assert fit.product("fp8", grouped=True) is PLAIN
    assert fit.product("", grouped=False) is PLAIN
    with pytest.raises(UsageError, match="products of a device must have a fit of bf16"):
        replace(fit, products={"fp8": fp8})
