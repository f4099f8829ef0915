"""Families with a plain MLP, in the line of GPT-2: layer norms and biases, positions of several kinds."""

from hops.model.hugging_face_keys import Keys
from hops.model.transformer import Transformer


def gpt2(keys: Keys) -> Transformer:
    """Learned positions."""
    positions = keys.count("n_positions", "max_position_embeddings", default=1024)
    if keys.count("n_ctx", default=positions) != positions:
        keys.refuse("n_ctx", "a context other than n_positions")
    return Transformer.gpt(
        layers=keys.count("n_layer", "num_hidden_layers"),
        hidden=keys.count("n_embd", "hidden_size"),
        heads=keys.count("n_head", "num_attention_heads"),
        vocab=keys.count("vocab_size"),
        max_positions=positions,
        ffn_hidden=keys.optional_count("n_inner", default=None),
        tied=keys.flag("tie_word_embeddings", default=True),
    )


def gpt_neox(keys: Keys) -> Transformer:
    """Rotary positions, a head of its own."""
    keys.flag("attention_bias", default=True, only=True)
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    return Transformer(
        layers=keys.count("num_hidden_layers"),
        hidden=hidden,
        ffn_hidden=keys.count("intermediate_size"),
        heads=heads,
        kv_heads=heads,
        head_dim=keys.shared(hidden, heads),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("max_position_embeddings", default=2048),
        gated=False,
        positions="rotary",
        norm="layer",
        biases=True,
        tied=keys.flag("tie_word_embeddings", default=False),
    )


def bloom(keys: Keys) -> Transformer:
    """ALiBi, and a norm after the embedding."""
    hidden, heads = keys.count("hidden_size", "n_embed"), keys.count("n_head", "num_attention_heads")
    return Transformer(
        layers=keys.count("n_layer", "num_hidden_layers"),
        hidden=hidden,
        ffn_hidden=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=keys.shared(hidden, heads),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("seq_length", default=2048),
        gated=False,
        positions="alibi",
        norm="layer",
        biases=True,
        tied=keys.flag("tie_word_embeddings", default=True),
        embedding_norm=True,
    )


def mpt(keys: Keys) -> Transformer:
    """ALiBi, no biases; its layer norms have weights only, as RMS norms have."""
    hidden, heads = keys.count("d_model"), keys.count("n_heads")
    keys.flag("no_bias", default=True, only=True)
    keys.flag("learned_pos_emb", default=True)
    attention = keys.mapping("attn_config", {"alibi": True, "attn_type": "multihead_attention", "qk_ln": False})
    return Transformer(
        layers=keys.count("n_layers"),
        hidden=hidden,
        ffn_hidden=keys.count("expansion_ratio", default=4) * hidden,
        heads=heads,
        kv_heads=attention.get("kv_n_heads", heads),
        head_dim=keys.shared(hidden, heads),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("max_seq_len", default=2048),
        gated=False,
        positions="alibi",
        norm="rms",
        biases=False,
        tied=keys.flag("tie_word_embeddings", default=True),
    )


def opt(keys: Keys) -> Transformer:
    """Learned positions, in a table with two rows more than there are positions."""
    hidden = keys.count("hidden_size")
    if keys.count("word_embed_proj_dim", default=hidden) != hidden:
        keys.refuse("word_embed_proj_dim", "an embedding narrower than the hidden state")
    for key in ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine"):
        keys.flag(key, default=True, only=True)
    keys.flag("_remove_final_layer_norm", default=False, only=False)
    return Transformer.gpt(
        layers=keys.count("num_hidden_layers"),
        hidden=hidden,
        heads=keys.count("num_attention_heads"),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("max_position_embeddings", default=2048) + 2,
        ffn_hidden=keys.count("ffn_dim"),
        tied=keys.flag("tie_word_embeddings", default=True),
    )


def falcon(keys: Keys) -> Transformer:
    """Rotary positions or ALiBi; keys and values shared by all heads or groups; attention and MLP side by side."""
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads", "n_head")
    grouped, one = keys.flag("new_decoder_architecture", default=False), keys.flag("multi_query", default=True)
    stated = keys.optional_count("num_kv_heads", "n_head_kv", default=None)
    norms = keys.optional_count("num_ln_in_parallel_attn", default=None) or (2 if grouped else 1)
    return Transformer(
        layers=keys.count("num_hidden_layers", "n_layer"),
        hidden=hidden,
        ffn_hidden=keys.optional_count("ffn_hidden_size", default=None) or 4 * hidden,
        heads=heads,
        kv_heads=(stated or heads) if grouped else (1 if one else heads),
        head_dim=keys.shared(hidden, heads),
        vocab=keys.count("vocab_size"),
        max_positions=keys.count("max_position_embeddings", default=2048),
        gated=False,
        positions="alibi" if keys.flag("alibi", default=False) else "rotary",
        norm="layer",
        biases=keys.flag("bias", default=False),
        tied=keys.flag("tie_word_embeddings", default=True),
        norms=norms if keys.flag("parallel_attn", default=True) else 2,
    )
