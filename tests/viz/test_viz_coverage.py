"""Boxes too narrow to see are an image that shows exactly how much of each pixel they cover."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from hops.program.action import Op
from hops.trace.trace import Stream, Trace, TraceMeta
from hops.viz.canvas import blank
from hops.viz.coverage import IMAGE_FROM, coverage, too_narrow
from hops.viz.lanes import Lanes, draw_boxes
from hops.viz.overlays import IMAGE_FROM as MANY_MESSAGES
from hops.viz.overlays import draw_strip
from hops.viz.style import DPI, MESSAGE, OPS
from hops.viz.window import TimeUnit, Window

LANES, PIXELS = 3, 40


def boxes_of(seed, count=500):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.choice([rng.uniform(0, PIXELS, (count, 2)), rng.integers(0, PIXELS + 1, (count, 2))]), axis=1)
    return rng.integers(0, LANES, count), edges[:, 0].astype(float), edges[:, 1].astype(float)


@pytest.mark.parametrize("seed", range(6))
def test_coverage_is_the_overlap_of_every_box_with_every_pixel(seed):
    lane, left, right = boxes_of(seed)
    expected = np.zeros((LANES, PIXELS))
    for pixel in range(PIXELS):
        overlap = np.clip(np.minimum(right, pixel + 1) - np.maximum(left, pixel), 0, None)
        np.add.at(expected[:, pixel], lane, overlap)
    found = coverage(lane, left, right, lanes=LANES, pixels=PIXELS)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert found.sum() == pytest.approx((right - left).sum())


@pytest.mark.parametrize(
    ("count", "width_pt", "narrow"), [(IMAGE_FROM, 1.1, True), (IMAGE_FROM, 1.3, False), (99, 0.1, False)]
)
def test_only_many_boxes_below_two_pixels_are_too_narrow(count, width_pt, narrow):
    assert too_narrow(np.full(count, width_pt)) is narrow


def many(stream, half=IMAGE_FROM):
    """On rank 0 a forward of 1 us and a backward of 3 us, again and again; rank 1 idles in every second microsecond."""
    n = np.arange(half)
    start = np.concatenate([4000 * (n // 2) + 1000 * (n % 2), 2000 * n])
    length = np.concatenate([np.where(n % 2, 3000, 1000), np.full(half, 1000)])
    op = np.concatenate([np.where(n % 2, Op.B, Op.F), np.full(half, Op.F)])
    rank = np.repeat([0, 1], half)
    columns = {"rank": rank, "stage": rank, "op": op, "start_ns": start, "end_ns": start + length}
    columns |= {"iteration": 0 * rank, "stream": 0 * rank + stream, "microbatch": 0 * rank, "bytes": 0 * rank}
    meta = TraceMeta(
        source="simulated", num_microbatches=1, rank_of_stage=(0, 1), devices=("a", "b"), hosts=("a", "b"), routes={}
    )
    return Trace.from_columns(columns | {"peer": 1 - rank}, meta)


def drawn(draw, half=IMAGE_FROM):
    """The pixels of each lane, shape (2, 20, 1000, 3), in what `draw(axes, lanes, window)` draws; and the artists."""
    window = Window(start_ns=0, end_ns=2000 * half, iterations=(), starts_ns=())
    unit = TimeUnit(name="us", ns=1000)
    width_pt = 1000 * 72 / DPI
    lanes = Lanes(boxes=(0.0, 1.0), origin_ns=0, unit=unit, pt_per_x=width_pt / (2 * half), pt_per_y=12.0)
    with blank(width_in=width_pt / 72, height_in=24 / 72) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, 2 * half)
        axes.set_ylim(2, 0)
        draw(axes, lanes, window)
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3].reshape(2, 20, -1, 3) / 255
    return pixels, axes


def test_each_pixel_shows_the_shares_of_its_ops_as_bands_from_the_foot_up():
    trace = many(Stream.COMPUTE, 20 * IMAGE_FROM)
    pixels, axes = drawn(lambda axes, lanes, window: draw_boxes(axes, trace, lanes, window), 20 * IMAGE_FROM)
    forward, backward, idle = (
        np.array(colour) for colour in (*(to_rgb(OPS[op].fill) for op in (Op.F, Op.B)), (1, 1, 1))
    )

    def share(lane, colour):
        return np.all(np.abs(pixels[lane] - colour) < 0.01, axis=2).mean(axis=0)

    for lane, shares in ((0, (0.25, 0.75, 0.0)), (1, (0.5, 0.0, 0.5))):
        for colour, part in zip((forward, backward, idle), shares, strict=True):
            assert share(lane, colour).mean() == pytest.approx(part, abs=0.03)
    np.testing.assert_allclose(pixels[0][-1], np.broadcast_to(forward, (1000, 3)), atol=0.01)  # F at the foot
    assert [image.get_gid() for image in axes.images] == 2 * ["shares"]
    assert not axes.collections


def test_a_strip_of_many_messages_is_as_dark_as_they_are_under_way():
    trace = many(Stream.MESSAGE, MANY_MESSAGES)
    pixels, axes = drawn(lambda axes, lanes, window: draw_strip(axes, trace, lanes, (0.0, 1.0), window), MANY_MESSAGES)
    ink = np.array(to_rgb(MESSAGE))
    for lane, under_way in enumerate((1.0, 0.5)):
        shown = 0.4**under_way
        np.testing.assert_allclose(pixels[lane].mean(axis=(0, 1)), (1 - shown) * ink + shown, atol=0.01)
    assert [image.get_gid() for image in axes.images] == 2 * ["messages"]
