"""The model of a spec: a transformer by name, by a Hugging Face file, by shape, or with some of the shape changed."""

import os
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from hops.decode.quantities import Count, Flag, Index, Name, Section, Several, Size, problem, short_for
from hops.errors import CatalogError, HopsError, UsageError
from hops.model.hugging_face import read_hugging_face
from hops.model.kinds import Experts, LatentAttention
from hops.model.models import find_model
from hops.model.transformer import Transformer
from hops.spec.context import InputFile

SHAPE = ("layers", "hidden", "heads", "vocab")  # what a model without a name must state


def _known(name: str) -> str:
    try:
        find_model(name)
    except CatalogError as error:
        raise problem(str(error)) from None
    return name


class ExpertsChoice(Section):
    """A mixture of experts in place of the MLP."""

    count: Count = Field(description="routed experts of a layer")
    top_k: Count = Field(description="experts that a token goes through")
    hidden: Count = Field(description="width inside one expert")
    shared_hidden: Index = Field(default=0, description="width of an MLP that all tokens go through besides; 0: none")
    shared_gate: Flag = Field(default=False, description="whether that MLP's result is scaled by a gate")
    router_bias: Flag = Field(default=False, description="whether the router adds a number per expert")
    dense_layers: tuple[Index, ...] = Field(default=(), description="layers, from 0, that have an MLP instead")

    def build(self) -> Experts:
        """Raises UsageError for numbers that contradict each other."""
        return Experts(**self.model_dump())


class LatentChoice(Section):
    """Attention whose queries, keys and values are made from narrow latents (MLA)."""

    query_rank: Index = Field(default=0, description="width of the latent of queries; 0: queries have none")
    kv_rank: Count = Field(description="width of the latent of keys and values")
    nope_dim: Count = Field(description="width of a head's query and key without positions")
    rope_dim: Count = Field(description="width of their part with rotary positions")
    value_dim: Count = Field(description="width of a head's value")

    def build(self) -> LatentAttention:
        """The same in the words of the model."""
        return LatentAttention(**self.model_dump())


class ModelChoice(Section):
    """A transformer: by name, by a Hugging Face file, by shape, or with some of the shape changed."""

    name: Annotated[Name, AfterValidator(_known)] | None = Field(
        default=None,
        description="a known model (`hops list models`); without it, state layers, hidden, heads and vocab",
    )
    hf: InputFile | None = Field(
        default=None, description="the config.json of a Hugging Face model, beside the spec, instead of a name"
    )
    layers: Count | None = Field(default=None, description="transformer layers, MTP heads included")
    hidden: Count | None = Field(default=None, description="width of the residual stream")
    heads: Count | None = Field(default=None, description="attention heads")
    vocab: Size | None = Field(default=None, description="rows of the embedding table, padding included")
    ffn_hidden: Count | None = Field(default=None, description="width inside the MLP; default: 4 x hidden")
    kv_heads: Count | None = Field(default=None, description="heads of keys and values; default: heads")
    head_dim: Count | None = Field(default=None, description="width of a head; default: hidden / heads")
    max_positions: Size | None = Field(
        default=None, description="longest sequence; default: the sequence_length, or 1024"
    )
    gated: Flag | None = Field(default=None, description="gated MLP (SwiGLU, three matrices); default: false")
    positions: Literal["learned", "rotary", "alibi"] | None = Field(default=None, description="default: learned")
    norm: Literal["layer", "rms"] | None = Field(default=None, description="default: layer")
    biases: Flag | None = Field(default=None, description="whether linear layers have biases; default: true")
    tied: Flag | None = Field(default=None, description="whether the head shares the embedding table; default: true")
    qkv_biases: Flag | None = Field(
        default=None, description="whether queries, keys and values have biases where others have none; default: false"
    )
    head_norms: Flag | None = Field(
        default=None, description="whether queries and keys are normed, head by head; default: false"
    )
    norms: Count | None = Field(default=None, description="norms of a layer; default: 2")
    embedding_norm: Flag | None = Field(default=None, description="whether the embedding is normed; default: false")
    sinks: Flag | None = Field(default=None, description="whether softmax has a learned logit per head; default: false")
    windows: Several[Index] | None = Field(
        default=None,
        description="tokens that attention sees, layer by layer, again from the first at the end; 0: all; default: [0]",
    )
    latent: LatentChoice | None = Field(default=None, description="attention with latents (MLA)")
    experts: ExpertsChoice | None = Field(default=None, description="experts in place of the MLP")
    mtp_layers: Index | None = Field(
        default=None, description="how many of the layers, at the end, predict one token more each; default: 0"
    )

    @model_validator(mode="after")
    def _has_a_shape(self) -> "ModelChoice":
        missing = [key for key in SHAPE if getattr(self, key) is None]
        if self.name is not None and self.hf is not None:
            raise problem("got both name and hf, expected one of them", "remove one")
        if self.name is None and self.hf is None and missing:
            fix = "add name: gpt2-medium, for example" if len(missing) == len(SHAPE) else f"add {', '.join(missing)}"
            raise problem(f"no name and no {', '.join(missing)}, expected a name, hf, or a shape", fix)
        try:
            self.transformer()
        except HopsError as error:
            raise problem(str(error)) from None
        return self

    def transformer(self, sequence_length: int | None = None) -> Transformer:
        """The transformer meant; sizes that follow from others follow from the changed ones.

        Args:
            sequence_length: default of max_positions for a model without a name.

        Raises HopsError if the sizes contradict each other.
        """
        plain = self.model_dump(exclude={"name", "hf", "latent", "experts"})
        stated = {key: value for key, value in plain.items() if value is not None}
        base = self._base(stated, sequence_length or 1024)
        if self.latent is not None:
            stated["latent"] = self.latent.build()
        if self.experts is not None:
            stated["experts"] = self.experts.build()
        follows = _following(base, {**asdict(base), **stated})
        return replace(base, **{**follows, **stated})

    def _base(self, stated: dict[str, Any], max_positions: int) -> Transformer:
        if self.hf is not None:
            return _of_file(self.hf, _edition(self.hf))
        return find_model(self.name) if self.name is not None else _plain(stated, max_positions)


def as_fields(transformer: Transformer) -> dict[str, Any]:
    """All fields of a model, as the section has them."""
    keys = [key for key in ModelChoice.model_fields if key not in {"name", "hf", "latent", "experts"}]
    latent, experts = transformer.latent, transformer.experts
    return {
        **{key: getattr(transformer, key) for key in keys},
        "latent": None if latent is None else LatentChoice(**asdict(latent)),
        "experts": None if experts is None else ExpertsChoice(**asdict(experts)),
    }


def _edition(path: str) -> tuple[int, int]:
    """What changes when a file is written anew."""
    try:
        found = os.stat(path)  # noqa: PTH116 (its time and size only)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)  # a spec is validated, resolved and built; the file is read once
def _of_file(path: str, _edition: tuple[int, int]) -> Transformer:
    return read_hugging_face(path).transformer


def _plain(stated: dict[str, Any], max_positions: int) -> Transformer:
    sizes = {key: stated[key] for key in SHAPE}
    return Transformer.gpt(**sizes, max_positions=max_positions)


def _following(base: Transformer, new: dict[str, Any]) -> dict[str, int]:
    """Sizes that follow from changed ones, as in the base: head width, key/value heads and the MLP's width."""
    follows: dict[str, int] = {}
    if (new["hidden"], new["heads"]) != (base.hidden, base.heads):
        if new["hidden"] % new["heads"]:
            raise UsageError(
                f"heads must divide hidden, but got {new['heads']} heads for a hidden size of {new['hidden']}"
            )
        follows["head_dim"] = new["hidden"] // new["heads"]
    if base.kv_heads == base.heads:
        follows["kv_heads"] = new["heads"]
    if base.ffn_hidden == 4 * base.hidden:
        follows["ffn_hidden"] = 4 * new["hidden"]
    return follows


ModelField = Annotated[ModelChoice, short_for("name", ModelChoice)]
