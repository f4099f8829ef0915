"""What the validation library found, said in our words: what, got, expected, fix."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import Tag, ValidationError
from pydantic_core import ErrorDetails

from hops.decode.document import Complaint
from hops.decode.quantities import Section
from hops.units import shown

Loc = tuple[str | int, ...]


def is_tag(part: str | int) -> bool:
    """Whether a part of a validation error's location names a form of a field and not a key."""
    return isinstance(part, str) and part.startswith("<")


class Key(NamedTuple):
    """One key of a mapping: the type of its value, and what it means ("": nobody said)."""

    kind: Any
    meaning: str


def keys_of(kind: type) -> Mapping[str, Key]:
    """The keys that a section, or the dataclass that stands for a mapping, may have."""
    if issubclass(kind, Section):
        return {name: Key(each.annotation, each.description or "") for name, each in kind.model_fields.items()}
    assert is_dataclass(kind), "records_in finds no others"
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: Key(hints[each.name], "") for each in fields(kind)}


def keys_at(root: Any, loc: Loc) -> Mapping[str, Key]:
    """The keys that the mapping at the location may have."""
    return keys_of(records_in(_kind_at(root, loc))[0])


def _kind_at(root: Any, loc: Loc) -> Any:
    kind = root
    for part in loc:
        if is_tag(part):
            kind = _tagged(kind, str(part))
        elif isinstance(part, int):
            kind = next(get_args(each)[0] for each in alternatives(kind) if get_origin(each) is tuple)
        elif records := records_in(kind):
            kind = keys_of(records[0])[part].kind
        else:  # a mapping of names to values
            kind = next(get_args(each)[1] for each in alternatives(kind) if get_origin(each) in (Mapping, dict))
    return kind


def alternatives(kind: Any) -> Iterator[Any]:
    """The types that a field's type consists of: unions taken apart, annotations and None taken off."""
    if get_origin(kind) is Annotated:
        yield from alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from alternatives(each)
    elif kind is not NoneType:
        yield kind


def records_in(kind: Any) -> list[type]:
    """The sections and dataclasses among the alternatives of a type."""
    classes = [get_origin(each) or each for each in alternatives(kind)]
    return [each for each in classes if isinstance(each, type) and (issubclass(each, Section) or is_dataclass(each))]


def _tagged(kind: Any, tag: str) -> Any:
    """The alternative of a union that bears the tag."""
    for each in _annotated(kind):
        if any(isinstance(extra, Tag) and extra.tag == tag for extra in get_args(each)[1:]):
            return each
    raise AssertionError(f"no {tag} in {kind}")


def _annotated(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        yield kind
        yield from _annotated(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from _annotated(each)


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
    "mapping_type": "a mapping of keys to values",
    "dataclass_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "none_required": "null",
    "finite_number": "a finite number",
}

_TRUTH = {
    **dict.fromkeys(("yes", "on", "true", "1"), "true"),
    **dict.fromkeys(("no", "off", "false", "0"), "false"),
}


def complaints(error: ValidationError, root: Any) -> list[Complaint]:
    """One complaint for everything the library found in a document of the type `root`."""
    return [_complaint(each, root) for each in error.errors(include_url=False) if not _follows(each)]


def _follows(error: ErrorDetails) -> bool:
    """Whether a list is only too short because its entries are wrong, which is said of each of them."""
    return error["type"] == "too_short" and len(error["input"]) > 0


def _complaint(error: ErrorDetails, root: Any) -> Complaint:
    loc = error["loc"]
    path = tuple(part for part in loc if not is_tag(part) and part != "[key]")
    if loc[-1:] == ("[key]",):
        return Complaint(path=path, what=_wrong_value(error), at_key=True)
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return Complaint(path=path, what=_unknown_key(str(loc[-1]), tuple(keys_at(root, loc[:-1]))), at_key=True)
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


def _missing(root: Any, loc: Loc) -> str:
    key = loc[-1]
    meaning = keys_at(root, loc[:-1])[key].meaning if isinstance(key, str) and not is_tag(key) else ""
    return f"missing{f' ({meaning})' if meaning else ''}; add it"


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
    if kind in ("literal_error", "enum"):
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
