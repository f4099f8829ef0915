"""What the ends of a model launch on one device: embedding at the start; final norm, head and loss at the other.

Tables are divided by rows of the vocabulary (Shoeybi et al. 2019, arXiv 1909.08053): the look-up is then a sum over the
tensor group, and the loss exchanges three numbers per token instead of logits.
"""

from hops.axes import Axis
from hops.model import exchange, linear
from hops.model.kernels import Collective, Kernels, Pass
from hops.model.linear import FP32_BYTES, Linear
from hops.model.local import Local


def embedding_forward(here: Local) -> Kernels:
    """Gather rows of the word table, add learned positions, turn to sequence-major order, drop out, maybe a norm.

    Element moves per token of width h: gather 2, positions 3, transposition 2, dropout 2 and a byte of mask, norm 2.
    """
    model, how = here.model, here.how
    moves = 2 + (3 if model.positions == "learned" else 0) + (2 if how.dropout else 0) + 2 * model.embedding_norm
    held = here.held_tokens * (moves * how.element_bytes + (1 if how.dropout else 0))
    gathered = here.tokens * 2 * how.element_bytes
    return Pass(name="embedding", bytes=(gathered + held) * model.hidden), *exchange.leave(here, "embedding")


def embedding_backward(here: Local) -> Kernels:
    """A dense gradient of the whole word table: zeroed, scattered into, added to the fp32 gradients every microbatch.

    It keeps nothing for W, so it is part of I (as in the zero-bubble implementations, which put off GEMMs only).
    """
    element, table = here.how.element_bytes, here.vocab * here.model.hidden
    scatter = 3 * here.tokens * here.model.hidden * element
    moved = table * element + scatter + table * (element + 2 * FP32_BYTES)
    return Pass(name="embedding", bytes=moved), *exchange.leave_backward(here, "embedding")


def head_forward(here: Local) -> Kernels:
    """Final norm, then logits = X E^T: 2 x tokens x hidden x vocab flops."""
    return _norm(here, moves=2), *linear.forward(_head(here), here.how)


def head_input_backward(here: Local) -> Kernels:
    """Gradient of the input, dX = dlogits E, then the norm's backward."""
    return *linear.input_backward(_head(here), here.how), _norm(here, moves=3)


def head_weight_backward(here: Local) -> Kernels:
    """Gradient of the table, dE = dlogits^T X, added to its fp32 gradients."""
    (head,) = _head(here)
    product = linear.gemm(head, head.out, head.inside, head.rows, here.how)
    return product, linear.gradient_accumulation(head.parameters, here.how)


def head_exchanges(here: Local) -> Kernels:
    """Collectives of F: of the head's input; of the loss, per token a maximum, the label's logit and a sum, in fp32.

    Megatron-LM's vocab_parallel_cross_entropy; fused, the last two travel together.
    """
    found = exchange.enter(here, here.model.hidden, "lm_head")
    if here.shards.tensor == 1:
        return found
    one = Collective(name="tensor", kind="all_reduce", axis=Axis.TENSOR, bytes=here.tokens * FP32_BYTES)
    if here.how.cross_entropy == "unfused":
        three = Collective(name="tensor", kind="all_reduce", axis=Axis.TENSOR, bytes=one.bytes, calls=3)
        return (*found, three)
    return *found, one, Collective(name="tensor", kind="all_reduce", axis=Axis.TENSOR, bytes=2 * one.bytes)


def head_exchanges_backward(here: Local) -> Kernels:
    """Collectives of I."""
    return exchange.enter_backward(here, here.model.hidden, "lm_head")


def _head(here: Local) -> tuple[Linear, ...]:
    return (Linear(name="lm_head", rows=here.tokens, inside=here.model.hidden, out=here.vocab, quantized=False),)


def _norm(here: Local, *, moves: int) -> Pass:
    return Pass(name="lm_head", bytes=moves * here.held_tokens * here.model.hidden * here.how.element_bytes)


def cross_entropy_forward(here: Local) -> Kernels:
    """Softmax and loss over tokens x vocab logits.

    Unfused is Megatron-LM's vocab_parallel_cross_entropy, in passes of fp32: convert (read elements, write 1),
    maximum (1), subtract it (2), exp (2), sum (1), divide (2).
    Fused reads the logits once: Milakov and Gimelshein 2018 (arXiv 1805.02867), algorithm 3.
    """
    element = here.how.element_bytes
    return _logits_pass(element + 9 * FP32_BYTES if here.how.cross_entropy == "unfused" else element, here)


def cross_entropy_backward(here: Local) -> Kernels:
    """Gradient of the logits. Unfused: scale the softmax (2 passes of fp32), convert (read 1, write elements).

    Fused: read logits, write gradients.
    """
    element = here.how.element_bytes
    return _logits_pass(3 * FP32_BYTES + element if here.how.cross_entropy == "unfused" else 2 * element, here)


def _logits_pass(per_logit: int, here: Local) -> Kernels:
    logits = here.tokens * here.vocab
    return (Pass(name="cross_entropy", bytes=logits * per_logit, working_set=logits * FP32_BYTES),)
