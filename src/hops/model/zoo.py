"""Models by name, with the sizes that their authors published."""

from difflib import get_close_matches

from hops.errors import CatalogError
from hops.model.transformer import Transformer


def _gpt2(*, layers: int, hidden: int, heads: int) -> Transformer:
    """Radford et al. 2019, table 2; the released checkpoints' config.json."""
    return Transformer.gpt(layers=layers, hidden=hidden, heads=heads, vocab=50257, max_positions=1024)


def _llama2(*, layers: int, hidden: int, ffn_hidden: int, heads: int, kv_heads: int) -> Transformer:
    """Touvron et al. 2023 (arXiv 2307.09288); the released checkpoints' config.json."""
    return Transformer.llama(
        layers=layers,
        hidden=hidden,
        ffn_hidden=ffn_hidden,
        heads=heads,
        kv_heads=kv_heads,
        vocab=32000,
        max_positions=4096,
    )


def _llama3(*, layers: int, hidden: int, ffn_hidden: int, heads: int, max_positions: int) -> Transformer:
    """Grattafiori et al. 2024 (arXiv 2407.21783), table 3; the released checkpoints' config.json."""
    return Transformer.llama(
        layers=layers,
        hidden=hidden,
        ffn_hidden=ffn_hidden,
        heads=heads,
        kv_heads=8,
        vocab=128256,
        max_positions=max_positions,
    )


MODELS: dict[str, Transformer] = {
    "gpt2": _gpt2(layers=12, hidden=768, heads=12),
    "gpt2-medium": _gpt2(layers=24, hidden=1024, heads=16),
    "gpt2-large": _gpt2(layers=36, hidden=1280, heads=20),
    "gpt2-xl": _gpt2(layers=48, hidden=1600, heads=25),
    # Brown et al. 2020 (arXiv 2005.14165), table 2.1
    "gpt3-175b": Transformer.gpt(layers=96, hidden=12288, heads=96, vocab=50257, max_positions=2048),
    "llama2-7b": _llama2(layers=32, hidden=4096, ffn_hidden=11008, heads=32, kv_heads=32),
    "llama2-13b": _llama2(layers=40, hidden=5120, ffn_hidden=13824, heads=40, kv_heads=40),
    "llama2-70b": _llama2(layers=80, hidden=8192, ffn_hidden=28672, heads=64, kv_heads=8),
    "llama3-8b": _llama3(layers=32, hidden=4096, ffn_hidden=14336, heads=32, max_positions=8192),
    "llama3-70b": _llama3(layers=80, hidden=8192, ffn_hidden=28672, heads=64, max_positions=8192),
    "llama3.1-405b": _llama3(layers=126, hidden=16384, ffn_hidden=53248, heads=128, max_positions=131072),
}
ALIASES: dict[str, str] = {"gpt2-small": "gpt2", "gpt3": "gpt3-175b", "llama3-405b": "llama3.1-405b"}


def get_model(name: str) -> Transformer:
    """The model of that name. Raises CatalogError, with the nearest name, if there is none."""
    known = {**MODELS, **{alias: MODELS[target] for alias, target in ALIASES.items()}}
    if name in known:
        return known[name]
    near = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise CatalogError(f"unknown model {name!r}: {hint}known are {', '.join(MODELS)}")
