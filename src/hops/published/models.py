"""The model of a published row: its stated shape, and what the named model, or its family, says where it is silent."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hops.model.kinds import Experts, LatentAttention
from hops.model.models import find_model
from hops.model.transformer import ALIASES, MODELS, Transformer
from hops.published.refusal import RowRefusedError
from hops.published.row import PublishedRow, RowShape

GPT2_VOCAB = 50257  # byte pairs of GPT-2, which benchmarks of GPT's shape take
BERT_VOCAB = 30522  # word pieces of BERT
PADDING = 128  # Megatron-LM pads a vocabulary to multiples of this, times tensor parallelism's size
OTHER_KINDS = ("distill", "mimo", "multimodal", "mamba", "hybrid", "nemotronh", "flextron", "t5", "retro", "vision")
"""Words in the names of models that are not made of attention and MLPs or experts alone."""
_NAMED_ALONE = (
    "deepseek-v2",
    "deepseek-v3",
    "moonlight-16b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "qwen3-8b",
    "mixtral-8x7b",
    "mixtral-8x22b",
)
"""Models that tables name without their shape, beside those of this package."""
_PIECE = re.compile(r"\[([01])\]\*(\d+)")


def model_of(row: PublishedRow) -> Transformer:
    """The transformer of a row. Raises RowRefusedError if too little is said, or nothing like it can be."""
    words = bare(row.model)
    strange = next((word for word in OTHER_KINDS if word in words), None)
    if strange is not None:
        raise RowRefusedError(f"the model {row.model!r} has layers of a kind ({strange}) that no spec can say")
    known, shape = named_model(row.model), row.stated
    if known is None:
        known = _unnamed(row, shape)
    changed = _with_sizes(known, shape)
    return _with_flags(_with_experts(changed, row, shape), row)


def bare(name: str) -> str:
    """A name without what people write it in: `Qwen3_30B_a3B` is `qwen330ba3b`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def named_model(name: str) -> Transformer | None:
    """The known model whose name a row's model begins with, the longest that does; None: there is none."""
    every = (*MODELS, *ALIASES, *_NAMED_ALONE)
    fitting = [known for known in every if bare(name).startswith(bare(known))]
    return find_model(max(fitting, key=len)) if fitting else None


def _unnamed(row: PublishedRow, shape: RowShape) -> Transformer:
    """A model that is known by its stated shape alone: of Llama's family with a gated MLP, else of GPT's."""
    if shape.layers is None or shape.hidden is None:
        raise RowRefusedError(
            f"no model is known by the name {row.model!r}, and the row states no layers and hidden size for it"
        )
    heads = shape.heads if shape.heads is not None else _heads(row, shape.hidden)
    vocab = _vocab(row, shape)
    positions = 1 if row.seq is None else row.seq
    gated = shape.gated if shape.gated is not None else bool(row.flags.get("swiglu", False))
    if gated and not row.flags:
        ffn = shape.ffn if shape.ffn is not None else 4 * shape.hidden
        return Transformer.llama(
            layers=shape.layers,
            hidden=shape.hidden,
            ffn_hidden=ffn,
            heads=heads,
            kv_heads=heads,
            vocab=vocab,
            max_positions=positions,
        )
    return Transformer.gpt(layers=shape.layers, hidden=shape.hidden, heads=heads, vocab=vocab, max_positions=positions)


def _heads(row: PublishedRow, hidden: int) -> int:
    """Heads from a name such as `1x8x1_16_1536x16` (hidden x heads); else heads of 64, or of 128 in wide models."""
    named = re.search(rf"{hidden}x(\d+)", row.model)
    return int(named[1]) if named else hidden // (64 if hidden < 2048 else 128)


def _vocab(row: PublishedRow, shape: RowShape) -> int:
    """The stated vocabulary, or that of the usual tokenizer, padded as Megatron-LM does."""
    if shape.vocab is not None and not row.flags:
        return shape.vocab
    stated = row.flags.get("vocab-size", shape.vocab)
    size = stated if isinstance(stated, int) else BERT_VOCAB if "bert" in row.model.lower() else GPT2_VOCAB
    multiple = int(row.flags.get("make-vocab-size-divisible-by", PADDING)) * (row.tp or 1)
    return -(-size // multiple) * multiple


def _with_sizes(base: Transformer, shape: RowShape) -> Transformer:
    """The model with the stated sizes; those that follow from changed ones follow as in the base."""
    hidden, heads = shape.hidden or base.hidden, shape.heads or base.heads
    kv_heads = shape.kv_heads or (heads if base.kv_heads == base.heads else base.kv_heads)
    ffn = shape.ffn or (4 * hidden if base.ffn_hidden == 4 * base.hidden else base.ffn_hidden)
    width = shape.head_dim or (hidden // heads if (hidden, heads) != (base.hidden, base.heads) else base.head_dim)
    said: dict[str, Any] = {
        key: getattr(shape, key) for key in ("gated", "tied", "biases", "positions") if getattr(shape, key) is not None
    }
    changed = replace(base, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn_hidden=ffn, head_dim=width, **said)
    if shape.layers is None:
        return changed
    return with_layers(changed, shape.layers)


def with_layers(model: Transformer, layers: int) -> Transformer:
    """The model with so many layers, MTP heads not counted; dense layers among experts stay where they are."""
    experts = model.experts
    if experts is not None:
        kept = tuple(number for number in experts.dense_layers if number < layers)
        experts = replace(experts, dense_layers=kept)
    return replace(model, layers=layers + model.mtp_layers, experts=experts)


def _with_experts(model: Transformer, row: PublishedRow, shape: RowShape) -> Transformer:
    """The model with the stated experts, latent attention and MTP heads."""
    if shape.mla is not None:
        latent = LatentAttention(
            query_rank=shape.mla.q_rank or 0,
            kv_rank=shape.mla.kv_rank,
            nope_dim=shape.mla.qk_head,
            rope_dim=shape.mla.rope_head,
            value_dim=shape.mla.v_head,
        )
        model = replace(model, latent=latent)
    if shape.mtp is not None:
        model = replace(model, layers=model.layers - model.mtp_layers + shape.mtp, mtp_layers=shape.mtp)
    if not shape.experts:
        return model
    old = model.experts
    width = shape.expert_ffn or (old.hidden if old else row.flags.get("moe-ffn-hidden-size") or model.ffn_hidden)
    top_k = shape.top_k or (old.top_k if old else int(row.flags.get("moe-router-topk", 2)))
    shared = shape.shared_ffn if shape.shared_ffn is not None else (old.shared_hidden if old else 0)
    dense = tuple(range(shape.dense_layers)) if shape.dense_layers is not None else (old.dense_layers if old else ())
    if shape.moe_layers is not None:
        dense = dense_layers(shape.moe_layers, model.layers - model.mtp_layers)
    experts = Experts(
        count=shape.experts,
        top_k=top_k,
        hidden=int(width),
        shared_hidden=shared,
        router_bias=old.router_bias if old else False,
        shared_gate=old.shared_gate if old else False,
        dense_layers=dense,
    )
    return replace(model, experts=experts)


def dense_layers(frequency: str | int, layers: int) -> tuple[int, ...]:
    """Layers without experts of Megatron-LM's `--moe-layer-freq`: `([0]*3+[1]*58)`, or every n-th layer has some."""
    text = str(frequency).strip("() ")
    if text.isdigit():
        every = max(1, int(text))
        return tuple(number for number in range(layers) if number % every)
    pattern = [int(digit) for digit, times in _PIECE.findall(text) for _ in range(int(times))]
    if len(pattern) != layers:
        raise RowRefusedError(f"moe_layers {frequency!r} names {len(pattern)} layers, but the model has {layers}")
    return tuple(number for number, moe in enumerate(pattern) if not moe)


def _with_flags(model: Transformer, row: PublishedRow) -> Transformer:
    """What Megatron-LM's flags of a launch say of the model, where the row has them."""
    flags = row.flags
    if not flags:
        return model
    layers = model.layers - model.mtp_layers
    said: dict[str, Any] = {
        "gated": bool(flags.get("swiglu", False)),
        "positions": {"rope": "rotary", "none": "rotary"}.get(str(flags.get("position-embedding-type")), "learned"),
        "norm": "rms" if flags.get("normalization") == "RMSNorm" else "layer",
        "biases": not (flags.get("disable-bias-linear", False) or "disable_bias" in row.model),
        "tied": not flags.get("untie-embeddings-and-output-weights", False),
        "max_positions": int(flags.get("max-position-embeddings", model.max_positions)),
        "kv_heads": int(flags.get("num-query-groups", model.heads)),
        "head_dim": int(flags.get("kv-channels", model.hidden // model.heads)),
        "mtp_layers": int(flags.get("mtp-num-layers", 0)),
    }
    if flags.get("use-rotary-position-embeddings") or "rope_embeddings" in row.model:
        said["positions"] = "rotary"
    said["layers"] = layers + said["mtp_layers"]
    if "ffn-hidden-size" in flags:
        said["ffn_hidden"] = int(flags["ffn-hidden-size"])
    elif row.stated.ffn is None and said["gated"]:
        said["ffn_hidden"] = int(4 * model.hidden * 2 / 3 / 64) * 64  # Megatron-LM's default of a gated MLP
    said["latent"] = _latent(flags)
    changed = replace(model, **said)
    if changed.experts is None:
        return changed
    shared = int(flags.get("moe-shared-expert-intermediate-size", 0))
    experts = replace(
        changed.experts, shared_hidden=shared, router_bias=bool(flags.get("moe-router-enable-expert-bias", False))
    )
    if "moe-layer-freq" in flags:
        experts = replace(experts, dense_layers=dense_layers(flags["moe-layer-freq"], layers))
    return replace(changed, experts=experts)


def _latent(flags: Mapping[str, Any]) -> LatentAttention | None:
    """Megatron-LM's multi-latent attention, with the defaults of its flags."""
    if not flags.get("multi-latent-attention", False):
        return None
    return LatentAttention(
        query_rank=int(flags.get("q-lora-rank", 0)),
        kv_rank=int(flags.get("kv-lora-rank", 32)),
        nope_dim=int(flags.get("qk-head-dim", 128)),
        rope_dim=int(flags.get("qk-pos-emb-head-dim", 64)),
        value_dim=int(flags.get("v-head-dim", 128)),
    )
