"""Passes of a layer that belong to no one else: norms, biases, activation, residuals, rotary positions.

Counted in Megatron-LM's code (core/transformer, fused bias + GeLU and bias + dropout + add).
"""

from hops.model import routed
from hops.model.kernels import Pass
from hops.model.kinds import Layer
from hops.model.local import Local


def forward(here: Local, layer: Layer) -> Pass:
    """Norms, biases, activation function, residuals, rotary positions, head transposition.

    Element moves per token: each norm reads and writes h; two bias + dropout + add read two, write one (6h);
    the context is copied to token order (2q); the activation reads its input and writes ffn;
    QKV's bias, head norms and rotary positions each read and write what they change.
    """
    model, read_written = here.model, activation(here, layer)
    moves = here.tokens * (2 * here.context_width + _changed(here)) + sum(read_written)
    moves += 2 * here.tokens * here.qkv_width if model.biases or model.qkv_biases else 0
    return _pass(here, moves + here.held_tokens * (2 * _normed(here, layer) + 6 * model.hidden))


def backward(here: Local, layer: Layer) -> Pass:
    """Backward of the same.

    Element moves per token: norms read gradient and input, write (3 each); residual gradients are added (6h);
    copies of the context's gradient (2q) and of QKV's (2 qkv); the activation reads gradient and input and writes;
    each bias gradient reads the gradient it sums; rotary positions turn back.
    """
    model, (read, written) = here.model, activation(here, layer)
    moves = here.tokens * (2 * here.context_width + 2 * here.qkv_width + _changed(here)) + 2 * read + written
    held = 3 * _normed(here, layer) + 6 * model.hidden
    if model.biases:
        moves, held = moves + read, held + 2 * model.hidden
    if model.biases or model.qkv_biases:
        moves += here.tokens * here.qkv_width
    return _pass(here, moves + here.held_tokens * held)


def norms_forward(here: Local, layer: Layer) -> Pass:
    """The norms of F alone."""
    moved = 2 * here.held_tokens * _normed(here, layer) * here.how.element_bytes
    return Pass(name="elementwise", bytes=moved, working_set=_working_set(here))


def activation_forward(here: Local, layer: Layer) -> Pass:
    """The activation function of F alone."""
    moved = sum(activation(here, layer)) * here.how.element_bytes
    return Pass(name="elementwise", bytes=moved, working_set=_working_set(here))


def activation(here: Local, layer: Layer) -> tuple[int, int]:
    """Elements that the activation function reads and writes."""
    if layer.experts is not None:
        return routed.activation(here, layer.experts)
    width = here.part_of_width(here.model.ffn_hidden)
    return here.tokens * here.model.widened(width), here.tokens * width


def _normed(here: Local, layer: Layer) -> int:
    """Width of all norms of a layer together, head norms left out."""
    model = here.model
    latents = 0 if model.latent is None else model.latent.query_rank + model.latent.kv_rank
    return (model.norms + (3 if layer.mtp else 0)) * model.hidden + latents


def _changed(here: Local) -> int:
    """Element moves of head norms and rotary positions: they read and write queries and keys."""
    model, latent = here.model, here.model.latent
    both = 2 * (here.query_width + here.key_width)
    rotated = both if latent is None else 2 * (here.heads + 1) * latent.rope_dim
    return (rotated if model.positions == "rotary" else 0) + (both if model.head_norms else 0)


def _pass(here: Local, moves: int) -> Pass:
    """Element moves in bytes, and one byte of mask per hidden element for each of two dropouts."""
    masks = 2 * here.model.hidden * here.held_tokens if here.how.dropout else 0
    return Pass(name="elementwise", bytes=moves * here.how.element_bytes + masks, working_set=_working_set(here))


def _working_set(here: Local) -> int:
    """Its kernels share tensors of tokens x hidden, mostly two that are read and one that is written."""
    return 3 * here.held_tokens * here.model.hidden * here.how.element_bytes
