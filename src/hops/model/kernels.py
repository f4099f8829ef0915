"""A kernel is what one GPU launch computes or moves, counted in flops and bytes and not yet in seconds."""

from dataclasses import dataclass, replace
from typing import Literal

from hops.axes import Axis

GemmFormat = Literal["", "fp8", "fp4"]
WEIGHT_BACKWARD = "weight_backward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """Matrix products (rows x inner) @ (inner x columns) under one name.

    Attributes:
        name: the term it belongs to, such as `mlp`.
        batch: products in one launch (heads of attention).
        calls: launches of this kind.
        bytes: what one launch reads and writes.
        working_set: bytes of the tensor that it shares with the kernels beside it; 0: it shares none, but streams.
        format: number format of both operands where it is not the run's own: fp8 or fp4; empty: the run's own.
        fused: direction of fused attention, whose products follow one another inside one launch; empty: it is not.
    """

    name: str
    rows: int
    columns: int
    inner: int
    batch: int = 1
    calls: int = 1
    bytes: int
    working_set: int = 0
    format: GemmFormat = ""
    fused: Literal["", "forward", "backward"] = ""

    @classmethod
    def dense(cls, name: str, *, rows: int, columns: int, inner: int, element_bytes: int, batch: int = 1) -> "Gemm":
        """A product that reads both operands and writes its result once."""
        moved = batch * element_bytes * (rows * inner + inner * columns + rows * columns)
        return cls(name=name, rows=rows, columns=columns, inner=inner, batch=batch, bytes=moved)

    @property
    def flop(self) -> int:
        """Of all calls; a multiply-add counts two."""
        return 2 * self.rows * self.columns * self.inner * self.batch * self.calls

    @property
    def total_bytes(self) -> int:
        return self.bytes * self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Passes over memory that compute next to nothing: elementwise kernels, softmax, norms.

    Attributes:
        name: the term it belongs to.
        calls: times that `bytes` are moved.
        bytes: read and written each time.
        working_set: bytes of the tensor that it shares with the kernels beside it; 0: it shares none, but streams.
    """

    name: str
    calls: int = 1
    bytes: int
    working_set: int = 0

    @property
    def flop(self) -> int:
        return 0

    @property
    def total_bytes(self) -> int:
        return self.bytes * self.calls


GroupPart = Literal["whole", "inner", "outer"]
CollectiveKind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """What the devices of a group exchange in one call, counted before any network.

    Attributes:
        name: the term it belongs to, such as `tensor`.
        kind: all-reduce, all-gather, reduce-scatter, all-to-all, or ring (each member sends to the next one).
        axis: whose groups exchange.
        bytes: of the whole tensor: what an all-reduce sums, what every member holds after an all-gather or before a
            reduce-scatter, what every member has to hand out in an all-to-all (its own part included), what a member
            sends on in one step of a ring.
        calls: calls of this kind.
        hides_under: name of the term whose kernels of the same op may run meanwhile; `weight_backward`: those of W may,
            where B runs as one, and nothing may in an I by itself; empty: nothing may, all of it is exposed.
        part: which members of the axis' group exchange in one call: all of them, or with hierarchical context
            parallelism those of an inner group (neighbours, `Shards.context_inner` of them) or of an outer one (one
            of each inner group).
    """

    name: str
    kind: CollectiveKind
    axis: Axis
    bytes: int
    calls: int = 1
    hides_under: str = ""
    part: GroupPart = "whole"

    @property
    def flop(self) -> int:
        return 0

    @property
    def total_bytes(self) -> int:
        return self.bytes * self.calls


Kernel = Gemm | Pass | Collective
Kernels = tuple[Kernel, ...]


def repeat(kernels: Kernels, times: int) -> Kernels:
    """The same kernels, each launched `times` as often; none for 0 times."""
    return tuple(replace(kernel, calls=kernel.calls * times) for kernel in kernels) if times else ()


def rename(kernels: Kernels, name: str) -> Kernels:
    """The same kernels as parts of another term; a collective that hid under one of theirs hides under that term."""
    return tuple(_renamed(kernel, name) for kernel in kernels)


def _renamed(kernel: Kernel, name: str) -> Kernel:
    if isinstance(kernel, Collective) and kernel.hides_under:
        return replace(kernel, name=name, hides_under=name)
    return replace(kernel, name=name)


def collectives(kernels: Kernels) -> tuple[Collective, ...]:
    """Those of the kernels that take the time of a network."""
    return tuple(kernel for kernel in kernels if isinstance(kernel, Collective))
