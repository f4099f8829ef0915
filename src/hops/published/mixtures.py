"""Models with experts that tables name without their shape; from their papers and released config.json files."""

from hops.model.kinds import Experts, LatentAttention
from hops.model.transformer import Transformer


def _llama_like(
    *, layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, head_dim: int, vocab: int, positions: int
) -> dict[str, object]:
    return {
        "layers": layers,
        "hidden": hidden,
        "ffn_hidden": ffn,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "vocab": vocab,
        "max_positions": positions,
        "gated": True,
        "positions": "rotary",
        "norm": "rms",
        "biases": False,
        "tied": False,
    }


def _qwen3(**sizes: int) -> dict[str, object]:
    return {**_llama_like(vocab=151936, positions=40960, head_dim=128, **sizes), "head_norms": True}


_DEEPSEEK = LatentAttention(query_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128)
MIXTURES: dict[str, Transformer] = {
    # DeepSeek-AI 2024 (arXiv 2405.04434)
    "deepseek-v2": Transformer(
        **_llama_like(  # type: ignore[arg-type]
            layers=60, hidden=5120, ffn=12288, heads=128, kv_heads=128, head_dim=128, vocab=102400, positions=163840
        ),
        latent=_DEEPSEEK,
        experts=Experts(count=160, top_k=6, hidden=1536, shared_hidden=3072, dense_layers=(0,)),
    ),
    # DeepSeek-AI 2024 (arXiv 2412.19437)
    "deepseek-v3": Transformer(
        **_llama_like(  # type: ignore[arg-type]
            layers=61, hidden=7168, ffn=18432, heads=128, kv_heads=128, head_dim=128, vocab=129280, positions=163840
        ),
        latent=_DEEPSEEK,
        experts=Experts(count=256, top_k=8, hidden=2048, shared_hidden=2048, router_bias=True, dense_layers=(0, 1, 2)),
    ),
    # Moonshot AI 2025 (arXiv 2502.16982)
    "moonlight-16b": Transformer(
        **_llama_like(  # type: ignore[arg-type]
            layers=27, hidden=2048, ffn=11264, heads=16, kv_heads=16, head_dim=128, vocab=163840, positions=8192
        ),
        latent=LatentAttention(query_rank=0, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128),
        experts=Experts(count=64, top_k=6, hidden=1408, shared_hidden=2816, router_bias=True, dense_layers=(0,)),
    ),
    # Yang et al. 2025 (arXiv 2505.09388)
    "qwen3-30b-a3b": Transformer(
        **_qwen3(layers=48, hidden=2048, ffn=6144, heads=32, kv_heads=4),  # type: ignore[arg-type]
        experts=Experts(count=128, top_k=8, hidden=768),
    ),
    "qwen3-235b-a22b": Transformer(
        **_qwen3(layers=94, hidden=4096, ffn=12288, heads=64, kv_heads=4),  # type: ignore[arg-type]
        experts=Experts(count=128, top_k=8, hidden=1536),
    ),
    "qwen3-8b": Transformer(
        **_qwen3(layers=36, hidden=4096, ffn=12288, heads=32, kv_heads=8),  # type: ignore[arg-type]
    ),
    # Jiang et al. 2024 (arXiv 2401.04088)
    "mixtral-8x7b": Transformer(
        **_llama_like(  # type: ignore[arg-type]
            layers=32, hidden=4096, ffn=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000, positions=32768
        ),
        experts=Experts(count=8, top_k=2, hidden=14336),
    ),
    "mixtral-8x22b": Transformer(
        **_llama_like(  # type: ignore[arg-type]
            layers=56, hidden=6144, ffn=16384, heads=48, kv_heads=8, head_dim=128, vocab=32768, positions=65536
        ),
        experts=Experts(count=8, top_k=2, hidden=16384),
    ),
}
