"""From a file to a Spec, or to one error that lists everything that is wrong with it."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path as File
from typing import Any, TypeVar

from pydantic import ValidationError

from hops.cluster.catalog import Catalog
from hops.config.checks import Sections, cross_check
from hops.config.choices import left_open
from hops.config.document import Complaint, Document, Path, dotted, parse
from hops.config.failure import Failure
from hops.config.fields import Section, Surroundings, reason
from hops.config.hardware import Hardware
from hops.config.messages import complaints
from hops.config.optimizer import Optimizer
from hops.config.overrides import override
from hops.config.pipeline import Pipeline
from hops.config.resolve import resolve
from hops.config.schedule import ScheduleChoice
from hops.config.spec import Output, Simulation, Spec
from hops.config.tree import is_tag
from hops.errors import CatalogError, SpecError
from hops.units import shown

S = TypeVar("S", bound=Section)
# Keys on which no check across keys depends: if only such are wrong, the checks can still be made.
_HARMLESS = frozenset(
    {
        *("memory", "memory_bandwidth", "launch_overhead", "layer_overhead", "price_per_hour", "nic", "nics"),
        *("sockets", "socket_bus", "latency", "stall", "jitter", "recompute", "attention", "p2p", "split_overhead"),
        "microbatch_size",
    }
)
_OPTIONAL = frozenset(key for key, field in Spec.model_fields.items() if not field.is_required())  # may be left empty
_LARGEST_FILE = 20_000_000
_MOST_SHOWN = 50


def load(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Spec:
    """Read a spec file.

    Args:
        path: the YAML file. Files that it names are looked for in its folder.
        overrides: changes such as `pipeline.microbatches=16`, applied in order.

    Raises SpecError with every problem of the file, one a line: `file:line:column: path.to.key: what`.
    """
    file = File(path)
    return loads(_read(file), name=str(file), overrides=overrides, folder=file.parent)


def loads(
    text: str, *, name: str = "spec", overrides: Sequence[str] = (), folder: str | os.PathLike[str] = "."
) -> Spec:
    """Read a spec from text. `name` stands for the file in messages. Raises SpecError, as `load` does."""
    document = override(parse(text, name=name), overrides)
    return checked(document, folder, left_open(document))


def checked(document: Document, folder: str | os.PathLike[str], known: Iterable[Complaint] = ()) -> Spec:
    """The spec of a document. Raises SpecError with everything that is wrong, what is `known` already included."""
    spec, found = _validate(document, str(folder))
    opened = list(known)
    found = _without_echoes(replace(document, complaints=(*document.complaints, *opened)), found)
    if found or spec is None:
        raise SpecError(_report(document, found))
    return resolve(spec)


def read_document(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Document:
    """The document of a spec file, with overrides, not judged yet. Raises SpecError if the file cannot be read."""
    file = File(path)
    return override(parse(_read(file), name=str(file)), overrides)


def _read(file: File) -> str:
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise SpecError(f"{file}: cannot be read: {reason(error)}{_nearby(file)}") from None
    except ValueError as error:  # a NUL in the name
        raise SpecError(f"{shown(str(file))}: cannot be read: {error}") from None
    if len(raw) > _LARGEST_FILE:
        raise SpecError(f"{file}: got {len(raw)} bytes, expected a spec of at most {_LARGEST_FILE}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{file}: is not text in UTF-8 (byte {error.start}), expected a YAML file") from None
    if "\0" in text:
        raise SpecError(f"{file}: is binary (a zero byte at {text.index(chr(0))}), expected a YAML file")
    return text


def _nearby(file: File) -> str:
    """The fix for a file that cannot be read: a spec in that folder, or one with a name like it."""
    folder = file if file.is_dir() else file.parent
    try:
        names = sorted(each.name for each in folder.iterdir() if each.suffix in (".yaml", ".yml"))
        if file.is_file():
            return ""
    except (OSError, ValueError):
        return ""
    if file.is_dir():
        return f"; name a file in it, such as {file / names[0]}" if names else "; name a file"
    near = get_close_matches(file.name, names, n=1)
    return f"; did you mean {folder / near[0]}?" if near else "; `hops init` writes a starter"


def _validate(document: Document, folder: str) -> tuple[Spec | None, list[Complaint]]:
    """The spec, if it is valid, and everything that is wrong."""
    data = document.data
    if not isinstance(data, dict):
        if document.complaints:  # there is nothing to look at
            return None, []
        return None, [
            Complaint(path=(), what=f"got {shown(data)}, expected a mapping with the keys pipeline and hardware")
        ]
    data = {key: each for key, each in data.items() if each is not None or key not in _OPTIONAL}
    catalog, found = _catalog(data, folder)
    context = Surroundings(folder=folder, catalog=catalog)
    spec: Spec | None = None
    try:
        spec = Spec.model_validate(data, context=context)
        sections = Sections.of(spec)
    except ValidationError as error:
        found += complaints(error, Spec)
        sections = _sections(data, folder)
    return spec, [*found, *cross_check(sections, catalog)]


def _sections(data: dict[str, Any], folder: str) -> Sections:
    """What is valid of a document that is not: names need not be in the catalog, harmless keys may be wrong."""
    context = Surroundings(folder=folder)
    pipeline = data.get("pipeline")
    return Sections(
        simulation=_section(Simulation, data.get("simulation", {}), context),
        schedule=_section(ScheduleChoice, _long_schedule(pipeline), context),
        pipeline=_section(Pipeline, pipeline, context),
        hardware=_section(Hardware, data.get("hardware"), context),
        optimizer=_section(Optimizer, data.get("optimizer", {}), context),
        failure=_section(Failure, data.get("failure", {}), context),
        output=_section(Output, data.get("output", {}), context),
    )


def _long_schedule(pipeline: object) -> object:
    schedule = pipeline.get("schedule") if isinstance(pipeline, dict) else None
    return {"name": schedule} if isinstance(schedule, str) else schedule


def _section(kind: type[S], data: object, context: Surroundings) -> S | None:
    """The section, without harmless keys whose values are wrong; None if anything else is wrong."""
    try:
        return kind.model_validate(data, context=context)
    except ValidationError as error:
        wrong = [tuple(part for part in each["loc"] if not is_tag(part)) for each in error.errors()]
    harmless = [path[: index + 1] for path in wrong for index, part in enumerate(path) if part in _HARMLESS]
    if len(harmless) < len(wrong):
        return None
    for path in harmless:
        data = _without(data, path)
    return _section(kind, data, context)


def _without(data: Any, path: Path) -> Any:
    """A copy of the data without the key that the path ends in."""
    first, *rest = path
    if isinstance(data, tuple):
        return tuple(_without(each, tuple(rest)) if index == first else each for index, each in enumerate(data))
    inner = {first: _without(data[first], tuple(rest))} if rest and first in data else {}
    return {**{key: each for key, each in data.items() if key != first}, **inner}


def _catalog(data: dict[str, Any], folder: str) -> tuple[Catalog | None, list[Complaint]]:
    """The catalog with the files that the spec names; None, with the reason, if one cannot be read."""
    hardware = data.get("hardware")
    files = hardware.get("catalog", ()) if isinstance(hardware, dict) else ()
    if not isinstance(files, tuple) or not all(isinstance(file, str) for file in files):
        return None, []  # the wrong type is found by validation
    catalog = _builtin_catalog()
    for index in range(len(files)):
        try:
            catalog = Catalog.load([File(folder).absolute() / file for file in files[: index + 1]])
        except (CatalogError, OSError, ValueError) as error:
            return None, [Complaint(path=("hardware", "catalog", index), what=str(error))]
    return catalog, []


@cache
def _builtin_catalog() -> Catalog:
    return Catalog.load()


def _without_echoes(document: Document, found: Iterable[Complaint]) -> list[Complaint]:
    """All complaints, but not those that follow from a value that could not even be read."""
    unread = {each.path for each in document.complaints if each.path}
    follows = (any(each.path[:length] in unread for length in range(len(each.path) + 1)) for each in found)
    return [*document.complaints, *(each for each, echo in zip(found, follows, strict=True) if not echo)]


def _report(document: Document, found: list[Complaint]) -> str:
    """All complaints, one a line, in the order of the file; the first fifty if there are more."""
    placed = [(each.place or document.place(each.path, at_key=each.at_key), each) for each in found]
    placed.sort(key=lambda pair: pair[0].order)
    lines = [f"{place.text}: {_said(document, each)}" for place, each in placed[:_MOST_SHOWN]]
    more = len(placed) - _MOST_SHOWN
    return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def _said(document: Document, complaint: Complaint) -> str:
    where = dotted(document.written(complaint.path))
    return f"{where}: {complaint.what}" if where else complaint.what
