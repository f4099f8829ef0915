"""The model of a spec: a transformer by name, by shape, or by name with some of the shape changed."""

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from hops.decode.quantities import Count, Flag, Name, Section, Size, problem, short_for
from hops.errors import CatalogError, HopsError, UsageError
from hops.model.transformer import Transformer, get_model

SHAPE = ("layers", "hidden", "heads", "vocab")  # what a model without a name must state


def _known(name: str) -> str:
    try:
        get_model(name)
    except CatalogError as error:
        raise problem(str(error)) from None
    return name


class ModelChoice(Section):
    """A transformer: by name, by shape, or by name with some of the shape changed."""

    name: Annotated[Name, AfterValidator(_known)] | None = Field(
        default=None,
        description="a known model (`hops list models`); without it, state layers, hidden, heads and vocab",
    )
    layers: Count | None = Field(default=None, description="transformer layers")
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
    positions: Literal["learned", "rotary"] | None = Field(default=None, description="default: learned")
    norm: Literal["layer", "rms"] | None = Field(default=None, description="default: layer")
    biases: Flag | None = Field(default=None, description="whether linear layers have biases; default: true")
    tied: Flag | None = Field(default=None, description="whether the head shares the embedding table; default: true")

    @model_validator(mode="after")
    def _has_a_shape(self) -> "ModelChoice":
        missing = [key for key in SHAPE if getattr(self, key) is None]
        if self.name is None and missing:
            fix = "add name: gpt2-medium, for example" if len(missing) == len(SHAPE) else f"add {', '.join(missing)}"
            raise problem(f"no name and no {', '.join(missing)}, expected a name or a shape", fix)
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
        stated = {key: value for key, value in self.model_dump(exclude={"name"}).items() if value is not None}
        base = get_model(self.name) if self.name is not None else _plain(stated, sequence_length or 1024)
        follows = _following(base, {**asdict(base), **stated})
        return replace(base, **{**follows, **stated})


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
