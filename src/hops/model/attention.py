"""Attention on one device: its linear layers, its core, and what context parallelism exchanges for it.

GEMM flops follow Narayanan et al. 2021 (arXiv 2104.04473, appendix): for the classic shape the core's F is 4 b s^2 h,
its I 8 b s^2 h. Passes over memory are counted in Megatron-LM's code (core/transformer, `transformer-impl local`).
"""

from dataclasses import replace
from typing import Literal

from hops.axes import Axis
from hops.model import exchange
from hops.model.kernels import Collective, CollectiveKind, Gemm, GroupPart, Kernels, Pass
from hops.model.kinds import Layer
from hops.model.linear import Linear
from hops.model.local import Local


def linears(here: Local) -> tuple[Linear, ...]:
    """Queries, keys and values (of latents: the narrow layers, which every device computes for the tokens it holds,
    then the wide ones), and the projection back.
    """
    model, tokens = here.model, here.tokens
    projection = Linear(name="projection", rows=tokens, inside=here.context_width, out=model.hidden)
    if model.latent is None:
        return Linear(name="qkv", rows=tokens, inside=model.hidden, out=here.qkv_width), projection
    return *latent_down(here), *latent_up(here), projection


def latent_down(here: Local) -> tuple[Linear, ...]:
    """Hidden state to latents; not divided."""
    latent, hidden = here.model.latent, here.model.hidden
    assert latent is not None
    keys = Linear(name="qkv", rows=here.held_tokens, inside=hidden, out=latent.kv_rank + latent.rope_dim)
    if latent.query_rank == 0:
        return (keys,)
    return Linear(name="qkv", rows=here.held_tokens, inside=hidden, out=latent.query_rank), keys


def latent_up(here: Local) -> tuple[Linear, ...]:
    """Latents to heads; divided by heads."""
    latent = here.model.latent
    assert latent is not None
    widened = here.heads * (latent.nope_dim + latent.value_dim)
    return (
        Linear(name="qkv", rows=here.tokens, inside=latent.query_rank or here.model.hidden, out=here.query_width),
        Linear(name="qkv", rows=here.tokens, inside=latent.kv_rank, out=widened),
    )


def entered_width(here: Local) -> int:
    """Width of what linear layers cut by columns read: the hidden state, or the latents and the keys' rotary part."""
    latent = here.model.latent
    if latent is None:
        return here.model.hidden
    return (latent.query_rank or here.model.hidden) + latent.kv_rank + latent.rope_dim


def exchanges(here: Local) -> Kernels:
    """Collectives of F."""
    tensor = (*exchange.enter(here, entered_width(here), "qkv"), *exchange.leave(here, "projection"))
    return (*tensor, *context_forward(here))


def exchanges_backward(here: Local) -> Kernels:
    """Collectives of I."""
    width = entered_width(here)
    tensor = (*exchange.leave_backward(here, "projection"), *exchange.enter_backward(here, width, "qkv"))
    return (*tensor, *context_backward(here))


def context_forward(here: Local) -> Kernels:
    """What devices that hold parts of a sequence exchange in F.

    A ring passes keys and values on, one step less than it has members, while it attends to what it has; gathered,
    they come in one piece before. Heads are exchanged for parts of the sequence by an all-to-all of queries, keys and
    values, and back by one of the context.
    """
    keys = here.key_width + here.value_width
    found = _heads(here, here.query_width + keys) + _heads(here, here.context_width)
    if here.shards.ring == 1:
        return found
    if here.shards.context_kind == "all_gather":
        return (*found, _context(here, "all_gather", here.shards.context * keys))
    return (*found, _ring(here, keys, calls=here.shards.ring - 1))


def context_backward(here: Local) -> Kernels:
    """The same in I: keys and values come again, and their gradients go home.

    On a ring the gradients take one step more, as what each member adds must come back to the owner; gathered ones are
    scattered and summed. Exchanged heads: the context's gradient there, those of queries, keys and values back.
    """
    keys = here.key_width + here.value_width
    found = _heads(here, here.context_width) + _heads(here, here.query_width + keys)
    if here.shards.ring == 1:
        return found
    if here.shards.context_kind == "all_gather":
        whole = here.shards.context * keys
        return (*found, _context(here, "all_gather", whole), _context(here, "reduce_scatter", whole))
    ring = here.shards.ring
    return (*found, _ring(here, keys, calls=ring - 1), _ring(here, keys, calls=ring))


def _heads(here: Local, width: int) -> Kernels:
    if here.shards.head_exchange == 1:
        return ()
    part: GroupPart = "inner" if here.shards.ring > 1 else "whole"
    return (replace(_context(here, "all_to_all", width), part=part),)


def _ring(here: Local, width: int, *, calls: int) -> Collective:
    """Steps of a ring. After heads were exchanged a member has some heads, of a longer part of the sequence."""
    step = _context(here, "ring", width)
    part: GroupPart = "outer" if here.shards.head_exchange > 1 else "whole"
    return replace(step, calls=calls, hides_under="attention", part=part)


def _context(here: Local, kind: CollectiveKind, width: int) -> Collective:
    return Collective(
        name="context",
        kind=kind,
        axis=Axis.CONTEXT,
        bytes=here.tokens * width * here.how.element_bytes,
    )


def core_forward(here: Local, layer: Layer) -> Kernels:
    """Scores Q K^T, softmax, and P V: 4 s^2 b h flops."""
    q, v = here.query_width // here.heads, here.context_width // here.heads
    if here.how.attention == "flash":
        return _flash(here, layer, inner=q + v, tensors=2, fused="forward")
    return (*_score_products(here, (q, v)), _softmax_forward(here))


def core_backward(here: Local, layer: Layer) -> Kernels:
    """Gradients dV, dP, softmax, dQ, dK: 8 s^2 b h flops; flash attention computes Q K^T again on top (5 products)."""
    q, v = here.query_width // here.heads, here.context_width // here.heads
    if here.how.attention == "flash":
        return _flash(here, layer, inner=3 * q + 2 * v, tensors=4, fused="backward")
    return (*_score_products(here, (v, v, q, q)), _softmax_backward(here))


def _score_products(here: Local, inners: tuple[int, ...]) -> Kernels:
    """Batched products over all heads; each reads or writes the scores once."""
    products = tuple(
        Gemm.dense(
            "attention",
            rows=_rows(here),
            columns=here.batch.sequence_length,
            inner=inner,
            batch=_matrices(here),
            element_bytes=here.how.element_bytes,
        )
        for inner in inners
    )
    return tuple(replace(each, working_set=here.how.element_bytes * scores_elements(here)) for each in products)


def _rows(here: Local) -> int:
    """Queries of a sequence for which this device attends: its part, or a longer one of fewer heads."""
    return here.rows_of_sequence * here.shards.head_exchange


def _matrices(here: Local) -> int:
    """Score matrices of one microbatch."""
    return here.batch.samples * here.heads // here.shards.head_exchange


def _flash(here: Local, layer: Layer, *, inner: int, tensors: int, fused: Literal["forward", "backward"]) -> Kernels:
    """One launch that never writes the scores and skips the masked part: Dao 2023 (arXiv 2307.08691), sections 2-3.

    `tensors` / 2 of queries, keys, values and context each are moved: F reads three and writes one; the backward pass
    reads these and dO and writes dQ, dK, dV. On a ring, all parts of keys and values come by.
    """
    keys = here.shards.ring * (here.key_width + here.value_width)
    moved = tensors * here.how.element_bytes * here.tokens * (here.query_width + here.context_width + keys) // 2
    launch = Gemm(
        name="attention",
        rows=_rows(here),
        columns=layer.seen(here.batch.sequence_length),
        inner=inner,
        batch=_matrices(here),
        bytes=moved,
        fused=fused,
    )
    return (launch,)


def scores_elements(here: Local) -> int:
    """Elements of the score matrices of one layer: heads x s^2 x b for a whole one."""
    return here.heads * here.rows_of_sequence * here.batch.sequence_length * here.batch.samples


def _softmax_forward(here: Local) -> Pass:
    """Mask and softmax each read and write the scores; dropout does as well and writes a byte of mask."""
    element = here.how.element_bytes
    return _score_pass(4 * element + (2 * element + 1 if here.how.dropout else 0), here)


def _softmax_backward(here: Local) -> Pass:
    """Softmax reads gradient and output and writes (3 moves); dropout reads mask and gradient and writes.

    Megatron-LM masks in place on a view, whose gradient PyTorch copies, clones, masks (a clone and a fill) and copies
    back: 10 moves (torch/csrc/autograd/functions/tensor.cpp, CopySlices).
    """
    element = here.how.element_bytes
    return _score_pass((3 + 10) * element + (2 * element + 1 if here.how.dropout else 0), here)


def _score_pass(per_element: int, here: Local) -> Pass:
    elements = scores_elements(here)
    return Pass(name="softmax", bytes=per_element * elements, working_set=here.how.element_bytes * elements)
