"""Families with a gated MLP, in the line of Llama: rotary positions and RMS norms, with experts or without."""

from dataclasses import replace

from hops.model.hugging_face_keys import Keys
from hops.model.kinds import Experts, LatentAttention
from hops.model.transformer import Transformer


def llama(keys: Keys, *, tied: bool = False, head_dim: int | None = None, biases: bool | None = None) -> Transformer:
    """Rotary positions, RMS norms, gated MLP: the shape that most families change in a few places."""
    hidden = keys.count("hidden_size")
    heads = keys.count("num_attention_heads")
    if biases is None:
        attention, mlp = keys.flag("attention_bias", default=False), keys.flag("mlp_bias", default=False)
        if attention != mlp:
            keys.refuse("attention_bias" if attention else "mlp_bias", "biases in attention or MLP alone")
        biases = attention
    return Transformer(
        layers=keys.count("num_hidden_layers"),
        hidden=hidden,
        ffn_hidden=keys.count("intermediate_size"),
        heads=heads,
        kv_heads=keys.count("num_key_value_heads", default=heads),
        head_dim=keys.count("head_dim", default=head_dim or keys.shared(hidden, heads)),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("max_position_embeddings", default=2048),
        gated=True,
        positions="rotary",
        norm="rms",
        biases=biases,
        tied=keys.flag("tie_word_embeddings", default=tied),
    )


def _windows(keys: Keys, *, pattern: tuple[bool, ...], default: int | None) -> tuple[int, ...]:
    """Windows of the layers: as `layer_types` says, else by the family's pattern (True: a window)."""
    size = keys.optional_count("sliding_window", default=default)
    types = keys.texts("layer_types", {"sliding_attention", "full_attention"})
    if size is None:
        return (0,)
    if types:
        return tuple(size if each == "sliding_attention" else 0 for each in types)
    return tuple(size if local else 0 for local in pattern)


def mistral(keys: Keys) -> Transformer:
    return replace(llama(keys, biases=False), windows=_windows(keys, pattern=(True,), default=4096))


def phi3(keys: Keys) -> Transformer:
    return replace(llama(keys, biases=False), windows=_windows(keys, pattern=(True,), default=None))


def qwen2(keys: Keys) -> Transformer:
    shape = llama(keys, biases=False)
    return replace(shape, qkv_biases=True, windows=_upper_windows(keys))


def _upper_windows(keys: Keys) -> tuple[int, ...]:
    """Windows from a layer on, if they are used at all."""
    used, first = keys.flag("use_sliding_window", default=False), keys.number("max_window_layers", default=28)
    layers = keys.count("num_hidden_layers")
    pattern = tuple(layer >= first for layer in range(layers))
    windows = _windows(keys, pattern=pattern, default=4096)
    return windows if used else (0,)


def qwen3(keys: Keys) -> Transformer:
    if keys.flag("attention_bias", default=False):
        keys.refuse("attention_bias", "biases in attention alone")
    return replace(llama(keys, head_dim=128, biases=False), head_norms=True, windows=_upper_windows(keys))


def _stepped(keys: Keys) -> tuple[int, ...]:
    """Dense layers of Qwen's experts: all but each so many-th one, and those listed."""
    step, listed = keys.count("decoder_sparse_step", default=1), keys.numbers("mlp_only_layers")
    layers = keys.count("num_hidden_layers")
    return tuple(layer for layer in range(layers) if layer in listed or (layer + 1) % step)


def _qwen_experts(keys: Keys, *, shared: int, count: int) -> Experts:
    return Experts(
        count=keys.count("num_experts", "num_local_experts", default=count),
        top_k=keys.count("num_experts_per_tok", default=1),
        hidden=keys.count("moe_intermediate_size"),
        shared_hidden=shared,
        shared_gate=shared > 0,
        dense_layers=_stepped(keys),
    )


def qwen2_moe(keys: Keys) -> Transformer:
    shape = qwen2(keys)
    experts = _qwen_experts(keys, shared=keys.count("shared_expert_intermediate_size", default=5632), count=60)
    return replace(shape, experts=experts)


def qwen3_moe(keys: Keys) -> Transformer:
    return replace(qwen3(keys), experts=_qwen_experts(keys, shared=0, count=128))


def mixtral(keys: Keys) -> Transformer:
    experts = Experts(
        count=keys.count("num_local_experts", "num_experts", default=8),
        top_k=keys.count("num_experts_per_tok", default=2),
        hidden=keys.count("intermediate_size"),
    )
    windows = _windows(keys, pattern=(True,), default=None)
    return replace(llama(keys, biases=False), experts=experts, windows=windows)


def gemma(keys: Keys) -> Transformer:
    return llama(keys, tied=True, head_dim=256)


def gemma2(keys: Keys) -> Transformer:
    windows = _windows(keys, pattern=(True, False), default=4096)
    return replace(llama(keys, tied=True, head_dim=256), norms=4, windows=windows)


def gemma3(keys: Keys) -> Transformer:
    period = keys.count("sliding_window_pattern", "_sliding_window_pattern", default=6)
    windows = _windows(keys, pattern=(True,) * (period - 1) + (False,), default=4096)
    return replace(llama(keys, tied=True, head_dim=256), norms=4, head_norms=True, windows=windows)


def _deepseek(keys: Keys, *, router_bias: bool, first_dense: int) -> Transformer:
    latent = LatentAttention(
        query_rank=keys.optional_count("q_lora_rank", default=1536) or 0,
        kv_rank=keys.count("kv_lora_rank", default=512),
        nope_dim=keys.count("qk_nope_head_dim", default=128),
        rope_dim=keys.count("qk_rope_head_dim", default=64),
        value_dim=keys.count("v_head_dim", default=128),
    )
    every = keys.count("moe_layer_freq", default=1)
    experts, mtp = _leading_dense(keys, router_bias=router_bias, first_dense=first_dense, every=every)
    return _with_mtp(replace(llama(keys), latent=latent, experts=experts), mtp)


def _leading_dense(keys: Keys, *, router_bias: bool, first_dense: int, every: int = 1) -> tuple[Experts, int]:
    """Experts after the first dense layers, and MTP heads, which have experts, too."""
    dense, layers = keys.number("first_k_dense_replace", default=first_dense), keys.count("num_hidden_layers")
    width = keys.count("moe_intermediate_size")
    experts = Experts(
        count=keys.count("n_routed_experts", "num_experts", "num_local_experts"),
        top_k=keys.count("num_experts_per_tok", default=8),
        hidden=width,
        shared_hidden=(keys.optional_count("n_shared_experts", default=None) or 0) * width,
        router_bias=router_bias,
        dense_layers=tuple(layer for layer in range(layers) if layer < dense or layer % every),
    )
    return experts, keys.number("num_nextn_predict_layers", "num_mtp_layers", default=0)


def _with_mtp(model: Transformer, heads: int) -> Transformer:
    return replace(model, layers=model.layers + heads, mtp_layers=heads)


def deepseek_v2(keys: Keys) -> Transformer:
    return _deepseek(keys, router_bias=False, first_dense=0)


def deepseek_v3(keys: Keys) -> Transformer:
    return _deepseek(keys, router_bias=True, first_dense=3)


def glm4_moe(keys: Keys) -> Transformer:
    biases = keys.flag("attention_bias", default=False)
    norms = keys.flag("use_qk_norm", default=False)
    experts, mtp = _leading_dense(keys, router_bias=True, first_dense=1)
    shape = llama(keys, head_dim=128, biases=False)
    return _with_mtp(replace(shape, qkv_biases=biases, head_norms=norms, experts=experts), mtp)


def gpt_oss(keys: Keys) -> Transformer:
    experts = Experts(
        count=keys.count("num_local_experts", "num_experts", default=128),
        top_k=keys.count("num_experts_per_tok", "experts_per_token", default=4),
        hidden=keys.count("intermediate_size"),
        router_bias=True,
    )
    keys.flag("attention_bias", default=True, only=True)
    windows = _windows(keys, pattern=(True, False), default=128)
    return replace(llama(keys, head_dim=64, biases=True), experts=experts, sinks=True, windows=windows)
