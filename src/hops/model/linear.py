"""A linear layer on one device becomes three GEMMs: F, the gradient of its input, the gradient of its weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from hops.model.implementation import Implementation
from hops.model.kernels import Gemm, Kernels, Pass

FP32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Y = X A on one device: X of rows x inside, A of inside x out.

    Attributes:
        name: the term it belongs to.
        batch: matrices of the shape, each with rows of its own (experts).
        quantized: whether a recipe for fewer bits applies to it.
    """

    name: str
    rows: int
    inside: int
    out: int
    batch: int = 1
    quantized: bool = True

    @property
    def parameters(self) -> int:
        return self.batch * self.inside * self.out


def forward(linears: Iterable[Linear], how: Implementation) -> Kernels:
    """Y = X A: 2 x rows x in x out flops each."""
    return tuple(gemm(each, each.rows, each.out, each.inside, how) for each in linears)


def input_backward(linears: Iterable[Linear], how: Implementation) -> Kernels:
    """Gradients of the inputs, dX = dY A^T: as many flops as forward. From the last layer back."""
    return tuple(gemm(each, each.rows, each.inside, each.out, how) for each in reversed(tuple(linears)))


def weight_backward(linears: Iterable[Linear], how: Implementation) -> Kernels:
    """Gradients of the weights, dA = X^T dY: as many flops as forward. From the last layer back."""
    return tuple(gemm(each, each.inside, each.out, each.rows, how) for each in reversed(tuple(linears)))


def gemm(linear: Linear, rows: int, columns: int, inner: int, how: Implementation) -> Gemm:
    """One of the three products. Quantized, it reads operands of fewer bits and writes elements."""
    recipe = how.quantization if linear.quantized else None
    if recipe is None:
        return Gemm.dense(
            linear.name, rows=rows, columns=columns, inner=inner, element_bytes=how.element_bytes, batch=linear.batch
        )
    operands = recipe.operand_bytes * (rows * inner + inner * columns)
    return Gemm(
        name=linear.name,
        rows=rows,
        columns=columns,
        inner=inner,
        batch=linear.batch,
        bytes=linear.batch * ceil(operands + how.element_bytes * rows * columns),
        format=recipe.format,
    )


def casts(linears: Iterable[Linear], how: Implementation) -> Kernels:
    """What quantizing adds to F: inputs are read as elements and written twice, for both directions of use.

    Factors per tensor that are found now want one more reading. Weights are cast once for all microbatches.
    """
    return _cast(((each.rows, each.inside, each) for each in linears), how)


def gradient_casts(linears: Iterable[Linear], how: Implementation) -> Kernels:
    """What it adds to I: the same of the gradients of the outputs."""
    return _cast(((each.rows, each.out, each) for each in linears), how)


def _cast(tensors: Iterable[tuple[int, int, Linear]], how: Implementation) -> Kernels:
    recipe = how.quantization
    if recipe is None:
        return ()
    elements = sum(linear.batch * rows * width for rows, width, linear in tensors if linear.quantized)
    readings = 2 if recipe.scaling == "current" else 1
    moved = ceil(elements * (readings * how.element_bytes + 2 * recipe.operand_bytes))
    return (Pass(name="cast", bytes=moved),) if elements else ()


def gradient_accumulation(parameters: int, how: Implementation) -> Pass:
    """Adding a microbatch's weight gradients to the fp32 ones.

    Fused, the GEMM reads and writes fp32 instead of writing elements. Else a pass reads elements, reads and writes
    fp32.
    """
    per_parameter = 2 * FP32_BYTES + (-how.element_bytes if how.fused_gradient_accumulation else how.element_bytes)
    return Pass(name="gradient_accumulation", bytes=parameters * per_parameter)
