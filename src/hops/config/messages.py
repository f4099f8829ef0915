"""What the validation library found, said in our words: what, got, expected, fix."""

from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hops.config.document import Complaint
from hops.config.fields import Section
from hops.config.tree import field_at, is_tag, keys_at
from hops.units import shown

# Words of other programs, and what they are called here.
DIALECTS = {
    "micro_batch_size": "microbatch_size",
    "global_batch_size": "microbatches (global batch / microbatch_size / data_parallel)",
    "num_microbatches": "microbatches",
    "seq_length": "sequence_length",
    "num_layers": "layers",
    "hidden_size": "hidden",
    "ffn_hidden_size": "ffn_hidden",
    "num_attention_heads": "heads",
    "num_query_groups": "kv_heads",
    "kv_channels": "head_dim",
    "vocab_size": "vocab",
    "max_position_embeddings": "max_positions",
    "swiglu": "gated",
    "gpus": "devices",
    "gpu": "type",
    "device": "type",
}
_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "none_required": "null",
    "finite_number": "a finite number",
}

_TRUTH = {
    **dict.fromkeys(("yes", "on", "true", "1"), "true"),
    **dict.fromkeys(("no", "off", "false", "0"), "false"),
}


def complaints(error: ValidationError, root: type[Section]) -> list[Complaint]:
    """One complaint for everything the library found in a document of the type `root`."""
    return [_complaint(each, root) for each in error.errors(include_url=False) if not _follows(each)]


def _follows(error: ErrorDetails) -> bool:
    """Whether a list is only too short because its entries are wrong, which is said of each of them."""
    return error["type"] == "too_short" and len(error["input"]) > 0


def _complaint(error: ErrorDetails, root: type[Section]) -> Complaint:
    loc = error["loc"]
    path = tuple(part for part in loc if not is_tag(part))
    if error["type"] == "extra_forbidden":
        return Complaint(path=path, what=_unknown_key(str(loc[-1]), keys_at(root, loc[:-1])), at_key=True)
    if error["type"] == "missing":
        return Complaint(path=path, what=_missing(root, loc))
    return Complaint(path=path, what=_wrong_value(error))


def _unknown_key(key: str, known: tuple[str, ...]) -> str:
    plain = key.lower().replace("-", "_")
    translated = DIALECTS.get(plain, "")
    if translated.split(" ")[0] in known:
        return f"unknown key; did you mean {translated}?"
    near = get_close_matches(plain, known, n=1)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key, expected one of {', '.join(known)}"


def _missing(root: type[Section], loc: tuple[str | int, ...]) -> str:
    field = field_at(root, loc)
    meaning = f" ({field.description})" if field is not None and field.description else ""
    return f"missing{meaning}; add it"


def _wrong_value(error: ErrorDetails) -> str:
    kind, got = error["type"], shown(error["input"])
    context = error.get("ctx", {})
    if kind == "hops":
        return error["msg"]
    if kind in ("int_type", "string_type") and isinstance(error["input"], str | int | float):
        return f"got {got}, expected {_EXPECTED[kind]}{_quotes(kind, error['input'])}"
    if kind == "bool_type" and str(error["input"]).lower() in _TRUTH:
        return f"got {got}, expected true or false; write {_TRUTH[str(error['input']).lower()]}"
    if kind in _EXPECTED:
        return f"got {got}, expected {_EXPECTED[kind]}"
    if kind == "literal_error":
        return _not_among(error["input"], str(context["expected"]))
    for bound, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if bound in context:
            return f"got {got}, expected {words} {context[bound]}"
    if kind == "string_too_short":
        return "got an empty text, expected a name"
    if kind == "too_short":
        return f"got {context['actual_length']} entries, expected at least {context['min_length']}"
    if kind in ("too_long", "string_too_long"):
        return f"got more than {context['max_length']} entries or characters, expected at most that many"
    return f"got {got}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _quotes(kind: str, got: object) -> str:
    """The fix for a number in quotes, or for text without them."""
    if kind == "string_type":
        return f'; write "{got}" if it is a name'
    return "; remove the quotes" if isinstance(got, str) and got.strip().isdigit() else ""


def _not_among(got: object, expected: str) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    near = get_close_matches(str(got), words, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"got {shown(got)}, expected {'one of ' if len(words) > 1 else ''}{', '.join(words)}{hint}"
