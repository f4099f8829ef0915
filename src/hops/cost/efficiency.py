"""Which share of a device's peak a kernel reaches, by its shape: products of matrices, grouped ones, fused attention.

One share for all products is wrong twice: a small product leaves multiprocessors idle, and a large one reaches 0.8 of
the peak on one device and 0.5 on another. The model here has few parameters, each of which is a thing one can name:

* a product is cut into tiles, and a tile that sticks out is computed whole (tile quantisation);
* the multiprocessors take tiles in waves, and a started wave is paid as one, at least in part (wave quantisation);
* a small tile moves more bytes per flop and is slower; a tile's pipeline fills and drains along the inner dimension;
* no product is faster than its operands come from memory.

NVIDIA, "Matrix Multiplication Background User's Guide" (docs.nvidia.com/deeplearning/performance), sections 2 and 3,
names the first two. The parameters are fitted on measured kernels by `hops calibrate`, and stand in a profile.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hops.decode.quantities import Count, Number, Positive, Probability
from hops.errors import UsageError

TILES = ((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64))
"""Tiles that libraries choose from, rows x columns (the guide above, figure 4, and CUTLASS's defaults)."""
LARGEST_TILE = 256 * 128 / (256 + 128)  # flops per element that a tile reads, over two
ROWS_OF_QUERIES = 128  # that one block of fused attention takes (Dao 2023, arXiv 2307.08691, section 3.2)
USUAL_WIDTH = 128  # of a head
USUAL_TYPE = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFit:
    """Products of matrices of one type on one kind of device.

    Attributes:
        share: of the peak, that a product without end reaches.
        fill: elements of the inner dimension that the filling and draining of a tile's pipeline costs.
        small_tile: power with which a tile's speed falls with its flops per byte.
        started_wave: what of the last, not full wave is paid though nothing runs; 1: the wave is paid whole.
        memory: share of the memory's bandwidth that operands and result are moved at.
        launch_s: per product.
    """

    share: Positive
    fill: Number
    small_tile: Number
    started_wave: Probability
    memory: Positive
    launch_s: Number = 0.0

    def __post_init__(self) -> None:
        for name in ("share", "memory"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} of products must be above 0 and at most 1, but got {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFit:
    """Fused attention on one kind of device. Shares count the visible half of the scores only.

    Attributes:
        forward, backward: shares of the peak for heads of 128 and more blocks than the device holds at once.
        forward_tail, backward_tail: waves of blocks that the end of a launch costs, when few blocks are left.
        narrow: power with which both shares fall with heads narrower than 128.
        forward_wide, backward_wide: powers with which they fall with heads wider than that.
    """

    forward: Positive
    backward: Positive
    forward_tail: Number
    backward_tail: Number
    narrow: Number
    forward_wide: float
    backward_wide: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # rates that hold one are keys of caches
class KernelFit:
    """What the kernels of one kind of device reach, under one framework.

    Attributes:
        multiprocessors: that share the tiles of a launch.
        products: by type (bf16, fp8).
        grouped: many products of one launch (experts), by type.
        memory: share of the bandwidth that passes over memory reach.
        sustained: share of all products and of attention that whole iterations reach: clocks fall under long load.
    """

    multiprocessors: Count
    products: Mapping[str, ProductFit]
    grouped: Mapping[str, ProductFit]
    attention: AttentionFit
    memory: Positive
    sustained: Positive = 1.0

    def __post_init__(self) -> None:
        for name in ("products", "grouped"):
            if USUAL_TYPE not in getattr(self, name):
                raise UsageError(f"{name} of a device must have a fit of {USUAL_TYPE}, that of all others by default")

    def product(self, format_: str, *, grouped: bool) -> ProductFit:
        """The fit of a type; that of bf16 where there is none."""
        fits = self.grouped if grouped else self.products
        return fits[format_] if format_ in fits else fits[USUAL_TYPE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`batch` products (rows x inner) @ (inner x columns) of one launch, and the bytes they move."""

    rows: int
    columns: int
    inner: int
    batch: int = 1
    bytes: float


def product_seconds(
    product: Product, fit: ProductFit, *, multiprocessors: int, peak_flop_per_s: float, bytes_per_s: float
) -> float:
    """Seconds of one launch: the fastest tile's, or its operands' way through memory, and the launch.

    Args:
        product: its shape.
        fit: of its type on this device.
        multiprocessors: of the device.
        peak_flop_per_s: dense, of its type.
        bytes_per_s: peak of the device's memory.
    """
    tile_s: float = min(
        _waves(product, rows, columns, multiprocessors, fit.started_wave)
        * (rows * columns)
        / (rows * columns / (rows + columns) / LARGEST_TILE) ** fit.small_tile
        for rows, columns in TILES
    )
    flop = 2 * multiprocessors * tile_s * (product.inner + fit.fill)
    return max(flop / (fit.share * peak_flop_per_s), product.bytes / (fit.memory * bytes_per_s)) + fit.launch_s


def _waves(product: Product, rows: int, columns: int, multiprocessors: int, started: float) -> float:
    """Waves of tiles: the full ones, and of the last one what runs and `started` of what does not; one at least."""
    tiles = product.batch * -(-product.rows // rows) * -(-product.columns // columns)
    full, rest = divmod(tiles, multiprocessors)
    if rest == 0:
        return full
    part = rest / multiprocessors
    return max(1.0, full + part + started * (1 - part))


def attention_seconds(
    flop: float,
    fit: AttentionFit,
    *,
    blocks: float,
    width: float,
    backward: bool,
    multiprocessors: int,
    peak_flop_per_s: float,
) -> float:
    """Seconds of one launch of fused attention: flop / (share x peak) x (1 + tail x multiprocessors / blocks).

    A block is 128 queries of one head. With few blocks the launch ends while most multiprocessors have nothing left:
    that costs `tail` waves, whatever the number of blocks.

    Args:
        flop: of what is computed: the visible half of the scores of causal attention.
        fit: of this device.
        blocks: of all heads and samples.
        width: of a head; the mean of keys' and values' where they differ.
        backward: which direction.
        multiprocessors: of the device.
        peak_flop_per_s: dense, of the type that attention computes in.
    """
    share, tail, wide = (
        (fit.backward, fit.backward_tail, fit.backward_wide)
        if backward
        else (fit.forward, fit.forward_tail, fit.forward_wide)
    )
    relative = width / USUAL_WIDTH
    share *= float(relative**fit.narrow if relative < 1 else relative**-wide)
    return flop / (share * peak_flop_per_s) * (1 + tail * multiprocessors / blocks)
