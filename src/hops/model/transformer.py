"""A transformer is a few integers, from which all sizes follow."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from hops.errors import CatalogError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder-only transformer of equal layers.

    Attributes:
        layers, hidden, heads, vocab: the usual ones. `vocab` is what the tables hold, padding included.
        ffn_hidden: width inside the MLP; classic models have 4 x hidden.
        kv_heads: heads of keys and values (grouped-query attention); `heads` of them is classic attention.
        head_dim: width of one head, hidden / heads unless a model says otherwise.
        gated: whether the MLP has a gate (SwiGLU: three matrices instead of two).
        max_positions: rows of the position table, if positions are learned.
        positions: learned (a table) or rotary (no parameters).
        norm: layer (weight and bias) or rms (weight).
        biases: whether linear layers have biases.
        tied: whether the head multiplies by the embedding table instead of a matrix of its own.
    """

    layers: int
    hidden: int
    ffn_hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_positions: int
    gated: bool
    positions: Literal["learned", "rotary"]
    norm: Literal["layer", "rms"]
    biases: bool
    tied: bool

    @classmethod
    def gpt(
        cls,
        *,
        layers: int,
        hidden: int,
        heads: int,
        vocab: int,
        max_positions: int,
        ffn_hidden: int | None = None,
        tied: bool = True,
    ) -> "Transformer":
        """GPT-2's shape: learned positions, layer norm, biases, plain MLP of 4 x hidden unless given."""
        _check_heads(hidden, heads)
        return cls(
            layers=layers,
            hidden=hidden,
            ffn_hidden=4 * hidden if ffn_hidden is None else ffn_hidden,
            heads=heads,
            kv_heads=heads,
            head_dim=hidden // heads,
            vocab=vocab,
            max_positions=max_positions,
            gated=False,
            positions="learned",
            norm="layer",
            biases=True,
            tied=tied,
        )

    @classmethod
    def llama(
        cls, *, layers: int, hidden: int, ffn_hidden: int, heads: int, kv_heads: int, vocab: int, max_positions: int
    ) -> "Transformer":
        """Llama's shape: rotary positions, RMS norm, no biases, gated MLP, a head of its own."""
        _check_heads(hidden, heads)
        return cls(
            layers=layers,
            hidden=hidden,
            ffn_hidden=ffn_hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=hidden // heads,
            vocab=vocab,
            max_positions=max_positions,
            gated=True,
            positions="rotary",
            norm="rms",
            biases=False,
            tied=False,
        )

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "max_positions"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a transformer must be at least 1, but got {getattr(self, name)}")
        if self.heads % self.kv_heads:
            raise UsageError(
                f"kv_heads must divide heads: every group of heads shares one head of keys and values, "
                f"but got {self.heads} heads and {self.kv_heads} kv_heads"
            )

    @property
    def query_width(self) -> int:
        """Width of all queries, and of what attention gives back."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys, and of all values."""
        return self.kv_heads * self.head_dim

    @property
    def qkv_width(self) -> int:
        """Width of queries, keys and values together."""
        return self.query_width + 2 * self.kv_width

    @property
    def up_width(self) -> int:
        """Width that the first linear layer of the MLP gives: twice ffn_hidden with a gate."""
        return 2 * self.ffn_hidden if self.gated else self.ffn_hidden

    @property
    def layer_matrix_parameters(self) -> int:
        """Parameters of one layer's linear layers without biases: 12 h^2 for the classic shape."""
        attention = self.hidden * (self.qkv_width + self.query_width)
        return attention + self.hidden * (self.up_width + self.ffn_hidden)

    @property
    def norm_parameters(self) -> int:
        return 2 * self.hidden if self.norm == "layer" else self.hidden

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: matrices, biases and two norms."""
        biases = self.qkv_width + self.hidden + self.up_width + self.hidden if self.biases else 0
        return self.layer_matrix_parameters + biases + 2 * self.norm_parameters

    @property
    def table_parameters(self) -> int:
        """Parameters of the word embedding table."""
        return self.vocab * self.hidden

    @property
    def position_parameters(self) -> int:
        return self.max_positions * self.hidden if self.positions == "learned" else 0

    @property
    def parameters(self) -> int:
        """Parameters of the whole model; a tied table counts once."""
        tables = self.table_parameters if self.tied else 2 * self.table_parameters
        return self.layers * self.layer_parameters + tables + self.position_parameters + self.norm_parameters

    def model_flop(self, *, sequence_length: int, samples: int) -> float:
        """FLOPs of forward and backward of one microbatch, as MFU counts them: no recompute, full attention.

        72 B L s h^2 (1 + s/6h + V/12hL) for the classic shape: Narayanan et al. 2021 (arXiv 2104.04473), equation 3
        without the factor 4/3 of its full recompute.
        """
        tokens = sequence_length * samples
        matrices = self.layers * self.layer_matrix_parameters + self.table_parameters
        scores = 2 * self.layers * sequence_length * self.query_width
        return 6.0 * tokens * (matrices + scores)


def _check_heads(hidden: int, heads: int) -> None:
    if heads < 1 or hidden % heads:
        raise UsageError(f"heads must divide hidden, but got {heads} heads for a hidden size of {hidden}")


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
