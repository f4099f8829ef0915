"""Models by name: the shapes of this package, and published ones as their `config.json` describes them."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from hops.model.hugging_face import hugging_face_model
from hops.model.transformer import ALIASES, MODELS, Transformer, named


@cache
def known_models() -> Mapping[str, Transformer]:
    """All models by their own names.

    The keys of published ones in `hugging_face_models.json` are those of their public files, with defaults left out.
    """
    text = files(__package__).joinpath("hugging_face_models.json").read_text(encoding="utf-8")
    published = {name: hugging_face_model(keys, name=name).transformer for name, keys in json.loads(text).items()}
    return {**MODELS, **published}


def find_model(name: str) -> Transformer:
    """The model of that name or alias. Raises CatalogError, with the nearest name, if there is none."""
    if name in MODELS:  # without reading the others
        return MODELS[name]
    return named({**known_models(), **{alias: MODELS[target] for alias, target in ALIASES.items()}}, name)
