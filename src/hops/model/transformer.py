"""A transformer is a few integers, from which all sizes follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import groupby
from typing import Literal

from hops.errors import CatalogError, UsageError
from hops.model.kinds import Experts, LatentAttention, Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder-only transformer: of equal layers, or of layers that differ as `experts`, `windows` and MTP say.

    Attributes:
        layers, hidden, heads, vocab: the usual ones. `vocab` is what the tables hold, padding included; `layers` counts
            MTP heads.
        ffn_hidden: width inside the MLP; classic models have 4 x hidden.
        kv_heads: heads of keys and values (grouped-query attention); `heads` of them is classic attention.
        head_dim: width of one head, hidden / heads unless a model says otherwise.
        gated: whether the MLP has a gate (SwiGLU: three matrices instead of two).
        max_positions: rows of the position table, if positions are learned.
        positions: learned (a table), rotary or alibi (no parameters).
        norm: layer (weight and bias) or rms (weight).
        biases: whether linear layers have biases.
        tied: whether the head multiplies by the embedding table instead of a matrix of its own.
        qkv_biases: whether queries, keys and values have biases where other linear layers have none.
        head_norms: whether queries and keys are normed, head by head.
        norms: norms of a layer: 2; 4 with one after attention and MLP each, 1 where both read the same.
        embedding_norm: whether the embedding is normed.
        sinks: whether softmax has one more logit per head, that is learned.
        windows: tokens that attention sees, layer after layer, again from the first at the end; 0: all before.
        latent: attention with latents instead of plain projections; `kv_heads` and `head_dim` are then without effect.
        experts: of all layers but its `dense_layers`.
        mtp_layers: how many of the layers, at the end, are MTP heads.
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
    positions: Literal["learned", "rotary", "alibi"]
    norm: Literal["layer", "rms"]
    biases: bool
    tied: bool
    qkv_biases: bool = False
    head_norms: bool = False
    norms: int = 2
    embedding_norm: bool = False
    sinks: bool = False
    windows: tuple[int, ...] = (0,)
    latent: LatentAttention | None = None
    experts: Experts | None = None
    mtp_layers: int = 0

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
        sizes = ("layers", "hidden", "ffn_hidden", "heads", "kv_heads", "head_dim", "vocab", "max_positions", "norms")
        for name in sizes:
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a transformer must be at least 1, but got {getattr(self, name)}")
        if not self.windows or min(self.windows) < 0:
            raise UsageError(f"windows of a transformer must be at least one number from 0 on, but got {self.windows}")
        if not 0 <= self.mtp_layers < self.layers:
            raise UsageError(
                f"mtp_layers must be from 0 to one less than the {self.layers} layers, but got {self.mtp_layers}"
            )
        if self.heads % self.kv_heads:
            raise UsageError(
                f"kv_heads must divide heads: every group of heads shares one head of keys and values, "
                f"but got {self.heads} heads and {self.kv_heads} kv_heads"
            )

    def layer(self, number: int) -> Layer:
        """The layer of that number, counted from 0."""
        moe = self.experts is not None and number not in self.experts.dense_layers
        return Layer(
            experts=self.experts if moe else None,
            window=self.windows[number % len(self.windows)],
            mtp=number >= self.layers - self.mtp_layers,
        )

    def runs(self, first: int, count: int) -> tuple[tuple[Layer, int], ...]:
        """The layers from `first` on, layers alike that follow one another together: (layer, how many)."""
        if self.alike:
            return ((self.layer(0), count),) if count else ()
        found = [self.layer(number) for number in range(first, first + count)]
        return tuple((layer, len(list(same))) for layer, same in groupby(found))

    @property
    def alike(self) -> bool:
        """Whether all layers are alike."""
        moe_alike = self.experts is None or not self.experts.dense_layers
        return moe_alike and self.mtp_layers == 0 and len(set(self.windows)) == 1

    @property
    def query_width(self) -> int:
        """Width of all queries."""
        return self.heads * (self.head_dim if self.latent is None else self.latent.head_dim)

    @property
    def value_dim(self) -> int:
        """Width of one head's value."""
        return self.head_dim if self.latent is None else self.latent.value_dim

    @property
    def context_width(self) -> int:
        """Width of what attention gives back: that of all queries, but for latent attention."""
        return self.heads * self.value_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys, and of all values; not of latent attention."""
        return self.kv_heads * self.head_dim

    @property
    def qkv_width(self) -> int:
        """Width of queries, keys and values together."""
        if self.latent is not None:
            return 2 * self.query_width + self.context_width
        return self.query_width + 2 * self.kv_width

    @property
    def up_width(self) -> int:
        """Width that the first linear layer of the MLP gives: twice ffn_hidden with a gate."""
        return self.widened(self.ffn_hidden)

    def widened(self, width: int) -> int:
        """Width that the first linear layer of an MLP of this width gives: twice with a gate."""
        return 2 * width if self.gated else width

    @property
    def layer_matrix_parameters(self) -> int:
        """Parameters of one layer's linear layers without biases: 12 h^2 for the classic shape. A layer with an MLP."""
        return self.matrix_parameters(Layer())

    def matrix_parameters(self, layer: Layer, *, active: bool = False) -> int:
        """Parameters of a layer's linear layers without biases; `active`: of the experts that one token goes through.

        A router is one of them, and an MTP head's projection of 2 hidden to hidden.
        """
        count = self._attention_parameters
        if layer.experts is None:
            count += self._mlp_parameters(self.ffn_hidden)
        else:
            routed = layer.experts.top_k if active else layer.experts.count
            count += routed * self._mlp_parameters(layer.experts.hidden) + self.hidden * layer.experts.count
            count += self._mlp_parameters(layer.experts.shared_hidden)
            count += self.hidden if layer.experts.shared_gate else 0
        return count + (2 * self.hidden**2 if layer.mtp else 0)

    @property
    def _attention_parameters(self) -> int:
        projection = self.hidden * self.context_width
        if self.latent is None:
            return self.hidden * self.qkv_width + projection
        latent = self.latent
        queries = latent.query_rank * (self.hidden + self.query_width) or self.hidden * self.query_width
        keys = self.hidden * (latent.kv_rank + latent.rope_dim)
        return queries + keys + latent.kv_rank * self.heads * (latent.nope_dim + latent.value_dim) + projection

    def _mlp_parameters(self, width: int) -> int:
        return self.hidden * (self.widened(width) + width)

    @property
    def norm_parameters(self) -> int:
        return self.norm_width(self.hidden)

    def norm_width(self, width: int) -> int:
        """Parameters of a norm of this width."""
        return 2 * width if self.norm == "layer" else width

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer with an MLP: matrices, biases and norms."""
        return self.parameters_of(Layer())

    def parameters_of(self, layer: Layer) -> int:
        """Parameters of a layer: matrices, biases, norms, sinks."""
        count = self.matrix_parameters(layer) + self._biases(layer) + self.norms * self.norm_parameters
        if self.head_norms:
            count += 2 * self.norm_width(self.head_dim)
        if self.latent is not None:
            count += self.norm_width(self.latent.query_rank) + self.norm_width(self.latent.kv_rank)
        if layer.mtp:  # of the state, of the embedding, and before the head
            count += 3 * self.norm_parameters
        return count + (self.heads if self.sinks else 0)

    def _biases(self, layer: Layer) -> int:
        experts = layer.experts
        count = self.qkv_width if self.biases or self.qkv_biases else 0
        if experts is not None and experts.router_bias:
            count += experts.count
        if not self.biases:
            return count
        mlps = self.up_width + self.hidden
        if experts is not None:
            mlps = experts.count * (self.widened(experts.hidden) + self.hidden)
            mlps += self.widened(experts.shared_hidden) + self.hidden if experts.shared_hidden else 0
        return count + self.hidden + mlps

    @property
    def table_parameters(self) -> int:
        """Parameters of the word embedding table."""
        return self.vocab * self.hidden

    @property
    def position_parameters(self) -> int:
        return self.max_positions * self.hidden if self.positions == "learned" else 0

    @property
    def embedding_norm_parameters(self) -> int:
        return self.norm_parameters if self.embedding_norm else 0

    @property
    def parameters(self) -> int:
        """Parameters of the whole model; a tied table counts once."""
        tables = self.table_parameters if self.tied else 2 * self.table_parameters
        layers = sum(count * self.parameters_of(layer) for layer, count in self.runs(0, self.layers))
        return layers + tables + self.position_parameters + self.embedding_norm_parameters + self.norm_parameters

    def model_flop(self, *, sequence_length: int, samples: int, attention: Literal["full", "causal"] = "full") -> float:
        """FLOPs of forward and backward of one microbatch, as MFU counts them: nothing that is recomputed.

        `attention`: `full` counts scores of all pairs of tokens, as most published figures do; `causal` only those that
        a token sees, which is half, or what its window leaves. Sources differ, so a figure must name its convention.
        72 B L s h^2 (1 + s/6h + V/12hL) for the classic shape: Narayanan et al. 2021 (arXiv 2104.04473), equation 3
        without the factor 4/3 of its full recompute. Of experts, those count that a token goes through.
        """
        matrices = (1 + self.mtp_layers) * self.table_parameters
        pairs = 0  # tokens seen by a token, of all layers
        for layer, count in self.runs(0, self.layers):
            matrices += count * self.matrix_parameters(layer, active=True)
            pairs += count * (sequence_length if attention == "full" else layer.seen(sequence_length))
        scores = pairs * (self.query_width + self.context_width)
        return 6.0 * sequence_length * samples * (matrices + scores)


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
    return named({**MODELS, **{alias: MODELS[target] for alias, target in ALIASES.items()}}, name)


def named(models: Mapping[str, Transformer], name: str) -> Transformer:
    """The model of that name among these. Raises CatalogError, with the nearest name, if there is none."""
    if name in models:
        return models[name]
    near = get_close_matches(name.lower(), models, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise CatalogError(
        f"unknown model {name!r}: {hint}known are {', '.join(each for each in models if each not in ALIASES)}"
    )
