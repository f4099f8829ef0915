"""Overrides: `a.b[0].c=d` changes one value of a document that has been read."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hops.config.document import Complaint, Document, Path, Place, dotted, parse
from hops.units import shown

_PART = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d{1,6}\])*)")


class _WrongOverrideError(Exception):
    """An override that cannot be applied, with the reason."""


def override(document: Document, texts: Iterable[str]) -> Document:
    """The document with the values of all overrides; complaints about wrong ones are added."""
    for text in texts:
        document = _apply(document, text)
    return document


def _apply(document: Document, text: str) -> Document:
    place = Place(text=f"--set {shown(text)[1:-1]}")
    try:
        path, value = _split(text)
        read = parse(value, name=place.text) if value.strip() else Document(data=None)
        data = _changed(document.data, path, 0, read.data)
    except _WrongOverrideError as error:
        wrong = Complaint(path=(), what=str(error), place=place)
        return replace(document, complaints=(*document.complaints, wrong))
    own = tuple(Complaint(path=path, what=each.what, place=place) for each in read.complaints)
    replaced = {at: there for at, there in document.values.items() if at[: len(path)] != path}
    inner = {(*path, *at): place for at in read.values}
    return Document(
        data=data,
        values={**replaced, **_above(path, replaced, place), **inner, path: place},
        keys={**document.keys, **{(*path, *at): place for at in read.keys}, path: place},
        complaints=(*_still_there(document, path), *own),
    )


def _above(path: Path, places: dict[Path, Place], place: Place) -> dict[Path, Place]:
    """Places of the mappings around the path that the override itself makes."""
    around = (path[:length] for length in range(len(path)))
    return {at: place for at in around if at not in places}


def _still_there(document: Document, path: Path) -> tuple[Complaint, ...]:
    """Complaints about what the override does not replace."""
    return tuple(each for each in document.complaints if each.path[: len(path)] != path)


def _split(text: str) -> tuple[Path, str]:
    left, equals, value = text.partition("=")
    parts: list[str | int] = []
    for word in left.strip().split("."):
        match = _PART.fullmatch(word)
        if match is None or not equals:
            raise _WrongOverrideError(
                "expected KEY=VALUE, such as pipeline.microbatches=16 or hardware.nodes[0].count=2"
            )
        name, indices = match.groups()
        parts += [name, *map(int, re.findall(r"\d+", indices))]
    return tuple(parts), value


def _changed(data: Any, path: Path, depth: int, value: Any) -> Any:
    """A copy of the data in which the value at the path is another one. Raises _WrongOverrideError."""
    if depth == len(path):
        return value
    part = path[depth]
    if isinstance(part, int):
        if not isinstance(data, tuple) or part >= len(data):
            size = f"a list of {len(data)}" if isinstance(data, tuple) else "no list"
            raise _WrongOverrideError(f"there is no entry [{part}]: {dotted(path[:depth])} is {size}")
        return (*data[:part], _changed(data[part], path, depth + 1, value), *data[part + 1 :])
    mapping = _as_mapping(data, path, depth)
    return {**mapping, part: _changed(mapping.get(part), path, depth + 1, value)}


def _as_mapping(data: Any, path: Path, depth: int) -> dict[str, Any]:
    """The mapping to change; a name written short is written out first."""
    if data is None:
        return {}
    if isinstance(data, str):
        return {"type" if "devices" in path[:depth] else "name": data}
    if isinstance(data, dict):
        return data
    raise _WrongOverrideError(f"there is no key {path[depth]}: {dotted(path[:depth])} is no mapping")
