"""A spec may leave choices open for `hops plan`: `auto`, or a list where `hops run` takes a single value."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from hops.decode.document import Complaint, Document, Path, dotted

AUTO = "auto"
CHOOSABLE: tuple[Path, ...] = (
    ("pipeline", "schedule"),
    ("pipeline", "recompute"),
    ("pipeline", "microbatches"),
    ("pipeline", "microbatch_size"),
)
ARRANGED: tuple[Path, ...] = (("pipeline", "partition"), ("hardware", "placement"))  # planned, not tried one by one
Written = Literal["absent", "auto", "list", "single"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChoice:
    """One value of an open key: the value as a document has it, and where it is written."""

    value: Any
    path: Path


def written(document: Document, path: Path) -> Written:
    """How a key stands in the document."""
    inside, value = _find(document.data, path)
    if not inside or value is None:
        return "absent"
    if value == AUTO:
        return "auto"
    several = isinstance(value, tuple) and len(value) > 1
    return "list" if several and path not in ARRANGED else "single"


def choices(document: Document, path: Path) -> tuple[OpenChoice, ...]:
    """The values that a key is given: one, or those of its list; parameters of a schedule may be lists, too."""
    _, value = _find(document.data, path)
    if written(document, path) == "list":
        each = tuple(OpenChoice(value=one, path=(*path, index)) for index, one in enumerate(value))
    else:
        each = (OpenChoice(value=value, path=path),)
    return tuple(inner for choice in each for inner in _spread(choice))


def chosen(document: Document, path: Path, choice: OpenChoice) -> Document:
    """The document with one of its choices in the key's place; messages about it point at where it is written."""
    data = _replaced(document.data, path, choice.value)
    kept = {at: place for at, place in document.values.items() if at[: len(path)] != path}
    own = {
        (*path, *at[len(choice.path) :]): place
        for at, place in document.values.items()
        if at[: len(choice.path)] == choice.path
    }
    return replace(document, data=data, values={**kept, **own, path: document.place(choice.path)})


def without(document: Document, path: Path) -> Document:
    """The document without the key."""
    _, around = _find(document.data, path[:-1])
    left = {key: value for key, value in around.items() if key != path[-1]} if isinstance(around, dict) else around
    return replace(document, data=_replaced(document.data, path[:-1], left))


def left_open(document: Document) -> Iterator[Complaint]:
    """What `hops run` says of a spec that leaves something open."""
    for path in (*CHOOSABLE, *ARRANGED):
        how = written(document, path)
        if how in ("auto", "list"):
            got = AUTO if how == "auto" else "a list of choices"
            what = f"got {got}, expected one value; `hops plan` chooses it and writes specs to run"
            yield Complaint(path=path, what=what)


def says_auto(path: Path, fix: str) -> Complaint:
    """The complaint about an `auto` that nothing can be made of."""
    return Complaint(path=path, what=f"got auto, and nothing says what {dotted(path)} may be; {fix}")


def _spread(choice: OpenChoice) -> Iterator[OpenChoice]:
    """A schedule whose parameters are lists, once per combination."""
    if not isinstance(choice.value, dict):
        yield choice
        return
    lists = {key: value if isinstance(value, tuple) else (value,) for key, value in choice.value.items()}
    for values in product(*lists.values()):
        yield replace(choice, value=dict(zip(lists, values, strict=True)))


def _find(data: Any, path: Path) -> tuple[bool, Any]:
    """Whether the path is there, and its value."""
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False, None
        data = data[part]
    return True, data


def _replaced(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    inner = data[path[0]] if isinstance(data, dict) and path[0] in data else {}
    return {**(data if isinstance(data, dict) else {}), path[0]: _replaced(inner, path[1:], value)}
