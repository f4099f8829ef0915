"""The keys of the spec as a tree, read from the models: which section or field stands at a path."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import Tag
from pydantic.fields import FieldInfo

from hops.config.fields import Section

Loc = tuple[str | int, ...]


def is_tag(part: str | int) -> bool:
    """Whether a part of a validation error's location names a form of a field and not a key."""
    return isinstance(part, str) and part.startswith("<")


def keys_at(root: type[Section], loc: Loc) -> tuple[str, ...]:
    """The keys that the mapping at the location may have."""
    return tuple(_section_at(root, loc).model_fields)


def field_at(root: type[Section], loc: Loc) -> FieldInfo | None:
    """The field whose key is the last part of the location; None if that is an index or a form."""
    *around, key = loc
    if is_tag(key) or isinstance(key, int):
        return None
    return _section_at(root, tuple(around)).model_fields.get(key)


def _section_at(root: type[Section], loc: Loc) -> type[Section]:
    kind: Any = root
    for part in loc:
        if is_tag(part):
            kind = _tagged(kind, str(part))
        elif isinstance(part, int):
            kind = next(get_args(each)[0] for each in alternatives(kind) if get_origin(each) is tuple)
        else:
            kind = sections_in(kind)[0].model_fields[part].annotation
    return sections_in(kind)[0]


def alternatives(kind: Any) -> Iterator[Any]:
    """The types that a field's type consists of: unions taken apart, annotations and None taken off."""
    if get_origin(kind) is Annotated:
        yield from alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            yield from alternatives(each)
    elif kind is not NoneType:
        yield kind


def sections_in(kind: Any) -> list[type[Section]]:
    """The sections among the alternatives of a type."""
    return [each for each in alternatives(kind) if isinstance(each, type) and issubclass(each, Section)]


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
