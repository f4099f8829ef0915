"""What one transformer layer launches for one microbatch: its GEMMs, its attention, its passes over memory.

GEMM flops follow Narayanan et al. 2021 (arXiv 2104.04473, appendix): for the classic shape F is sbh(24h + 4s),
I sbh(24h + 8s), W 24sbh^2, with s the sequence length, b samples, h hidden. Passes over memory are counted in
Megatron-LM's code (core/transformer, `transformer-impl local`, fused bias + GeLU and bias + dropout + add).
"""

from dataclasses import dataclass, replace

from hops.model.implementation import Implementation, Microbatch
from hops.model.kernels import Gemm, Kernels, Pass
from hops.model.transformer import Transformer

FP32_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """The kernels of one layer: F, I, W, and the attention core's part of F that selective recompute repeats."""

    forward: Kernels
    input_backward: Kernels
    weight_backward: Kernels
    attention_core: Kernels


def layer_work(model: Transformer, batch: Microbatch, how: Implementation) -> LayerWork:
    """All kernels of one layer for one microbatch."""
    core = attention_forward(model, batch, how)
    return LayerWork(
        forward=(*linear_forward(model, batch, how), *core, elementwise_forward(model, batch, how)),
        input_backward=(
            *linear_input_backward(model, batch, how),
            *attention_backward(model, batch, how),
            elementwise_backward(model, batch, how),
        ),
        weight_backward=(
            *linear_weight_backward(model, batch, how),
            gradient_accumulation(model.layer_matrix_parameters, how),
        ),
        attention_core=core,
    )


def _linears(model: Transformer) -> tuple[tuple[str, int, int], ...]:
    """Name, width in, width out of the layer's linear layers."""
    return (
        ("qkv", model.hidden, model.qkv_width),
        ("projection", model.query_width, model.hidden),
        ("mlp", model.hidden, model.up_width),
        ("mlp", model.ffn_hidden, model.hidden),
    )


def linear_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Y = X A per linear layer: 2 x tokens x in x out flops each."""
    return tuple(
        Gemm.dense(name, rows=batch.tokens, columns=out, inner=inside, element_bytes=how.element_bytes)
        for name, inside, out in _linears(model)
    )


def linear_input_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradients of the inputs, dX = dY A^T per linear layer: as many flops as forward."""
    return tuple(
        Gemm.dense(name, rows=batch.tokens, columns=inside, inner=out, element_bytes=how.element_bytes)
        for name, inside, out in reversed(_linears(model))
    )


def linear_weight_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradients of the weights, dA = X^T dY per linear layer: as many flops as forward."""
    return tuple(
        Gemm.dense(name, rows=inside, columns=out, inner=batch.tokens, element_bytes=how.element_bytes)
        for name, inside, out in reversed(_linears(model))
    )


def attention_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Scores Q K^T, softmax, and P V: 4 s^2 b h flops."""
    if how.attention == "flash":
        return _flash(model, batch, how, products=2, tensors=2)
    return (*_score_products(model, batch, how, products=2), _softmax_forward(model, batch, how))


def attention_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradients dV, dP, softmax, dQ, dK: 8 s^2 b h flops; flash attention computes Q K^T again on top (5 products)."""
    if how.attention == "flash":
        return _flash(model, batch, how, products=5, tensors=4)
    return (*_score_products(model, batch, how, products=4), _softmax_backward(model, batch, how))


def _score_products(model: Transformer, batch: Microbatch, how: Implementation, *, products: int) -> Kernels:
    """Batched products over all heads; each reads or writes the scores once."""
    side = batch.sequence_length
    product = Gemm.dense(
        "attention",
        rows=side,
        columns=side,
        inner=model.head_dim,
        batch=batch.samples * model.heads,
        element_bytes=how.element_bytes,
    )
    shared = replace(product, working_set=how.element_bytes * scores_elements(model, batch))
    return (shared,) * products


def _flash(model: Transformer, batch: Microbatch, how: Implementation, *, products: int, tensors: int) -> Kernels:
    """One launch that never writes the scores and skips the masked half: Dao 2023 (arXiv 2307.08691), sections 2-3.

    `tensors` of query width and of key width are moved: F reads Q, K, V and writes O; the backward pass reads these
    and dO and writes dQ, dK, dV.
    """
    moved = tensors * how.element_bytes * batch.tokens * (model.query_width + model.kv_width)
    visible = (batch.sequence_length + 1) // 2
    launch = Gemm(
        name="attention",
        rows=batch.sequence_length,
        columns=visible,
        inner=products * model.head_dim,
        batch=batch.samples * model.heads,
        bytes=moved,
    )
    return (launch,)


def scores_elements(model: Transformer, batch: Microbatch) -> int:
    """Elements of the score matrices of one layer: heads x s^2 x b."""
    return model.heads * batch.sequence_length**2 * batch.samples


def _softmax_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    """Mask and softmax each read and write the scores; dropout does as well and writes a byte of mask."""
    per_element = 4 * how.element_bytes + (2 * how.element_bytes + 1 if how.dropout else 0)
    return _score_pass(per_element, model, batch, how)


def _softmax_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    """Softmax reads gradient and output and writes (3 moves); dropout reads mask and gradient and writes.

    Megatron-LM masks in place on a view, whose gradient PyTorch copies, clones, masks (a clone and a fill) and copies
    back: 10 moves (torch/csrc/autograd/functions/tensor.cpp, CopySlices).
    """
    per_element = (3 + 10) * how.element_bytes + (2 * how.element_bytes + 1 if how.dropout else 0)
    return _score_pass(per_element, model, batch, how)


def _score_pass(per_element: int, model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    elements = scores_elements(model, batch)
    return Pass(name="softmax", bytes=per_element * elements, working_set=how.element_bytes * elements)


def elementwise_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    """Norms, biases, activation function, residuals, rotary positions, head transposition.

    Element moves per token: two norms read and write h (4h); two bias + dropout + add read two, write one (6h);
    the context is copied to token order (2q); the activation reads its input and writes ffn;
    QKV's bias and rotary positions each read and write what they change.
    """
    h, q = model.hidden, model.query_width
    moves = 4 * h + 6 * h + 2 * q + model.up_width + model.ffn_hidden
    moves += 2 * model.qkv_width if model.biases else 0
    moves += 2 * (q + model.kv_width) if model.positions == "rotary" else 0
    return _elementwise(moves, model, batch, how)


def elementwise_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    """Backward of the same.

    Element moves per token: norms read gradient and input, write (6h); residual gradients are added (6h);
    copies of the context's gradient (2q) and of QKV's (2 qkv); the activation reads gradient and input and writes;
    each bias gradient reads the gradient it sums; rotary positions turn back.
    """
    h, q = model.hidden, model.query_width
    moves = 6 * h + 6 * h + 2 * q + 2 * model.qkv_width + 2 * model.up_width + model.ffn_hidden
    moves += model.qkv_width + h + model.up_width + h if model.biases else 0
    moves += 2 * (q + model.kv_width) if model.positions == "rotary" else 0
    return _elementwise(moves, model, batch, how)


def _elementwise(moves: int, model: Transformer, batch: Microbatch, how: Implementation) -> Pass:
    """Element moves in bytes, and one byte of mask per hidden element for each of two dropouts.

    Its kernels share tensors of tokens x hidden, mostly two that are read and one that is written.
    """
    masks = 2 * model.hidden if how.dropout else 0
    shared = 3 * batch.tokens * model.hidden * how.element_bytes
    return Pass(name="elementwise", bytes=batch.tokens * (moves * how.element_bytes + masks), working_set=shared)


def gradient_accumulation(parameters: int, how: Implementation) -> Pass:
    """Adding a microbatch's weight gradients to the fp32 ones.

    Fused, the GEMM reads and writes fp32 instead of writing elements. Else a pass reads elements, reads and writes
    fp32.
    """
    per_parameter = 2 * FP32_BYTES + (-how.element_bytes if how.fused_gradient_accumulation else how.element_bytes)
    return Pass(name="gradient_accumulation", bytes=parameters * per_parameter)


def embedding_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gather rows of the word table, add learned positions, turn to sequence-major order, drop out.

    Element moves per token of width h: gather 2, positions 3, transposition 2, dropout 2 and a byte of mask.
    """
    moves = 2 + 2 + (3 if model.positions == "learned" else 0) + (2 if how.dropout else 0)
    per_element = moves * how.element_bytes + (1 if how.dropout else 0)
    return (Pass(name="embedding", bytes=batch.tokens * model.hidden * per_element),)


def embedding_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """A dense gradient of the whole word table: zeroed, scattered into, added to the fp32 gradients every microbatch.

    It keeps nothing for W, so it is part of I (as in the zero-bubble implementations, which put off GEMMs only).
    """
    table = model.table_parameters
    zero = table * how.element_bytes
    scatter = 3 * batch.tokens * model.hidden * how.element_bytes
    add = table * (how.element_bytes + 2 * FP32_BYTES)
    return (Pass(name="embedding", bytes=zero + scatter + add),)


def head_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Final norm, then logits = X E^T: 2 x tokens x hidden x vocab flops."""
    norm = Pass(name="lm_head", bytes=2 * batch.tokens * model.hidden * how.element_bytes)
    return norm, _head_gemm(batch.tokens, model.vocab, model.hidden, how)


def head_input_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradient of the input, dX = dlogits E, then the norm's backward."""
    norm = Pass(name="lm_head", bytes=3 * batch.tokens * model.hidden * how.element_bytes)
    return _head_gemm(batch.tokens, model.hidden, model.vocab, how), norm


def head_weight_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradient of the table, dE = dlogits^T X, added to its fp32 gradients."""
    return _head_gemm(model.vocab, model.hidden, batch.tokens, how), gradient_accumulation(model.table_parameters, how)


def _head_gemm(rows: int, columns: int, inner: int, how: Implementation) -> Gemm:
    return Gemm.dense("lm_head", rows=rows, columns=columns, inner=inner, element_bytes=how.element_bytes)


def cross_entropy_forward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Softmax and loss over tokens x vocab logits.

    Unfused is Megatron-LM's vocab_parallel_cross_entropy at tensor parallelism 1, in passes of fp32: convert (read
    elements, write 1), maximum (1), subtract it (2), exp (2), sum (1), divide (2).
    Fused reads the logits once: Milakov and Gimelshein 2018 (arXiv 1805.02867), algorithm 3.
    """
    unfused = how.element_bytes + 9 * FP32_BYTES
    per_logit = unfused if how.cross_entropy == "unfused" else how.element_bytes
    return _logits_pass(per_logit, model, batch)


def cross_entropy_backward(model: Transformer, batch: Microbatch, how: Implementation) -> Kernels:
    """Gradient of the logits. Unfused: scale the softmax (2 passes of fp32), convert (read 1, write elements).

    Fused: read logits, write gradients.
    """
    unfused = 3 * FP32_BYTES + how.element_bytes
    per_logit = unfused if how.cross_entropy == "unfused" else 2 * how.element_bytes
    return _logits_pass(per_logit, model, batch)


def _logits_pass(per_logit: int, model: Transformer, batch: Microbatch) -> Kernels:
    logits = batch.tokens * model.vocab
    return (Pass(name="cross_entropy", bytes=logits * per_logit, working_set=logits * FP32_BYTES),)
