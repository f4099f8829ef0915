"""A Hugging Face `config.json` says the shape of a model in the words of its family; here it becomes a transformer.

Meaning and defaults of the keys are those of the classes in transformers 5 (`models/*/configuration_*.py`). Every key
of a file is applied, known to change nothing here, or refused: what is not known may be a part of the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from hops.decode.decode import opened
from hops.errors import HopsError, UsageError
from hops.model import hugging_face_classic as classic
from hops.model import hugging_face_gated as gated
from hops.model.hugging_face_keys import NOTHING, Keys
from hops.model.transformer import Transformer
from hops.units import shown

EXPECTED = "the config.json of a Hugging Face model"
_NESTED = "text_config"  # of models that read more than text


FAMILIES: dict[str, Callable[[Keys], Transformer]] = {
    "llama": gated.llama,
    "mistral": gated.mistral,
    "mixtral": gated.mixtral,
    "qwen2": gated.qwen2,
    "qwen2_moe": gated.qwen2_moe,
    "qwen3": gated.qwen3,
    "qwen3_moe": gated.qwen3_moe,
    "gemma": gated.gemma,
    "gemma2": gated.gemma2,
    "gemma3_text": gated.gemma3,
    "gpt2": classic.gpt2,
    "gpt_neox": classic.gpt_neox,
    "bloom": classic.bloom,
    "mpt": classic.mpt,
    "opt": classic.opt,
    "falcon": classic.falcon,
    "phi3": gated.phi3,
    "deepseek_v2": gated.deepseek_v2,
    "deepseek_v3": gated.deepseek_v3,
    "kimi_k2": gated.deepseek_v3,
    "glm4_moe": gated.glm4_moe,
    "gpt_oss": gated.gpt_oss,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceModel:
    """What a `config.json` came to: the model, keys that it was made from, and keys that change nothing here."""

    family: str
    transformer: Transformer
    applied: tuple[str, ...]
    nothing: tuple[str, ...]


def read_hugging_face(path: Path | str, *, without: tuple[str, ...] = ()) -> HuggingFaceModel:
    """The model of a `config.json`. Raises UsageError: cannot be read, unknown family, or keys that are refused.

    `without`: keys to leave out.
    """
    data, where = opened(path, expected=EXPECTED)
    if not isinstance(data, dict):
        raise UsageError(f"{where.name}: got {shown(data)}, expected {EXPECTED}, a mapping")
    return hugging_face_model(data, name=where.name, without=without)


def hugging_face_model(
    data: Mapping[str, object], *, name: str = "config.json", without: tuple[str, ...] = ()
) -> HuggingFaceModel:
    """The same from its content."""
    given = {key: value for key, value in data.items() if key not in without}
    nested = given.pop(_NESTED, None)
    outer: list[str] = []
    if isinstance(nested, Mapping):
        outer = [key for key in given if key in NOTHING or key in nested or key == "model_type"]
        given = {key: each for key, each in given.items() if key not in outer} | dict(nested)
    family = given.pop("model_type", None)
    if not isinstance(family, str) or family not in FAMILIES:
        near = get_close_matches(str(family), FAMILIES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        got = "no model_type" if family is None else f"model_type {shown(family)}"
        raise UsageError(f"{name}: got {got}; {hint}known are {', '.join(FAMILIES)}")
    keys = Keys(name=name, family=family, data=given)
    try:
        made = FAMILIES[family](keys)
    except HopsError as error:  # maybe of what a complaint is about already
        raise UsageError("\n".join(keys.faults) or f"{name}: {error}") from None
    keys.finish()
    nothing = (*keys.unused, *outer)
    return HuggingFaceModel(
        family=family, transformer=made, applied=("model_type", *keys.used), nothing=tuple(sorted(set(nothing)))
    )
