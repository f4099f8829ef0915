"""From a file to a Spec, or to one error that lists everything that is wrong with it."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path as File
from typing import Any, TypeVar

from pydantic import ValidationError

from hops.decode.decode import read_input, read_text, report, without_echoes
from hops.decode.document import Complaint, Document, Path, Position, dotted, parse
from hops.decode.messages import complaints, is_tag
from hops.decode.quantities import Section
from hops.errors import CatalogError, SpecError
from hops.hardware.catalog import Catalog
from hops.spec.checks import Sections, cross_check
from hops.spec.choices import left_open
from hops.spec.context import Surroundings
from hops.spec.failure import FailureSection
from hops.spec.foreign import foreign
from hops.spec.hardware import HardwareSection
from hops.spec.parallel import ParallelSection
from hops.spec.pipeline import PipelineSection
from hops.spec.schedule import ScheduleChoice
from hops.spec.spec import OptimizerSection, OutputSection, SimulationSection, Spec, resolve
from hops.units import shown

_PART = re.compile(r"([A-Za-z_][\w-]*)((?:\[\d{1,6}\])*)")


class WrongOverrideError(Exception):
    """An override that cannot be applied, with the reason."""


def override(document: Document, texts: Iterable[str]) -> Document:
    """The document with the values of all overrides; complaints about wrong ones are added."""
    for text in texts:
        document = _apply(document, text)
    return document


def _apply(document: Document, text: str) -> Document:
    place = Position(text=f"--set {shown(text)[1:-1]}")
    try:
        path, value = _split(text)
        read = parse(value, name=place.text) if value.strip() else Document(data=None)
        return put(document, path, read, place)
    except WrongOverrideError as error:
        wrong = Complaint(path=(), what=str(error), place=place)
        return replace(document, complaints=(*document.complaints, wrong))


def put(document: Document, path: Path, value: Document, place: Position) -> Document:
    """The document with another value at the path; all of it stands at the place. Raises WrongOverrideError."""
    data = _changed(document.data, path, 0, value.data)
    own = tuple(Complaint(path=(*path, *each.path), what=each.what, place=place) for each in value.complaints)
    replaced = {at: there for at, there in document.values.items() if at[: len(path)] != path}
    inner = {(*path, *at): place for at in value.values}
    return Document(
        data=data,
        values={**replaced, **_above(path, replaced, place), **inner, path: place},
        keys={**document.keys, **{(*path, *at): place for at in value.keys}, path: place},
        complaints=(*_still_there(document, path), *own),
    )


def _above(path: Path, places: dict[Path, Position], place: Position) -> dict[Path, Position]:
    """Places of the mappings around the path that the override itself makes."""
    around = (path[:length] for length in range(len(path)))
    return {at: place for at in around if at not in places}


def _still_there(document: Document, path: Path) -> tuple[Complaint, ...]:
    """Complaints about what the override does not replace."""
    return tuple(each for each in document.complaints if each.path[: len(path)] != path)


def _split(text: str) -> tuple[Path, str]:
    left, equals, value = text.partition("=")
    try:
        return path_of(left.strip() if equals else ""), value
    except WrongOverrideError:
        what = "expected KEY=VALUE, such as pipeline.microbatches=16 or hardware.nodes[0].count=2"
        raise WrongOverrideError(what) from None


def path_of(text: str) -> Path:
    """The path of a key as messages write it. Raises WrongOverrideError."""
    parts: list[str | int] = []
    for word in text.split("."):
        match = _PART.fullmatch(word)
        if match is None:
            raise WrongOverrideError("expected a path, such as hardware.nodes[0].count")
        name, indices = match.groups()
        parts += [name, *map(int, re.findall(r"\d+", indices))]
    return tuple(parts)


def _changed(data: Any, path: Path, depth: int, value: Any) -> Any:
    """A copy of the data in which the value at the path is another one. Raises WrongOverrideError."""
    if depth == len(path):
        return value
    part = path[depth]
    if isinstance(part, int):
        if not isinstance(data, tuple) or part >= len(data):
            size = f"a list of {len(data)}" if isinstance(data, tuple) else "no list"
            raise WrongOverrideError(f"there is no entry [{part}]: {dotted(path[:depth])} is {size}")
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
    raise WrongOverrideError(f"there is no key {path[depth]}: {dotted(path[:depth])} is no mapping")


S = TypeVar("S", bound=Section)
# Keys on which no check across keys depends: if only such are wrong, the checks can still be made.
_HARMLESS = frozenset(
    {
        *("memory", "memory_bandwidth", "launch_overhead", "layer_overhead", "price_per_hour", "nic", "nics"),
        *("sockets", "socket_bus", "latency", "stall", "jitter", "recompute", "attention", "p2p", "split_overhead"),
        "microbatch_size",
    }
)
_STARTER = "; `hops init` writes a starter"
_OPTIONAL = frozenset(key for key, field in Spec.model_fields.items() if not field.is_required())  # may be left empty


def load(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Spec:
    """Read a spec file.

    Args:
        path: the YAML file; `-` reads standard input. Files that it names are looked for in its folder.
        overrides: changes such as `pipeline.microbatches=16`, applied in order.

    Raises SpecError with every problem of the file, one a line: `file:line:column: path.to.key: what`.
    """
    text, name, folder = _source(path)
    return loads(text, name=name, overrides=overrides, folder=folder)


def loads(
    text: str, *, name: str = "spec", overrides: Sequence[str] = (), folder: str | os.PathLike[str] = "."
) -> Spec:
    """Read a spec from text. `name` stands for the file in messages. Raises SpecError, as `load` does."""
    parsed = parse(text, name=name, fix=_STARTER)
    other = foreign(parsed.data, text)
    if other is not None:
        what = f"this looks like {other.name}, expected a spec"
        raise SpecError(f"{name}: {what}; {other.fix.replace('FILE', name)}")
    document = override(parsed, overrides)
    return checked(document, folder, left_open(document))


def from_dict(data: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> Spec:
    """A spec from plain data, checked like a file: `{"pipeline": {...}, "hardware": {...}}`.

    Args:
        data: dicts, lists or tuples, text, numbers, booleans and None; quantities are text with their unit.
        folder: where files that the spec names are looked for.

    Raises SpecError with every problem, one a line: `path.to.key: what`.
    """
    document = Document.of(data)
    return checked(document, folder, left_open(document))


def checked(document: Document, folder: str | os.PathLike[str], known: Iterable[Complaint] = ()) -> Spec:
    """The spec of a document. Raises SpecError with everything that is wrong, what is `known` already included."""
    spec, found = validate(document, str(folder))
    opened = list(known)
    found = without_echoes(replace(document, complaints=(*document.complaints, *opened)), found)
    if found or spec is None:
        raise SpecError(report(document, found))
    return resolve(spec)


def read_document(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Document:
    """The document of a spec file, with overrides, not judged yet. Raises SpecError if the file cannot be read."""
    file = File(path)
    return override(parse(_read(file), name=str(file), fix=_STARTER), overrides)


def _read(file: File) -> str:
    return read_text(file, error=SpecError, expected="a YAML file", fix=_nearby)


def _source(path: str | os.PathLike[str]) -> tuple[str, str, File]:
    """Text, name for messages, and folder of a spec."""
    if str(path) == "-":
        return read_input(error=SpecError, expected="a YAML file"), "<stdin>", File()
    file = File(path)
    return _read(file), str(file), file.parent


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
    return f"; did you mean {folder / near[0]}?" if near else _STARTER


def validate(document: Document, folder: str) -> tuple[Spec | None, list[Complaint]]:
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
        simulation=_section(SimulationSection, data.get("simulation", {}), context),
        schedule=_section(ScheduleChoice, _long_schedule(pipeline), context),
        pipeline=_section(PipelineSection, pipeline, context),
        parallel=_section(ParallelSection, data.get("parallel", {}), context),
        hardware=_section(HardwareSection, data.get("hardware"), context),
        optimizer=_section(OptimizerSection, data.get("optimizer", {}), context),
        failure=_section(FailureSection, data.get("failure", {}), context),
        output=_section(OutputSection, data.get("output", {}), context),
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


def surroundings(folder: str) -> Surroundings:
    """Those of a document that names no catalog files."""
    return Surroundings(folder=folder, catalog=_builtin_catalog())


@cache
def _builtin_catalog() -> Catalog:
    return Catalog.load()
