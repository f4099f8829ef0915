"""What only the first stage does (embedding) and only the last (final norm, LM head, loss over tokens x vocab)."""

from hops.model.implementation import Implementation, Microbatch
from hops.model.kernels import Gemm, Kernels, Pass
from hops.model.layer import FP32_BYTES, gradient_accumulation
from hops.model.transformer import Transformer


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
